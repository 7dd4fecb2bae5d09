//! The numbers that papers published, and how ours for the same are worked out of records.
use comfy_table::CellAlignment;

use crate::chosen::Chosen;
use crate::record::{Record, geometric_mean};
use crate::suites::{self, Ours, PublishedNumber};
use crate::table::new_table;

/// The published numbers of a suite beside ours; none where no paper has the suite.
pub(crate) fn table(suite: &str, dtype: &str, chosen: &Chosen<'_>, ours: &str) -> Option<String> {
    let published = suites::published(suite)?;
    let here: Vec<&PublishedNumber> =
        published.numbers.iter().filter(|number| number.dtype == dtype).collect();
    if here.is_empty() {
        return None;
    }
    let title = format!("{}, {}", published.paper, published.machine);
    let mut table = new_table(["number", title.as_str(), "where", ours]);
    for number in here {
        let ours = ours_for(number, chosen).unwrap_or_else(|| "–".into());
        table.add_row([&number.what, &number.value, &number.source, &ours]);
    }
    for column in [1, 3] {
        table.column_mut(column)?.set_cell_alignment(CellAlignment::Right);
    }
    Some(table.to_string())
}

/// Ours for a published number; none where the records lack what it takes.
fn ours_for(number: &PublishedNumber, chosen: &Chosen<'_>) -> Option<String> {
    let chosen = chosen.those(|record| {
        number.group.as_ref().is_none_or(|group| record.group == *group)
            && number.k.is_none_or(|k| record.k == k)
    });
    let times = |speedup: f64| format!("{speedup:.2}×");
    match number.ours.as_ref()? {
        Ours::MeanOver(peer) => geometric_mean(chosen.speedups(peer)).map(times),
        Ours::MostOver(peer) => chosen.speedups(peer).reduce(f64::max).map(times),
        Ours::FasterThan(peer) => {
            let all = chosen.speedups(peer).count();
            let won = chosen.speedups(peer).filter(|&speedup| speedup > 1.0).count();
            (all > 0).then(|| format!("{:.2} %", 100.0 * won as f64 / all as f64))
        }
        Ours::MostTflops => chosen.tflops().reduce(f64::max).map(|most| format!("{most:.2}")),
        Ours::Crossover { of, over } => crossover(&first_group(&chosen), |record| match of {
            None => record.speedup(over),
            Some(of) => Some(record.peers.get(over)?.time.median / record.peers.get(of)?.time.median),
        }),
        Ours::Throughput { cov, over_cov } => {
            let group = first_group(&chosen);
            let flops_per_us = |cov: f64| {
                let record = group.records().iter().find(|record| record.cov == Some(cov))?;
                Some(record.flops as f64 / group.us(record)?)
            };
            Some(format!("{:.1} %", 100.0 * flops_per_us(*cov)? / flops_per_us(*over_cov)?))
        }
        Ours::SumOfUs(cases) => {
            let times: Option<Vec<f64>> = chosen.records().iter().map(|record| chosen.us(record)).collect();
            // A part of a network, as the simulator runs it, has no time that could stand here.
            let times = times.filter(|times| times.len() == *cases)?;
            Some(format!("{:.0}", times.iter().sum::<f64>()))
        }
        // A part of a case, as the simulator runs it, has another name.
        Ours::UsOf(case) => {
            let record = chosen.records().iter().find(|record| record.case == *case)?;
            chosen.us(record).map(|us| format!("{us:.1}"))
        }
    }
}

/// The records of the first record's group: the paper's problem comes first.
fn first_group<'a>(chosen: &Chosen<'a>) -> Chosen<'a> {
    chosen.group(chosen.records().first().map_or("", |record| record.group.as_str()))
}

/// The sparsity from which `speedup` over dense stays above 1, between the cases by its logarithm.
fn crossover(chosen: &Chosen<'_>, speedup: impl Fn(&Record) -> Option<f64>) -> Option<String> {
    let mut points: Vec<(f64, f64)> =
        chosen.records().iter().filter_map(|record| Some((record.sparsity, speedup(record)?.ln()))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (&first, &last) = (points.first()?, points.last()?);
    let Some(below) = points.iter().rposition(|point| point.1 < 0.0) else {
        return Some(format!("below {:.0} % zeros", 100.0 * first.0));
    };
    let Some(&above) = points.get(below + 1) else {
        return Some(format!("above {:.0} % zeros", 100.0 * last.0));
    };
    let below = points[below];
    let sparsity = below.0 + (above.0 - below.0) * -below.1 / (above.1 - below.1);
    Some(format!("{:.1} % zeros", 100.0 * sparsity))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn lines_cross_between_the_cases() {
        // Twice as slow as dense at 50 %, twice as fast at 90 %: they cross in the middle. cuSPARSE never wins.
        let records = [
            record("crossover", "half", 0.5, [200.0, 100.0, 300.0]),
            record("crossover", "more", 0.9, [50.0, 100.0, 300.0]),
        ];
        let text = table("crossover", "f32", &Chosen::of(&records, "H200"), "ours").unwrap();
        assert!(text.contains("70.0 % zeros") && text.contains("above 90 % zeros"), "{text}");
        assert!(text.contains("71 % zeros"), "{text}");
    }

    #[test]
    fn speedups_and_shares() {
        let records = [
            record("dlmc", "a", 0.5, [100.0, 1.0, 400.0]),
            record("dlmc", "b", 0.9, [100.0, 1.0, 50.0]),
            record("dlmc", "c", 0.9, [50.0, 1.0, 50.0]),
        ];
        let text = table("dlmc", "f32", &Chosen::of(&records, "H200"), "ours").unwrap();
        // Times 4, 0.5 and 1: 2 to the third root.
        for number in ["1.26×", "4.00×", "33.33 %", "20.00", "3.58×"] {
            assert!(text.contains(number), "{number} is not in\n{text}");
        }
        assert!(table("dlmc", "bf16", &Chosen::of(&records, "H200"), "ours").is_none());
    }

    #[test]
    fn uneven_rows_are_set_against_even_ones() {
        let records = [(0.0, 100.0), (1.0, 105.0), (1.5, 125.0)]
            .map(|(cov, us)| Record { cov: Some(cov), ..record("imbalance", "rows", 0.75, [us, 1.0, 1.0]) });
        let text = |records: &[Record]| {
            let text = table("imbalance", "f32", &Chosen::of(records, "H200"), "ours").unwrap();
            text.lines().find(|line| line.contains("96.5 %")).unwrap().to_string()
        };
        assert!(text(&records).contains("80.0 %"));
        assert!(text(&records[..2]).contains("–"), "the most uneven rows are missing");
    }

    #[test]
    fn sampled_products_stand_beside_the_same_length_and_the_grid_alone() {
        let graph = |k: usize, cusparse: f64| Record {
            k,
            ..record("sddmm-graphs", "graph", 0.9, [100.0, 1.0, cusparse])
        };
        let records = [graph(32, 300.0), graph(64, 500.0), graph(32, 1200.0)];
        let text = table("sddmm-graphs", "f32", &Chosen::of(&records, "H200"), "ours").unwrap();
        let line = |number: &str| text.lines().find(|line| line.contains(number)).unwrap();
        assert!(line("16.11×").contains("6.00×") && line("15.92×").contains("5.00×"), "{text}");
        assert!(text.contains("PRedS, V100"), "{text}");

        let weights = |group: &str, cusparse: f64| Record {
            group: group.into(),
            ..record("sddmm-rnn", "weights", 0.9, [100.0, 1.0, cusparse])
        };
        let records = [weights("table", 100.0), weights("grid", 200.0)];
        let text = table("sddmm-rnn", "f32", &Chosen::of(&records, "H200"), "ours").unwrap();
        assert!(text.lines().any(|line| line.contains("2.69×") && line.contains("2.00×")), "{text}");
    }

    #[test]
    fn lookups_and_top_n_stand_beside_the_papers_by_their_sizes() {
        let bags = |nonzeros: usize, us: f64| {
            record("nhot", &format!("100 rows of {nonzeros}, 10240×512"), 0.9, [us, 1.0, 1.0])
        };
        let records = [bags(2, 7.0), bags(10, 4.25)];
        let text = table("nhot", "f32", &Chosen::of(&records, "H200"), "ours").unwrap();
        let line = |text: &str, what: &str| {
            let found = text.lines().find(|line| line.contains(what)).unwrap();
            found.split('|').map(|cell| cell.trim().to_string()).collect::<Vec<_>>()
        };
        assert!(text.contains("ACL 2019, V100"), "{text}");
        assert_eq!(line(&text, "of 10 rows")[2..5], ["30", "Table 1", "4.2"]);
        assert_eq!(line(&text, "of 1 row ")[4], "–", "2 nonzeros are not 1");

        let logits = |rows: usize, taken: usize, us: f64| {
            record("topn", &format!("{rows}×10240, top {taken}"), 0.0, [us, 1.0, 1.0])
        };
        let records = [logits(1024, 10, 25.0), logits(1024, 400, 77.0), logits(512, 10, 15.0)];
        let text = table("topn", "f32", &Chosen::of(&records, "H200"), "ours").unwrap();
        assert_eq!(line(&text, "1024 rows, top 10")[4], "25.0");
        assert_eq!(line(&text, "19,650")[4], "77.0");
        assert_eq!(line(&text, "512 rows, top 10")[4], "15.0");
        assert_eq!(line(&text, "1 row of")[4], "–");
    }

    #[test]
    fn a_part_of_a_network_has_no_time() {
        let mut one = record("mobilenet", "width 1.3 block 2", 0.9, [10.0, 1.0, 1.0]);
        one.group = "width 1.3".into();
        let ours = |records: &[Record]| {
            let text = table("mobilenet", "f32", &Chosen::of(records, "H200"), "ours").unwrap();
            let line = text.lines().find(|line| line.contains("348")).unwrap();
            line.split('|').map(str::trim).nth(4).unwrap().to_string()
        };
        assert_eq!(ours(&[one.clone()]), "–");
        assert_eq!(ours(&vec![one; 12]), "120");
    }
}
