//! `ablation`: what each idea of the SC 2020 paper brings (its Table II), by switching it off.
use anyhow::Result;
use comfy_table::CellAlignment;
use lacuna::{CsrMatrix, Spmm, SpmmOptions, choose};

use super::run::{outcome, print};
use super::sweep;
use crate::cli::AblationOptions;
use crate::exit::Outcome;
use crate::record::Record;
use crate::session::Session;
use crate::spmm::{Prepare, measure_variants};
use crate::table::new_table;

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
    /// The kernels without it, in percent of the complete kernels' speed, on a V100 (Table II), by [`GROUPS`].
    published: [f64; GROUPS.len()],
    /// How the product is planned without it; none where our kernels do not have the idea.
    without: Option<Prepare>,
}

const ABLATIONS: [Ablation; 4] = [
    Ablation { name: "load balancing", published: [96.1, 88.9, 91.7, 78.5], without: None },
    Ablation {
        name: "vector instructions",
        published: [100.1, 80.9, 87.9, 64.8],
        without: Some(|device, problem| {
            let a = CsrMatrix::new(device, &problem.a)?;
            let scalar = choose(&lacuna::Problem::of(&a, problem.n, 1));
            let options = SpmmOptions::default().algorithm(scalar[0].algorithm);
            let plan = Spmm::plan_with(&a, problem.n, options)?;
            Ok((a, plan))
        }),
    },
    Ablation { name: "residue unrolling", published: [92.0, 94.1, 87.8, 92.6], without: None },
    Ablation { name: "index pre-scaling", published: [100.6, 100.6, 98.2, 100.3], without: None },
];

/// What the library does.
const COMPLETE: Prepare = |device, problem| {
    let a = CsrMatrix::new(device, &problem.a)?;
    let plan = Spmm::plan(&a, problem.n)?;
    Ok((a, plan))
};
/// Products that the simulator does with each variant: less than in a sweep, because variants are slow.
const SIMULATED_PRODUCTS: f64 = 0.3e9;
/// The suite of the complete kernels' records.
const SUITE: &str = "ablation";

/// Measures the suite `dlmc` with the complete kernels and without each idea.
///
/// # Errors
/// As for `sweep`.
pub fn ablation(options: &AblationOptions) -> Result<Outcome> {
    let session = Session::open(&options.measure)?;
    let setup = sweep::setup(&options.setup, &session)?;
    let cases = sweep::cases("dlmc", &setup, &session, SIMULATED_PRODUCTS)?;
    let mut variants = vec![(SUITE.to_string(), COMPLETE)];
    variants.extend(ABLATIONS.iter().filter_map(|ablation| Some((suite(ablation), ablation.without?))));
    let records =
        sweep::over(&cases, options.measure.seed, |problem| measure_variants(&session, problem, &variants))?;
    if options.measure.json {
        print(&records, true)?;
    } else {
        println!("{}", table(&records, setup.profile.name()));
        if session.device.is_simulator() {
            println!("\nOurs are the simulator's model of {}, not measurements.", setup.profile.name());
        }
    }
    Ok(outcome(&records))
}

/// The suite of the records without an idea.
fn suite(ablation: &Ablation) -> String {
    format!("{SUITE}: no {}", ablation.name)
}

fn table(records: &[Record], machine: &str) -> String {
    let mut header = vec!["without".to_string()];
    for (_, title) in GROUPS {
        header.extend([format!("{title}: SC 2020, V100"), "ours".into()]);
    }
    let mut table = new_table(header);
    for ablation in &ABLATIONS {
        let mut row = vec![ablation.name.to_string()];
        for ((group, _), published) in GROUPS.into_iter().zip(ablation.published) {
            let ours = speed(records, machine, group, &suite(ablation));
            row.push(format!("{published:.1} %"));
            row.push(ours.map_or_else(|| "–".into(), |part| format!("{:.1} %", 100.0 * part)));
        }
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// The speed without an idea over the complete kernels', the mean over the cases of a group, as the paper has it.
fn speed(records: &[Record], machine: &str, group: &str, suite: &str) -> Option<f64> {
    let us = |record: &Record| record.us_on(machine).filter(|&us| us > 0.0);
    let complete = records.iter().filter(|record| record.suite == SUITE && record.group == group);
    let ratios: Vec<f64> = complete
        .filter_map(|complete| {
            let same = |record: &&Record| {
                record.suite == suite && record.case == complete.case && record.n == complete.n
            };
            Some(us(complete)? / us(records.iter().find(same)?)?)
        })
        .collect();
    (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::record;

    #[test]
    fn speeds_are_means_over_the_cases_of_a_group() {
        let mut records = Vec::new();
        for (case, complete, without) in [("a", 50.0, 100.0), ("b", 100.0, 100.0)] {
            for (suite, us) in [(SUITE.to_string(), complete), (suite(&ABLATIONS[1]), without)] {
                let mut record = record(&suite, case, 0.9, [us, 1.0, 1.0]);
                record.group = GROUPS[2].0.into();
                records.push(record);
            }
        }
        let text = table(&records, "H200");
        let line = text.lines().find(|line| line.contains("vector instructions")).unwrap();
        assert!(line.contains("87.9 %") && line.contains("75.0 %"), "{text}");
        assert_eq!(speed(&records, "H200", GROUPS[0].0, &suite(&ABLATIONS[1])), None);
        assert!(text.contains("load balancing") && text.contains("96.1 %"), "{text}");
    }
}
