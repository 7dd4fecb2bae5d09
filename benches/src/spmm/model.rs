//! What the simulator counted, as times on machines. A model, never a measurement.
use std::collections::BTreeMap;

use lacuna::SimulatedLaunch;
use lacuna::sim::{Counts as SimCounts, Machine, Operation};

use crate::record::Counts;

/// The resource table that the build keeps: entry point, target, registers a thread, and more.
const RESOURCES: &str = include_str!("../../../docs/resources.txt");

/// The modelled time of launches on each machine, in microseconds.
pub(super) fn times(launches: &[SimulatedLaunch]) -> BTreeMap<String, f64> {
    if launches.is_empty() {
        return BTreeMap::new();
    }
    let model = |machine: &Machine| {
        let times =
            launches.iter().map(|launch| launch.report.estimate(machine, registers(launch.entry, machine)));
        times.map(|estimate| estimate.model_us).sum()
    };
    Machine::ALL.iter().map(|machine| (machine.name.to_string(), model(machine))).collect()
}

/// What the launches did, in all.
pub(super) fn counts(launches: &[SimulatedLaunch]) -> Option<Counts> {
    let mut sum = Counts::default();
    for SimulatedLaunch { report, .. } in launches {
        let SimCounts { requests, sectors, .. } = report
            .total(|operation| Operation::reads_global(operation) || Operation::writes_global(operation));
        sum.requests += requests;
        sum.sectors += sectors;
        sum.distinct_sectors += report.sectors_read + report.sectors_written;
        sum.shared_wavefronts += report.total(Operation::is_shared).wavefronts;
        sum.fmas += report.fmas();
    }
    (!launches.is_empty()).then_some(sum)
}

/// Registers a thread of an entry on a machine, by the table; where it is not there, what fills half the threads.
fn registers(entry: &str, machine: &Machine) -> u32 {
    let target = match machine.name {
        "V100" => "sm_70",
        "A100" => "sm_80",
        _ => "sm_90",
    };
    let row = RESOURCES.lines().map(str::split_whitespace).find_map(|mut words| {
        (words.next() == Some(entry) && words.next() == Some(target))
            .then(|| words.next()?.parse().ok())
            .flatten()
    });
    row.unwrap_or(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_has_a_row_for_every_machine() {
        for kernel in lacuna::sim::kernels() {
            for machine in &Machine::ALL {
                assert_ne!(registers(kernel.name(), machine), 64, "{} on {}", kernel.name(), machine.name);
            }
        }
    }
}
