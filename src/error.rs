//! What a failed call tells its caller.
