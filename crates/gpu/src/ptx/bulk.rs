//! Bulk tensor copies, and the barriers at which they land. Whole warps come, and `elect.sync` names the lane that does it: so ptxas
//! sees that warps stay together.
use core::arch::asm;

use super::intrinsics as llvm;
use crate::FULL_WARP;

/// Fetches the map at that address.
///
/// # Safety
/// A map lies there.
#[inline(always)]
pub(super) unsafe fn prefetch(map: u64) {
    // SAFETY: passed on to the caller.
    unsafe {
        asm!(
            "{{",
            ".reg .pred first;",
            "elect.sync _|first, -1;",
            "@first prefetch.tensormap [{0}];",
            "}}",
            in(reg64) map, options(nostack)
        );
    }
}

/// Makes the barrier, of one arrival, and shows it to the copies.
///
/// # Safety
/// See [`bulk_barrier_init`](crate::Hopper::bulk_barrier_init).
#[inline(always)]
pub(super) unsafe fn init(barrier: u32) {
    // SAFETY: passed on to the caller.
    unsafe {
        asm!(
            "{{",
            ".reg .pred first;",
            "elect.sync _|first, -1;",
            "@first mbarrier.init.shared::cta.b64 [{0}], 1;",
            "fence.mbarrier_init.release.cluster;",
            "fence.proxy.async.shared::cta;",
            "}}",
            in(reg32) barrier, options(nostack)
        );
    }
}

/// Arrives there, and expects so many bytes.
///
/// # Safety
/// See [`bulk_expect`](crate::Hopper::bulk_expect).
#[inline(always)]
pub(super) unsafe fn expect(barrier: u32, bytes: u32) {
    // SAFETY: passed on to the caller.
    unsafe {
        asm!(
            "{{",
            ".reg .pred first;",
            "elect.sync _|first, -1;",
            "@first mbarrier.arrive.expect_tx.shared::cta.b64 _, [{0}], {1};",
            "}}",
            in(reg32) barrier, in(reg32) bytes, options(nostack)
        );
    }
}

/// Starts a copy by the map at that address.
///
/// # Safety
/// See [`bulk_copy`](crate::Hopper::bulk_copy).
#[inline(always)]
pub(super) unsafe fn copy(to: u32, map: u64, [column, row, matrix]: [u32; 3], barrier: u32) {
    // SAFETY: passed on to the caller.
    unsafe {
        asm!(
            "{{",
            ".reg .pred first;",
            "elect.sync _|first, -1;",
            "@first cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes \
             [{0}], [{1}, {{{2}, {3}, {4}}}], [{5}];",
            "}}",
            in(reg32) to, in(reg64) map, in(reg32) column, in(reg32) row, in(reg32) matrix, in(reg32) barrier,
            options(nostack)
        );
    }
}

/// Waits until the barrier's phase of this parity is over. Lanes go on together, as a vote tells ptxas.
///
/// # Safety
/// See [`bulk_wait`](crate::Hopper::bulk_wait).
#[inline(always)]
pub(super) unsafe fn wait(barrier: u32, parity: u32) {
    loop {
        let is_over: u32;
        // SAFETY: passed on to the caller.
        unsafe {
            asm!(
                "{{",
                ".reg .pred over;",
                "mbarrier.try_wait.parity.shared::cta.b64 over, [{1}], {2};",
                "selp.u32 {0}, 1, 0, over;",
                "}}",
                out(reg32) is_over, in(reg32) barrier, in(reg32) parity, options(nostack)
            );
            if llvm::vote_all(FULL_WARP, is_over != 0) {
                return;
            }
        }
    }
}
