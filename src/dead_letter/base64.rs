//! Bodies as base64 text.

use ::base64::Engine;
use ::base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};
use std::borrow::Cow;

pub(super) fn serialize<S: Serializer>(body: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(body))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let text = Cow::<'_, str>::deserialize(deserializer)?;
    // The decoder's own message would quote the body.
    STANDARD.decode(&*text).map(Bytes::from).map_err(|_| D::Error::custom("the body is not base64"))
}
