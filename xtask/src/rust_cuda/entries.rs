//! That both routes have the same entries: the rule by which rust-cuda's crate makes its own is expanded here, without
//! `cuda_std`, and compared with the host's table.
use std::marker::PhantomData;

use lacuna_kernels::entries;

/// What the rule says of a kernel: its entry's name, and the attributes that it would have.
trait Named {
    const NAMED: (&str, &str);
}

/// A kernel of the list, as a type of this crate.
struct Of<K>(PhantomData<K>);

/// What the rule names: constants instead of functions.
mod named {
    use super::{Named, Of};

    macro_rules! entries {
        ($attributes:tt $($name:expr => $kernel:ty;)+) => {$(
            impl Named for Of<$kernel> {
                const NAMED: (&str, &str) = ($name, stringify!($attributes));
            }
        )+};
    }
    include!("../../../rust-cuda/kernels/src/entries.rs");
}

/// The table's kernels, looked up among those: an entry that the rule leaves out does not compile here.
macro_rules! looked_up {
    ($($op:ident { $($(#[$attribute:meta])* { $($name:expr => $kernel:ty;)+ })+ })+) => {
        const NAMED: &[(&str, &str)] = &[$($($(<Of<$kernel> as Named>::NAMED),+),+),+];
    };
}
lacuna_kernels::for_each_kernel!(looked_up);

#[test]
fn both_routes_have_the_same_entries() {
    let named: Vec<_> = NAMED.iter().map(|(name, _)| *name).collect();
    let table: Vec<_> = entries::all().map(|entry| entry.name).collect();
    assert_eq!(named, table);
}

/// `MIN_SM` is what the host goes by, and the attribute what a device's build goes by.
#[test]
fn attributes_keep_entries_out_of_just_the_targets_that_cannot_run_them() {
    for ((name, attributes), entry) in NAMED.iter().zip(entries::all()) {
        let expected = match entry.min_sm {
            70 => "[]".to_owned(),
            level => format!("[#[cfg(lacuna_sm = \"{level}\")]]"),
        };
        assert_eq!(*attributes, expected, "{name}");
    }
}
