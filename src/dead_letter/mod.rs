//! What is kept of a call that was given up, so that it can be sent again later as the same call.
//!
//! [`Error::dead_letter`](crate::Error::dead_letter) gives the record of one failed call. A client that was given a [`DeadLetterSink`]
//! ([`ClientBuilder::dead_letter_sink`](crate::ClientBuilder::dead_letter_sink)) hands it every such record by itself, the
//! moment a call is given up: [`FileSink`] appends them to a file, another may put them on a queue.
//! [`ServiceClient::replay`](crate::ServiceClient::replay) makes a call of a letter again.
//!
//! Before letters are kept, settle three things: an *alarm* on how many there are and how old the oldest is, with an owner;
//! a *replay path* that somebody has walked; and a callee that recognises the *idempotency key* for as long as letters may
//! lie. A letter nobody replays is a lost order with a receipt.
//!
//! ```
//! # use eastwest::dead_letter::{DeadLetter, FileSink};
//! # use eastwest::ServiceClient;
//! /// Sends everything again that lies in the file.
//! async fn replay_all(client: &ServiceClient, sink: &FileSink) -> Result<(), Box<dyn std::error::Error>> {
//!     for letter in sink.list().await?.letters {
//!         // One of another callee, or of a later version, stays for whoever can read it and holds up no other.
//!         let Ok(call) = client.replay(&letter) else { continue };
//!         // A replay that fails is stored again by the client, in the place of this letter.
//!         if call.send().await.is_ok() {
//!             sink.acknowledge(&letter.id).await?;
//!         }
//!     }
//!     Ok(())
//! }
//! ```

mod base64;
mod disk;
mod file;
mod headers;
mod letter;
mod lines;
mod millis;
mod sink;

pub use file::FileSink;
pub use letter::{DeadLetter, SCHEMA_VERSION};
pub use lines::Listing;
pub use sink::{DeadLetterSink, StoreFuture};

pub(crate) use sink::{SINK_LIMIT, deliver};
