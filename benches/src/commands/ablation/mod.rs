//! `ablation`: what each idea of the SC 2020 paper brings (its Table II), by switching it off.
mod sddmm;
mod spmm;

use std::collections::BTreeMap;

use anyhow::Result;

use super::run::{outcome, print};
use super::sweep;
use crate::chosen;
use crate::cli::{Ablated, AblationOptions};
use crate::operation::Task;
use crate::record::Record;
use crate::session::Session;
use crate::suites::Case;
use crate::table::{align_numbers, new_table};
use crate::types::{self, Dtype, Index, Types};
use lacuna_cases::exit::{Outcome, Usage};

/// The groups of suite `dlmc`, and the paper's columns: its large batch of images is 256.
const GROUPS: [(&str, &str); 4] = [
    ("transformer, batch 1", "Transformer 1"),
    ("transformer, batch 8", "Transformer 8"),
    ("rn50, batch 1", "ResNet-50 1"),
    ("rn50, batch 8", "ResNet-50 8 (paper: 256)"),
];

/// An idea of the paper.
struct Ablation {
    name: &'static str,
    /// The paper's kernels without it, in percent of their speed with it, on a V100 (Table II), by [`GROUPS`].
    published: [f64; GROUPS.len()],
    /// Whether the library's kernels have it. Where they do not, the variant is the kernel with it.
    ours: bool,
    /// The suites of the records of the complete kernel, and of the variant.
    complete: &'static str,
    variant: &'static str,
}

/// The ideas in an operation's kernels.
struct Ablations {
    /// The suite whose problems are measured.
    suite: &'static str,
    /// The suites of the records of complete kernels.
    complete: &'static [&'static str],
    ideas: &'static [Ablation],
    /// How to read the numbers.
    note: &'static str,
    /// Measures a problem with complete kernels, and with each variant.
    measure: fn(&Session, &Task<'_>) -> Result<Vec<Record>>,
}

/// A way to plan, by the suite of its records.
type Variant<P> = (&'static str, P);

/// One of them: it says which type of function a closure is.
const fn variant<P: Copy>(suite: &'static str, prepare: P) -> Variant<P> {
    (suite, prepare)
}

/// Elements that vector instructions load at once.
const VECTOR: u32 = 4;
/// Products that the simulator does with each variant: less than in a sweep, because variants are slow.
const SIMULATED_PRODUCTS: f64 = 0.3e9;

/// Measures a suite of real weights with complete kernels and with kernels that differ in one idea.
///
/// # Errors
/// As for `sweep`, and [`Usage`] for other types than f32 and u32.
pub fn ablation(options: &AblationOptions) -> Result<Outcome> {
    let session = Session::open(&options.measure)?;
    let Types { dtype, index, precision } = session.types;
    if (dtype, index) != (Dtype::F32, Index::U32) || precision == types::Precision::Tf32 {
        let expected = "kernels without an idea have f32 values, u32 indices and fused multiply-adds";
        return Err(Usage(format!("{expected}; leave --dtype, --index and --precision out")).into());
    }
    let ablations = match options.op {
        Ablated::Spmm => &spmm::SPMM,
        Ablated::Sddmm => &sddmm::SDDMM,
    };
    let setup = sweep::setup(&options.setup, &session)?;
    let cases = divisible(sweep::cases(ablations.suite, &setup, &session, SIMULATED_PRODUCTS)?);
    let measure = |task: &Task<'_>| (ablations.measure)(&session, task);
    let records = sweep::over(ablations.suite, &cases, options.measure.seed, measure)?;
    if options.measure.json {
        print(&records, true)?;
    } else {
        let (right, left_out) = chosen::right(&records);
        println!("{}", table(ablations, &right, setup.profile.name()));
        println!("\n{}", notes(ablations, &right));
        if let Some(left_out) = left_out {
            println!("{left_out}");
        }
        if session.device.is_simulator() {
            println!("Ours are the simulator's model of {}, not measurements.", setup.profile.name());
        }
    }
    Ok(outcome(&records))
}

/// The cases whose dense operands every variant can load; tells what is left out.
fn divisible(mut cases: Vec<Case>) -> Vec<Case> {
    let before = cases.len();
    cases.retain(|case| case.spec.width.is_multiple_of(VECTOR as usize));
    if cases.len() < before {
        let left_out = before - cases.len();
        let width = cases.first().and_then(|case| case.op.width).map_or("N", |width| width.title);
        eprintln!("lacuna-bench: {left_out} cases left out, whose {width} is no multiple of {VECTOR}");
    }
    cases
}

/// What stands below the table: the kernels that variants are set against, and how to read the numbers.
fn notes(ablations: &Ablations, records: &[Record]) -> String {
    let mut kernels: BTreeMap<&str, usize> = BTreeMap::new();
    for record in records.iter().filter(|record| ablations.complete.contains(&record.suite.as_str())) {
        *kernels.entry(&record.algorithm).or_default() += 1;
    }
    let kernels: Vec<String> =
        kernels.into_iter().map(|(kernel, cases)| format!("{kernel} in {cases} cases")).collect();
    format!(
        "Speed without an idea over that of the same kernel with it, the mean over the cases. The kernel: {}.\n{}",
        kernels.join(", "),
        ablations.note
    )
}

fn table(ablations: &Ablations, records: &[Record], machine: &str) -> String {
    let mut header = vec!["without".to_string()];
    for (_, title) in GROUPS {
        header.extend([format!("{title}: SC 2020, V100"), "ours".into()]);
    }
    let mut table = new_table(header);
    for ablation in ablations.ideas {
        let mut row = vec![format!("{}{}", ablation.name, if ablation.ours { "" } else { " *" })];
        for ((group, _), published) in GROUPS.into_iter().zip(ablation.published) {
            let ours = speed(records, machine, group, ablation);
            row.push(format!("{published:.1} %"));
            row.push(ours.map_or_else(|| "–".into(), |part| format!("{:.1} %", 100.0 * part)));
        }
        table.add_row(row);
    }
    align_numbers(&mut table, 1);
    table.to_string()
}

/// The speed without an idea over that with it, the mean over the cases of a group, as the paper has it.
fn speed(records: &[Record], machine: &str, group: &str, ablation: &Ablation) -> Option<f64> {
    let us = |record: &Record| record.us_on(machine).filter(|&us| us > 0.0);
    let complete = records.iter().filter(|record| record.suite == ablation.complete && record.group == group);
    let ratios: Vec<f64> = complete
        .filter_map(|complete| {
            let same = |record: &&Record| {
                record.suite == ablation.variant
                    && record.case == complete.case
                    && record.width() == complete.width()
            };
            let (ours, variant) = (us(complete)?, us(records.iter().find(same)?)?);
            Some(if ablation.ours { ours / variant } else { variant / ours })
        })
        .collect();
    (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn speeds_are_means_over_the_cases_of_a_group() {
        let ideas = spmm::SPMM.ideas;
        let mut records = Vec::new();
        for (case, complete, variant) in [("a", 50.0, 100.0), ("b", 100.0, 100.0)] {
            let suites = [ideas[1].complete, ideas[1].variant, ideas[3].variant];
            for (suite, us) in suites.into_iter().zip([complete, variant, variant]) {
                let mut record = record(suite, case, 0.9, [us, 1.0, 1.0]);
                record.group = GROUPS[2].0.into();
                records.push(record);
            }
        }
        let text = table(&spmm::SPMM, &records, "H200");
        let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap();
        let without = line("vector instructions");
        assert!(without.contains("87.9 %") && without.contains("75.0 %"), "{text}");
        // The library's kernels are without it: the variant with it takes twice as long in one of two cases.
        let with = line("index pre-scaling *");
        assert!(with.contains("98.2 %") && with.contains("150.0 %"), "{text}");
        assert_eq!(speed(&records, "H200", GROUPS[0].0, &ideas[1]), None);
        assert!(text.contains("load balancing") && text.contains("96.1 %"), "{text}");
        let notes = notes(&spmm::SPMM, &records);
        assert!(notes.contains(" in 2 cases."), "{notes}");
    }
}
