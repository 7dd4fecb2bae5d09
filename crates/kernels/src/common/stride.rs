//! Stride loops: how the threads of a block, or the lanes of a warp, share out what there is.

/// Calls `work` for `first`, and for each `step` after it, below `end`.
#[inline(always)]
pub(crate) fn strided(first: u32, end: u32, step: u32, mut work: impl FnMut(u32)) {
    let mut at = first;
    while at < end {
        work(at);
        at += step;
    }
}
