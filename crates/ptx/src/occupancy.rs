//! How many blocks of a kernel an SM holds at once.
use crate::Target;

/// Threads of a warp.
const WARP: u32 = 32;
/// Registers are handed out to a warp in multiples of this many.
const REGISTER_GRANULARITY: u32 = 256;
/// An SM has four schedulers, and a warp's registers lie in the file of one of them.
const SCHEDULERS: u32 = 4;

/// What keeps more blocks off the SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limiter {
    /// Resident threads.
    Threads,
    /// Resident blocks.
    Blocks,
    /// The register file.
    Registers,
    /// Shared memory.
    Shared,
}

/// Blocks of one kernel on one SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Blocks resident together; 0 when one block is already too big.
    pub blocks: u32,
    /// Their warps.
    pub warps: u32,
    /// Warps that the SM could hold.
    pub max_warps: u32,
    /// What sets the number.
    pub limiter: Limiter,
}

impl Occupancy {
    /// Of a kernel with so many registers a thread, threads a block, and bytes of shared memory a block (static and
    /// dynamic together).
    pub fn of(target: Target, registers: u32, threads: u32, shared_bytes: u32) -> Self {
        let limits = target.limits();
        let max_warps = limits.threads / WARP;
        let warps = threads.div_ceil(WARP).max(1);

        let warp_registers = (registers.max(1) * WARP).next_multiple_of(REGISTER_GRANULARITY);
        let register_warps = limits.registers / SCHEDULERS / warp_registers * SCHEDULERS;
        let block_shared =
            (shared_bytes.saturating_add(limits.shared_reserved)).div_ceil(limits.shared_granularity);
        let sm_shared = limits.shared_bytes / limits.shared_granularity;

        let candidates = [
            (max_warps / warps, Limiter::Threads),
            (limits.blocks, Limiter::Blocks),
            (register_warps / warps, Limiter::Registers),
            (sm_shared.checked_div(block_shared).unwrap_or(u32::MAX), Limiter::Shared),
        ];
        let (blocks, limiter) =
            candidates.into_iter().min_by_key(|(blocks, _)| *blocks).expect("four limits");
        Self { blocks, warps: blocks * warps, max_warps, limiter }
    }

    /// Resident warps as a share of what the SM could hold, 0 to 1.
    pub fn fraction(&self) -> f64 {
        f64::from(self.warps) / f64::from(self.max_warps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(target: Target, registers: u32, threads: u32, shared: u32, blocks: u32, limiter: Limiter) {
        let got = Occupancy::of(target, registers, threads, shared);
        assert_eq!((got.blocks, got.limiter), (blocks, limiter));
    }

    #[test]
    fn each_limit_binds() {
        check(Target::Sm80, 32, 256, 0, 8, Limiter::Threads);
        check(Target::Sm80, 16, 32, 0, 32, Limiter::Blocks);
        check(Target::Sm80, 64, 256, 0, 4, Limiter::Registers);
        check(Target::Sm80, 32, 128, 48 * 1024, 3, Limiter::Shared);
    }

    #[test]
    fn registers_round_up_to_a_warps_granule() {
        // 65 registers take 72 a thread: 2304 a warp, 7 warps on each of four schedulers.
        check(Target::Sm70, 65, 128, 0, 7, Limiter::Registers);
        check(Target::Sm70, 72, 128, 0, 7, Limiter::Registers);
        check(Target::Sm70, 73, 128, 0, 6, Limiter::Registers);
    }

    #[test]
    fn newer_targets_reserve_shared_memory() {
        // 96 KiB hold exactly two blocks of 48 KiB on a V100; 228 KiB hold four, not four and the reserve of five.
        check(Target::Sm70, 16, 128, 48 * 1024, 2, Limiter::Shared);
        check(Target::Sm90a, 16, 128, 48 * 1024, 4, Limiter::Shared);
        check(Target::Sm90a, 16, 128, 56 * 1024, 4, Limiter::Shared);
        check(Target::Sm90a, 16, 128, 56 * 1024 + 1, 3, Limiter::Shared);
    }

    #[test]
    fn a_block_that_never_fits() {
        check(Target::Sm70, 32, 128, 97 * 1024, 0, Limiter::Shared);
        check(Target::Sm90a, 255, 1024, 0, 0, Limiter::Registers);
        assert_eq!(Occupancy::of(Target::Sm90a, 255, 1024, 0).fraction(), 0.0);
    }

    #[test]
    fn fraction_counts_warps() {
        assert_eq!(Occupancy::of(Target::Sm90a, 64, 128, 0).fraction(), 0.5);
    }
}
