//! What operations' options have in common: fields with defaults, and methods that change them.

/// The options of an operation, each with its default.
macro_rules! options {
    ($(#[$about:meta])+ pub struct Options { $($(#[$doc:meta])+ pub $field:ident: $type:ty = $default:expr,)+ }) => {
        $(#[$about])+
        pub struct Options {
            $($(#[$doc])+ pub $field: $type,)+
        }

        impl Default for Options {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }
    };
}

/// Methods of `Options` that give the same options with one field changed: `field(parameter: Type) = value;`.
macro_rules! setters {
    ($($(#[$doc:meta])+ $field:ident($parameter:ident: $type:ty) = $value:expr;)+) => {
        impl Options {
            $(
                $(#[$doc])+
                #[must_use]
                pub fn $field(self, $parameter: $type) -> Self {
                    Self { $field: $value, ..self }
                }
            )+
        }
    };
}
pub(crate) use {options, setters};
