//! The host's tables of entry points, one for each operation, in the list's order.
use crate::Entry;

macro_rules! tables {
    ($($op:ident { $($(#[$attribute:meta])* { $($name:expr => $kernel:ty;)+ })+ })+) => {
        $(
            #[doc = concat!("Entry points of `", stringify!($op), "`.")]
            pub fn $op() -> &'static [Entry<crate::$op::Tile>] {
                const TABLE: &[Entry<crate::$op::Tile>] = &[$($(Entry::of::<$kernel>($name),)+)+];
                TABLE
            }
        )+

        /// The operations of the list, by name, each with its entry points without their tiles.
        pub const OPERATIONS: &[(&str, &[Entry<()>])] =
            &[$((stringify!($op), &[$($(Entry::of::<$kernel>($name).erased(),)+)+])),+];

        /// Every entry point of every operation, without its tile.
        pub fn all() -> impl Iterator<Item = Entry<()>> {
            OPERATIONS.iter().flat_map(|(_, entries)| entries.iter().copied())
        }
    };
}
crate::for_each_kernel!(tables);

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of tiles are written from the list's numbers, and these divided into what warps own: nothing may be left over.
    #[test]
    fn names_of_tiles_say_how_large_they_are() {
        for entry in spmm() {
            let (rows, columns) = (entry.tile.block_rows, entry.tile.block_columns);
            if entry.tile.scheme.arithmetic().is_some() {
                assert!(named(entry.name, rows, columns), "{} has {rows} by {columns}", entry.name);
            }
        }
        for entry in sddmm() {
            if let crate::sddmm::Scheme::MmaTile { columns, .. } = entry.tile.scheme {
                let rows = entry.tile.block_items;
                assert!(named(entry.name, rows, columns), "{} has {rows} by {columns}", entry.name);
            }
        }
    }

    fn named(name: &str, rows: u32, columns: u32) -> bool {
        name.split('_')
            .filter_map(|part| part.split_once('x'))
            .any(|(first, second)| first.parse() == Ok(rows) && second.parse() == Ok(columns))
    }

    #[test]
    fn names_begin_with_their_operation_and_are_all_different() {
        for (operation, entries) in OPERATIONS {
            let is_of = |name: &str| name.strip_prefix(operation).is_some_and(|rest| rest.starts_with('_'));
            assert!(entries.iter().all(|entry| is_of(entry.name)), "{operation}");
        }
        for (i, entry) in all().enumerate() {
            assert!(all().skip(i + 1).all(|other| other.name != entry.name), "{} stands twice", entry.name);
        }
    }
}
