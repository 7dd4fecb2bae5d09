//! The host's tables of entry points, one for each operation, in the list's order.
use crate::Entry;

macro_rules! tables {
    ($($op:ident { $($(#[$attribute:meta])* $name:ident: $kernel:ty;)* })*) => {
        $(
            #[doc = concat!("Entry points of `", stringify!($op), "`.")]
            pub fn $op() -> &'static [Entry<crate::$op::Tile>] {
                const TABLE: &[Entry<crate::$op::Tile>] = &[$(Entry::of::<$kernel>(stringify!($name)),)*];
                TABLE
            }
        )*

        /// Every entry point of every operation, without its tile.
        pub fn all() -> impl Iterator<Item = Entry<()>> {
            const TABLE: &[Entry<()>] = &[$($(Entry::of::<$kernel>(stringify!($name)).erased(),)*)*];
            TABLE.iter().copied()
        }
    };
}
crate::for_each_kernel!(tables);
