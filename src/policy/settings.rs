//! Getters and setters of plain settings.

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
