//! What is wrong with a setting or an argument, found before anything is sent.

use std::error::Error;
use std::fmt;

/// A setting or an argument that cannot be used.
///
/// The reason never repeats a value that may hold a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The setting or the argument, as its setter is called.
    pub(crate) field: &'static str,
    /// What is wrong with it, as the second half of a sentence.
    pub(crate) reason: String,
    /// Whether a limit on size was passed, and nothing else is wrong.
    pub(crate) too_large: bool,
}

impl Fault {
    /// Makes a fault of `field`.
    pub(crate) fn new(field: &'static str, reason: impl Into<String>) -> Fault {
        Fault { field, reason: reason.into(), too_large: false }
    }

    /// Makes a fault of `field` for passing a limit on size.
    pub(crate) fn too_large(field: &'static str, reason: impl Into<String>) -> Fault {
        Fault { too_large: true, ..Fault::new(field, reason) }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.reason)
    }
}

impl Error for Fault {}

impl From<Fault> for crate::error::Error {
    fn from(fault: Fault) -> crate::error::Error {
        if fault.too_large {
            crate::error::Error::too_large(fault.field, fault.reason)
        } else {
            crate::error::Error::configuration(fault.field, fault.reason)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_its_field_and_tells_size_from_all_else() {
        let fault = Fault::new("base_url", "has no host");
        assert_eq!(fault.to_string(), "base_url: has no host");
        assert!(!fault.too_large);
        assert!(Fault::too_large("path", "is too long").too_large);
    }
}
