//! What the simulator counted, as times on machines. A model, never a measurement.
use std::collections::BTreeMap;

use lacuna::SimulatedLaunch;
use lacuna::sim::{Counts as SimCounts, Machine, Operation};

use crate::record::Counts;

/// The resource tables that the build keeps, each with its operation: entry point, target, registers a thread, and more.
const RESOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/resources.rs"));
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

/// The target that a machine runs, and its compute capability.
fn target(machine: &Machine) -> (&'static str, u32) {
    match machine.name {
        "V100" => ("sm_70", 70),
        "A100" => ("sm_80", 80),
        _ => ("sm_90a", 90),
    }
}

/// Registers a thread of an entry on a machine, by the table.
fn registers(entry: &str, machine: &Machine) -> Option<u32> {
    let (target, _) = target(machine);
    RESOURCES.iter().flat_map(|(_, table)| table.lines()).find_map(|line| {
        let mut words = line.split_whitespace();
        let here = words.next() == Some(entry) && words.next() == Some(target);
        if here { words.next()?.parse().ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use lacuna_kernels::entries;

    use super::*;

    #[test]
    fn every_kernel_has_a_row_for_every_machine_that_it_is_built_for() {
        for entry in entries::all() {
            for machine in Machine::ALL {
                let (_, level) = target(&machine);
                let has_row = registers(entry.name, &machine).is_some();
                assert_eq!(has_row, entry.min_sm <= level, "{} on {}", entry.name, machine.name);
            }
        }
    }
}
