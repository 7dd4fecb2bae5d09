//! A roofline model of a launch. It is a model: it orders variants and names limits, and is no measurement.
use serde::Serialize;

use crate::cost::machine::Machine;
use crate::order::marks::SECTOR;
use crate::report::Report;
use crate::report::operation::Operation;

/// Registers are handed out to a warp in multiples of this many.
const REGISTER_GRANULARITY: u32 = 256;
/// An SM has four schedulers, and a warp's registers lie in the file of one of them.
const SCHEDULERS: u32 = 4;
/// Bytes of one pass through the banks of shared memory.
const WAVEFRONT_BYTES: u64 = 128;

/// What keeps more blocks from an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limiter {
    /// The limit on resident blocks.
    Blocks,
    /// The limit on resident threads.
    Threads,
    /// Registers.
    Registers,
    /// Shared memory.
    SharedMemory,
}

/// How many blocks an SM holds at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Occupancy {
    /// Resident blocks of an SM; 0 means that the kernel cannot run there.
    pub blocks_per_sm: u32,
    /// Resident threads as a part of the most there can be, 0 to 1.
    pub occupancy: f64,
    /// What keeps it from more.
    pub limiter: Limiter,
}

impl Occupancy {
    /// Of blocks of `threads` threads with `registers` registers each and `shared_bytes` of shared memory (static and
    /// dynamic together).
    pub fn of(machine: &Machine, threads: u32, registers: u32, shared_bytes: u32) -> Self {
        let warps = threads.div_ceil(32).max(1);
        // Both in pieces as large as they are handed out in.
        let warp_registers = registers.max(1).saturating_mul(32).div_ceil(REGISTER_GRANULARITY);
        let register_warps =
            machine.registers / SCHEDULERS / REGISTER_GRANULARITY / warp_registers * SCHEDULERS;
        let granularity = machine.shared_granularity.max(1);
        let block_shared = shared_bytes.saturating_add(machine.shared_reserved).div_ceil(granularity);
        let sm_shared = machine.shared_bytes / granularity;
        let limits = [
            (machine.max_threads / 32 / warps, Limiter::Threads),
            (machine.max_blocks, Limiter::Blocks),
            (register_warps / warps, Limiter::Registers),
            (sm_shared.checked_div(block_shared).unwrap_or(u32::MAX), Limiter::SharedMemory),
        ];
        let (blocks_per_sm, limiter) =
            limits.into_iter().min_by_key(|&(blocks, _)| blocks).unwrap_or((0, Limiter::Blocks));
        let occupancy = f64::from(blocks_per_sm * warps * 32) / f64::from(machine.max_threads);
        Self { blocks_per_sm, occupancy, limiter }
    }
}

/// Modelled times of a launch on one machine, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The machine.
    pub machine: &'static str,
    /// Blocks that an SM holds at once.
    #[serde(flatten)]
    pub residency: Occupancy,
    /// Every sector that the launch touches, once through device memory.
    pub dram_us: f64,
    /// Every sector that each block touches, once through L2, and all that is written.
    pub l2_us: f64,
    /// All sectors of global loads through L1.
    pub l1_us: f64,
    /// All wavefronts of shared memory; they share L1's path.
    pub shared_us: f64,
    /// All fused multiply-adds.
    pub fma_us: f64,
    /// All special functions.
    pub special_us: f64,
    /// All products on tensor cores. Infinite where there are products and the machine has no such cores.
    pub tensor_us: f64,
    /// A launch, and one load's wait for each wave of blocks. Infinite where no block fits on an SM.
    pub latency_us: f64,
    /// By how much the busiest SM has more blocks than the average: the terms of SMs are stretched by it.
    pub imbalance: f64,
    /// The modelled time: latency, plus the largest of dram, l2, l1 + shared, fma, special and tensor, the last four
    /// stretched. Infinite where the machine cannot run the kernel; JSON, which has no infinity, then says null.
    pub model_us: f64,
}

impl Report {
    /// The modelled time on a machine, for a kernel that uses `registers` registers a thread there.
    ///
    /// Each resource is taken at its peak rate and all work as overlapped, so the time is a lower bound for most
    /// kernels. Caches are taken as perfect within a block (L1) and across the launch (L2). Blocks are taken as equal.
    pub fn estimate(&self, machine: &Machine, registers: u32) -> Estimate {
        let residency = Occupancy::of(machine, self.threads, registers, self.shared_bytes);
        let loads = self.total(Operation::reads_global).sectors.saturating_mul(SECTOR);
        let written = self.total(Operation::writes_global).sectors.saturating_mul(SECTOR);
        let wavefronts = self.total(Operation::is_shared).wavefronts;
        let specials = self.total(|operation| operation == Operation::Special).executions;

        let clocks_a_us = machine.clock_ghz * 1e3;
        let on_sms =
            |work: u64, rate: u32| work as f64 / (f64::from(rate) * f64::from(machine.sms) * clocks_a_us);
        let dram_bytes = self.sectors_read.saturating_add(self.sectors_written).saturating_mul(SECTOR);
        let dram_us = dram_bytes as f64 / (machine.dram_gb_per_s * 1e3);
        let l2_bytes = self.block_sectors_read.saturating_mul(SECTOR).saturating_add(written);
        let l2_us = l2_bytes as f64 / (f64::from(machine.l2_bytes_per_clock) * clocks_a_us);
        let l1_us = on_sms(loads, machine.l1_bytes_per_clock);
        let shared_us = on_sms(wavefronts.saturating_mul(WAVEFRONT_BYTES), machine.l1_bytes_per_clock);
        let fma_us = on_sms(self.fmas(), machine.fmas_per_clock);
        let special_us = on_sms(specials, machine.specials_per_clock);
        let products = |operation| self.total(|other| other == operation).executions;
        // One of TF32 has half the multiply-adds, at half the rate.
        let tensor_us = |count, rate| match count {
            0 => 0.0,
            count => on_sms(count * Operation::Mma.tensor_fmas(), rate),
        };
        let of_warps = products(Operation::Mma) + products(Operation::MmaTf32);
        let of_warpgroups = products(Operation::WarpgroupMma) + products(Operation::WarpgroupMmaTf32);
        let tensor_us = tensor_us(of_warps, machine.tensor_fmas_per_clock)
            + tensor_us(of_warpgroups, machine.warpgroup_fmas_per_clock);

        let (blocks, sms) = (self.blocks(), u64::from(machine.sms.max(1)));
        let imbalance = blocks.div_ceil(sms).saturating_mul(sms) as f64 / blocks.max(1) as f64;
        let waves = match u64::from(residency.blocks_per_sm) * sms {
            0 => f64::INFINITY,
            resident => blocks.div_ceil(resident) as f64,
        };
        let latency_us = machine.launch_us + waves * machine.latency_us;
        let sm_us = (l1_us + shared_us).max(fma_us).max(special_us).max(tensor_us) * imbalance;
        let model_us = latency_us + sm_us.max(dram_us).max(l2_us);
        Estimate {
            machine: machine.name,
            residency,
            dram_us,
            l2_us,
            l1_us,
            shared_us,
            fma_us,
            special_us,
            tensor_us,
            latency_us,
            imbalance,
            model_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occupancy_names_its_limit() {
        let of = |threads, registers, shared| Occupancy::of(&Machine::A100, threads, registers, shared);
        assert_eq!(of(32, 16, 0).limiter, Limiter::Blocks);
        assert_eq!(of(256, 32, 0), Occupancy { blocks_per_sm: 8, occupancy: 1.0, limiter: Limiter::Threads });
        assert_eq!(
            of(256, 64, 0),
            Occupancy { blocks_per_sm: 4, occupancy: 0.5, limiter: Limiter::Registers }
        );
        assert_eq!(of(128, 32, 40 * 1024).blocks_per_sm, 4);
        assert_eq!(of(128, 32, 40 * 1024).limiter, Limiter::SharedMemory);
        assert_eq!(Occupancy::of(&Machine::V100, 32, 32, 100 * 1024).blocks_per_sm, 0);
    }

    /// The numbers of the resource report for the same targets.
    #[test]
    fn occupancy_counts_what_is_handed_out() {
        let blocks = |machine, threads, registers, shared| {
            Occupancy::of(&machine, threads, registers, shared).blocks_per_sm
        };
        // 65 registers take 72 a thread: 2304 a warp, 7 warps on each of four schedulers.
        assert_eq!([65, 72, 73].map(|registers| blocks(Machine::V100, 128, registers, 0)), [7, 7, 6]);
        // 96 KiB hold two blocks of 48 KiB on a V100, where nothing is reserved.
        assert_eq!(blocks(Machine::V100, 128, 16, 48 * 1024), 2);
        let hopper =
            [48 * 1024, 56 * 1024, 56 * 1024 + 1].map(|shared| blocks(Machine::H200, 128, 16, shared));
        assert_eq!(hopper, [4, 4, 3]);
        assert_eq!(blocks(Machine::H200, 1024, 255, 0), 0);
        assert_eq!(blocks(Machine::H200, u32::MAX, u32::MAX, u32::MAX), 0);
    }

    #[test]
    fn machines_are_found_by_name() {
        assert_eq!(Machine::find("h200"), Some(Machine::H200));
        assert_eq!(Machine::find("K80"), None);
    }
}
