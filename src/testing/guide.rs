//! *Testing your SDK*: a chapter for teams that wrap this client, whose every snippet runs.
#![doc = include_str!("testing_your_sdk.md")]
