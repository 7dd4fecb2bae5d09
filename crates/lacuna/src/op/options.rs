//! What operations' options have in common: fields with defaults, and methods that change them.

/// The options of an operation: public fields with their defaults, and methods of the same names and documents that give the
/// same options with one field changed. `=> set` asks for the method, `=> some(Type)` for one that takes what the field has in
/// `Some`. Fields without either are changed by methods that are written out.
macro_rules! options {
    (@method [$($doc:tt)+] $field:ident: $type:ty) => {};
    (@method [$($doc:tt)+] $field:ident: $type:ty => set) => {
        $($doc)+
        #[must_use]
        pub fn $field(self, $field: $type) -> Self {
            Self { $field, ..self }
        }
    };
    (@method [$($doc:tt)+] $field:ident: $type:ty => some($inner:ty)) => {
        $($doc)+
        #[must_use]
        pub fn $field(self, $field: $inner) -> Self {
            Self { $field: Some($field), ..self }
        }
    };
    (
        $(#[$about:meta])+
        pub struct $name:ident {
            $($(#[$doc:meta])+ pub $field:ident: $type:ty = $default:expr $(=> $how:ident $(($inner:ty))?)?,)+
        }
    ) => {
        $(#[$about])+
        pub struct $name {
            $($(#[$doc])+ pub $field: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl $name {
            $($crate::op::options!(@method [$(#[$doc])+] $field: $type $(=> $how $(($inner))?)?);)+
        }
    };
}
pub(crate) use options;
