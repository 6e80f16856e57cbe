//! Getters and setters of plain settings, and setters of what others build.

/// Writes a getter and a setter for each setting, so that both carry the same words.
macro_rules! settings {
    ($of:ident: $($(#[doc = $doc:literal])+ $name:ident, $with:ident: $type:ty;)+) => {
        impl $of {
            $(
                $(#[doc = $doc])+
                #[must_use]
                pub fn $name(&self) -> $type {
                    self.$name
                }

                $(#[doc = $doc])+
                #[must_use]
                pub fn $with(mut self, $name: $type) -> Self {
                    self.$name = $name;
                    self
                }
            )+
        }
    };
}

/// Writes a setter for each public field of a struct that only this crate may write out field by field.
macro_rules! setters {
    ($of:ident: $($name:ident, $with:ident: $type:ty;)+) => {
        impl $of {
            $(
                #[doc = concat!("Sets [`", stringify!($of), "::", stringify!($name), "`].")]
                #[must_use]
                pub fn $with(mut self, $name: $type) -> Self {
                    self.$name = $name;
                    self
                }
            )+
        }
    };
}
