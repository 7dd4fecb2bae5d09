//! Tables of zeros that cost nothing until they are touched: the allocator takes fresh pages from the system.
use std::alloc::{Layout, alloc_zeroed};
use std::ptr::slice_from_raw_parts_mut;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// What may stand in a table of zeros.
///
/// # Safety
/// Zero bytes are a valid value of the type.
pub(crate) unsafe trait Zero {}

// SAFETY: it has the layout of `u8`, for which zero is valid.
unsafe impl Zero for AtomicU8 {}
// SAFETY: it has the layout of `u32`, for which zero is valid.
unsafe impl Zero for AtomicU32 {}
// SAFETY: it has the layout of `u64`, for which zero is valid.
unsafe impl Zero for AtomicU64 {}

/// `count` zeros, or nothing where the host has no memory for them.
pub(crate) fn zeros<T: Zero>(count: usize) -> Option<Box<[T]>> {
    let layout = Layout::array::<T>(count).ok()?;
    if layout.size() == 0 {
        return Some(Box::default());
    }
    // SAFETY: the layout has a size above zero.
    let start = unsafe { alloc_zeroed(layout) }.cast::<T>();
    // SAFETY: where it is not null, it is the start of a block from the global allocator with the layout of `[T; count]`,
    // nobody else has it, and its zeros are valid by the contract of `Zero`.
    (!start.is_null()).then(|| unsafe { Box::from_raw(slice_from_raw_parts_mut(start, count)) })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn tables_are_zero_or_refused() {
        assert!(zeros::<AtomicU8>(0).unwrap().is_empty());
        assert!(zeros::<AtomicU32>(1000).unwrap().iter().all(|cell| cell.load(Relaxed) == 0));
        assert!(zeros::<AtomicU64>(1 << 58).is_none(), "more than an address space");
        assert!(zeros::<AtomicU64>(usize::MAX).is_none(), "more bytes than a number can tell");
    }
}
