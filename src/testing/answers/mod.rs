//! What the gateway does with a request: its answers by name, its refusals, and the ways in which there is no answer.

pub(crate) mod callee;
pub(crate) mod faults;
pub(crate) mod gateway_response;
pub(crate) mod named;
pub(crate) mod refusal;
pub(crate) mod reply;
