//! Tables of zeros that cost nothing until they are touched: the allocator takes fresh pages from the system.
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

macro_rules! zeros {
    ($($name:ident: $cell:ty;)*) => {$(
        pub(crate) fn $name(count: usize) -> Box<[$cell]> {
            // SAFETY: an atomic integer has the layout of its integer, for which zero bits are a valid value.
            unsafe { Box::<[$cell]>::new_zeroed_slice(count).assume_init() }
        }
    )*};
}
zeros! {
    zeros_8: AtomicU8;
    zeros_32: AtomicU32;
    zeros_64: AtomicU64;
}
