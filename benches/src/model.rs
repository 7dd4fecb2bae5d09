//! What the simulator counted, as times on machines. A model, never a measurement.
use std::collections::BTreeMap;

use lacuna::SimulatedLaunch;
use lacuna::sim::{Counts as SimCounts, Machine, Operation};

use crate::record::Counts;

/// The resource table that the build keeps: entry point, target, registers a thread, and more.
const RESOURCES: &str = include_str!("../../docs/resources.txt");
/// Registers a thread with which half of an SM's threads are resident.
const HALF_OCCUPANCY: u32 = 64;

/// The modelled time of launches on each machine, in microseconds.
pub(crate) fn times(launches: &[SimulatedLaunch]) -> BTreeMap<String, f64> {
    if launches.is_empty() {
        return BTreeMap::new();
    }
    let model = |machine: &Machine| -> f64 {
        let times = launches.iter().map(|launch| {
            let registers = registers(launch.entry, machine).unwrap_or(HALF_OCCUPANCY);
            launch.report.estimate(machine, registers).model_us
        });
        times.sum()
    };
    let times = Machine::ALL.iter().map(|machine| (machine.name.to_string(), model(machine)));
    // A machine on which the kernel cannot run has no time.
    times.filter(|(_, time)| time.is_finite()).collect()
}

/// What the launches did, in all.
pub(crate) fn counts(launches: &[SimulatedLaunch]) -> Option<Counts> {
    let mut sum = Counts::default();
    for SimulatedLaunch { report, .. } in launches {
        let is_global = |operation| Operation::reads_global(operation) || Operation::writes_global(operation);
        let SimCounts { requests, sectors, .. } = report.total(is_global);
        sum.requests += requests;
        sum.sectors += sectors;
        sum.distinct_sectors += report.sectors_read + report.sectors_written;
        sum.shared_wavefronts += report.total(Operation::is_shared).wavefronts;
        sum.fmas += report.fmas();
    }
    (!launches.is_empty()).then_some(sum)
}

/// Registers a thread of an entry on a machine, by the table.
fn registers(entry: &str, machine: &Machine) -> Option<u32> {
    let target = match machine.name {
        "V100" => "sm_70",
        "A100" => "sm_80",
        _ => "sm_90a",
    };
    RESOURCES.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let here = words.next() == Some(entry) && words.next() == Some(target);
        if here { words.next()?.parse().ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_has_a_row_for_every_machine_that_runs_it() {
        for kernel in lacuna::sim::kernels() {
            let rows: Vec<bool> =
                Machine::ALL.iter().map(|machine| registers(kernel.name(), machine).is_some()).collect();
            for (machine, &row) in Machine::ALL.iter().zip(&rows) {
                // Kernels on tensor cores are not built for a machine that the simulator knows without, nor those by
                // warpgroups for one whose tensor cores wait for each product.
                let by_warpgroups =
                    kernel.name().contains("_group_") && machine.warpgroup_fmas_per_clock == 0;
                let may_lack = machine.tensor_fmas_per_clock == 0 || by_warpgroups;
                assert!(row || may_lack, "{} on {}", kernel.name(), machine.name);
            }
        }
        assert!(Machine::ALL.iter().all(|machine| registers("spmm_f32_v4_l32_s1_w8", machine).is_some()));
    }
}
