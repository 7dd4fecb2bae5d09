//! `ablation`: what each idea of the SC 2020 paper brings (its Table II), by switching it off.
use std::collections::BTreeMap;

use anyhow::Result;
use lacuna::matrix::Csr;
use lacuna::spmm::{Algorithm, Idea};
use lacuna::{CsrMatrix, Device, Precision, RowOrder, Spmm, spmm};

use super::run::{outcome, print};
use super::sweep;
use crate::chosen;
use crate::cli::AblationOptions;
use crate::record::Record;
use crate::session::Session;
use crate::spmm::{Prepare, measure_variants};
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
    /// How the product is planned with the idea left out, or put in.
    variant: Prepare,
}

const ABLATIONS: [Ablation; 4] = [
    Ablation {
        name: "load balancing",
        published: [96.1, 88.9, 91.7, 78.5],
        ours: true,
        variant: |device, a, n| plan(device, a, n, RowOrder::Unsorted, Shape::complete),
    },
    Ablation {
        name: "vector instructions",
        published: [100.1, 80.9, 87.9, 64.8],
        ours: true,
        variant: |device, a, n| plan(device, a, n, RowOrder::LongestFirst, Shape::scalar),
    },
    Ablation {
        name: "residue unrolling",
        published: [92.0, 94.1, 87.8, 92.6],
        ours: true,
        variant: |device, a, n| {
            plan(device, a, n, RowOrder::LongestFirst, |shape| shape.differing_in(Idea::ResidueHandling))
        },
    },
    Ablation {
        name: "index pre-scaling",
        published: [100.6, 100.6, 98.2, 100.3],
        ours: false,
        variant: |device, a, n| {
            plan(device, a, n, RowOrder::LongestFirst, |shape| shape.differing_in(Idea::IndexPreScaling))
        },
    },
];

/// Lanes, subwarps and warps of a kernel that each variant has.
#[derive(Clone, Copy)]
struct Shape {
    lanes: u32,
    split: u32,
}

/// One for wide problems, and one for narrow ones.
const SHAPES: [Shape; 2] = [Shape { lanes: 32, split: 1 }, Shape { lanes: 8, split: 4 }];
/// Columns a lane of those that use vector instructions, and warps of a block.
const VECTOR: u32 = 4;
const WARPS: u32 = 8;

impl Shape {
    /// The library's kernel.
    fn complete(self) -> Algorithm {
        self.of_columns(VECTOR)
    }
    /// The same with one column a lane.
    fn scalar(self) -> Algorithm {
        self.of_columns(1)
    }
    fn of_columns(self, vector: u32) -> Algorithm {
        Algorithm::RowSplit { vector, lanes: self.lanes, split: self.split, warps: WARPS }
    }
    /// The same but for an idea.
    fn differing_in(self, idea: Idea) -> Algorithm {
        let Self { lanes, split } = self;
        Algorithm::Ablation { idea, vector: VECTOR, lanes, split, warps: WARPS }
    }
}

/// What the variants are set against.
const COMPLETE: Prepare = |device, a, n| plan(device, a, n, RowOrder::LongestFirst, Shape::complete);

/// Plans a product by a kernel of the shape that the heuristic prefers of [`SHAPES`], whichever the variant.
fn plan(
    device: &Device,
    a: &Csr<f32>,
    n: usize,
    order: RowOrder,
    algorithm: impl Fn(Shape) -> Algorithm,
) -> lacuna::Result<(CsrMatrix, Spmm)> {
    let a = CsrMatrix::with_row_order(device, a, order)?;
    let precision = Precision::Fma;
    let legal = spmm::choose(&spmm::Problem { precision, ..spmm::Problem::of(&a, n, VECTOR) });
    let of = |algorithm| SHAPES.into_iter().find(|shape| shape.complete() == algorithm);
    let shape = legal.iter().find_map(|choice| of(choice.algorithm)).unwrap_or(SHAPES[0]);
    let options = spmm::Options::default().precision(precision).algorithm(algorithm(shape));
    let plan = Spmm::plan_with(&a, n, options)?;
    Ok((a, plan))
}

/// Products that the simulator does with each variant: less than in a sweep, because variants are slow.
const SIMULATED_PRODUCTS: f64 = 0.3e9;
/// The suite of the complete kernels' records.
const SUITE: &str = "ablation";

/// Measures the suite `dlmc` with complete kernels and with kernels that differ in one idea.
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
    let setup = sweep::setup(&options.setup, &session)?;
    let cases = divisible(sweep::cases("dlmc", &setup, &session, SIMULATED_PRODUCTS)?);
    let mut variants = vec![(SUITE.to_string(), COMPLETE)];
    variants.extend(ABLATIONS.iter().map(|ablation| (suite(ablation), ablation.variant)));
    let records =
        sweep::over(SUITE, &cases, options.measure.seed, |task| measure_variants(&session, task, &variants))?;
    if options.measure.json {
        print(&records, true)?;
    } else {
        let (right, left_out) = chosen::right(&records);
        println!("{}", table(&right, setup.profile.name()));
        println!("\n{}", notes(&right));
        if let Some(left_out) = left_out {
            println!("{left_out}");
        }
        if session.device.is_simulator() {
            println!("Ours are the simulator's model of {}, not measurements.", setup.profile.name());
        }
    }
    Ok(outcome(&records))
}

/// The cases whose N every variant can do; tells what is left out.
fn divisible(mut cases: Vec<Case>) -> Vec<Case> {
    let before = cases.len();
    cases.retain(|case| case.spec.width.is_multiple_of(VECTOR as usize));
    if cases.len() < before {
        let left_out = before - cases.len();
        eprintln!("lacuna-bench: {left_out} cases left out, whose N is no multiple of {VECTOR}");
    }
    cases
}

/// The suite of the records of a variant.
fn suite(ablation: &Ablation) -> String {
    format!("{SUITE}: {} {}", if ablation.ours { "no" } else { "with" }, ablation.name)
}

/// What stands below the table: the kernels that variants are set against, and how to read the numbers.
fn notes(records: &[Record]) -> String {
    let mut kernels: BTreeMap<&str, usize> = BTreeMap::new();
    for record in records.iter().filter(|record| record.suite == SUITE) {
        *kernels.entry(&record.algorithm).or_default() += 1;
    }
    let kernels: Vec<String> =
        kernels.into_iter().map(|(kernel, cases)| format!("{kernel} in {cases} cases")).collect();
    format!(
        "Speed without an idea over that of the same kernel with it, the mean over the cases. The kernel: {}.\n\
         * The library's kernels do without index pre-scaling: theirs is the speed without, and the other that of a \
         variant with it.",
        kernels.join(", ")
    )
}

fn table(records: &[Record], machine: &str) -> String {
    let mut header = vec!["without".to_string()];
    for (_, title) in GROUPS {
        header.extend([format!("{title}: SC 2020, V100"), "ours".into()]);
    }
    let mut table = new_table(header);
    for ablation in &ABLATIONS {
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
    let suite = suite(ablation);
    let us = |record: &Record| record.us_on(machine).filter(|&us| us > 0.0);
    let complete = records.iter().filter(|record| record.suite == SUITE && record.group == group);
    let ratios: Vec<f64> = complete
        .filter_map(|complete| {
            let same = |record: &&Record| {
                record.suite == suite && record.case == complete.case && record.n == complete.n
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
        let mut records = Vec::new();
        for (case, complete, variant) in [("a", 50.0, 100.0), ("b", 100.0, 100.0)] {
            let suites = [SUITE.to_string(), suite(&ABLATIONS[1]), suite(&ABLATIONS[3])];
            for (suite, us) in suites.into_iter().zip([complete, variant, variant]) {
                let mut record = record(&suite, case, 0.9, [us, 1.0, 1.0]);
                record.group = GROUPS[2].0.into();
                records.push(record);
            }
        }
        let text = table(&records, "H200");
        let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap();
        let without = line("vector instructions");
        assert!(without.contains("87.9 %") && without.contains("75.0 %"), "{text}");
        // The library's kernels are without it: the variant with it takes twice as long in one of two cases.
        let with = line("index pre-scaling *");
        assert!(with.contains("98.2 %") && with.contains("150.0 %"), "{text}");
        assert_eq!(speed(&records, "H200", GROUPS[0].0, &ABLATIONS[1]), None);
        assert!(text.contains("load balancing") && text.contains("96.1 %"), "{text}");
        assert!(notes(&records).contains(" in 2 cases."), "{}", notes(&records));
    }
}
