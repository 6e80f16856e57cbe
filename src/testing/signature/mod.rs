//! Verification of SigV4 signatures, which shares no code with the signer that it judges.

pub(crate) mod amz_date;
pub(crate) mod authorization;
pub(crate) mod canonical;
pub(crate) mod cause;
pub(crate) mod settings;
#[cfg(test)]
pub(crate) mod signed;
pub(crate) mod verdict;
pub(crate) mod verification;
pub(crate) mod verifier;
#[cfg(test)]
mod verifier_tests;
