//! What the program has allocated on the host: an allocator that counts, for measuring what calls hold and allocate.
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

static LIVE: AtomicU64 = AtomicU64::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, with counters. The program has it as its global allocator.
#[derive(Debug)]
pub struct Counting;

// SAFETY: all is the system allocator's; counters do not touch memory that it gives.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as promised by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(memory, layout) }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        count(size);
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(memory, layout, size) }
    }
}

fn count(bytes: usize) {
    LIVE.fetch_add(bytes as u64, Ordering::Relaxed);
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
}

/// Bytes that are allocated now; 0 where the program has another allocator.
pub(crate) fn live_bytes() -> u64 {
    LIVE.load(Ordering::Relaxed)
}

/// Allocations so far; 0 where the program has another allocator.
pub(crate) fn count_so_far() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}
