//! Faults on the wire: no answer, or half of one.

use crate::testing::answers::reply::{Behaviour, Delivery, Reply};
use std::time::Duration;

impl Reply {
    /// Reads the request, then closes the connection without a word.
    pub fn close() -> Self {
        Reply::silent(Behaviour::Close)
    }

    /// Answers with bytes that are no HTTP, then closes.
    pub fn garbage() -> Self {
        Reply::silent(Behaviour::Garbage)
    }

    /// Reads the request and never answers; the connection stays open for as long as the client holds it.
    ///
    /// In memory the time that the attempt may take is over at once, by the client's clock.
    pub fn hang() -> Self {
        Reply::silent(Behaviour::Hang)
    }

    /// Never answers; [`Reply::hang`] by another name. [`Reply::stall_after`] stalls in the middle of a body.
    pub fn stall() -> Self {
        Reply::hang()
    }

    /// Refuses the connection: nothing was sent. In memory only, for over a socket the connection is there before a script
    /// is looked at; such a reply is then a 501 that says so. See
    /// [`FakeGateway::refuse_connections`](crate::testing::FakeGateway::refuse_connections).
    pub fn refuse() -> Self {
        Reply::silent(Behaviour::Refuse)
    }

    /// Reads the request, then resets the connection (TCP RST).
    pub fn reset() -> Self {
        Reply::silent(Behaviour::Reset)
    }

    /// Resets the connection (TCP RST) as soon as the head has told which script is meant, the body unread. The signature is
    /// not looked at, and the attempt is recorded without a body.
    pub fn reset_before_reading() -> Self {
        Reply::silent(Behaviour::ResetBeforeReading)
    }

    /// Sends head and so many bytes of the body, then nothing; the connection stays open.
    pub fn stall_after(mut self, bytes: usize) -> Self {
        self.delivery = Delivery::StallAfter(bytes);
        self
    }

    /// Sends head and so many bytes of the body, then closes.
    pub fn truncate_after(mut self, bytes: usize) -> Self {
        self.delivery = Delivery::TruncateAfter(bytes);
        self
    }

    /// Sends head and so many bytes of the body, then closes; [`Reply::truncate_after`] by another name.
    pub fn close_after(self, bytes: usize) -> Self {
        self.truncate_after(bytes)
    }

    /// Sends head and so many bytes of the body, then resets the connection (TCP RST).
    pub fn reset_after(mut self, bytes: usize) -> Self {
        self.delivery = Delivery::ResetAfter(bytes);
        self
    }

    /// Sends the body in pieces of so many bytes, waiting so long before each.
    pub fn drip(mut self, chunk: usize, every: Duration) -> Self {
        self.delivery = Delivery::Drip { chunk: chunk.max(1), every };
        self
    }
}
