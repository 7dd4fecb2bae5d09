//! The numbers that papers published, and how ours for the same are worked out of records.
use comfy_table::CellAlignment;

use crate::record::{Record, geometric_mean};
use crate::suites::{imbalance, mobilenet, nhot, sddmm, topn};
use crate::summary::Chosen;
use crate::table::new_table;

/// A published number of a suite.
struct Published {
    suite: &'static str,
    dtype: &'static str,
    what: &'static str,
    /// As printed, on a V100.
    value: &'static str,
    /// Table, figure or section.
    source: &'static str,
    /// Ours, from the same suite's records; none where they lack what it takes.
    ours: fn(&Chosen<'_>) -> Option<String>,
}

/// The papers' numbers are all of a V100.
const MACHINE: &str = "V100";
/// The papers' names in the table: *Sparse GPU Kernels for Deep Learning*, with CUDA 10.1; and *Exploiting Online Locality and
/// Reduction Parallelism for Sampled Dense Matrix Multiplication on GPUs*, over 956 matrices of SuiteSparse; and *Accelerating
/// Sparse Matrix Operations in Neural Networks on Graphics Processing Units*.
const SC20: &str = "SC 2020";
const PREDS: &str = "PRedS";
const ACL19: &str = "ACL 2019";
/// What the paper's cuSPARSE is: the algorithm that it takes by default.
const CUSPARSE: &str = "cusparse_default";
/// The paper's dense baseline.
const DENSE: &str = "cublas_f32";

/// A line of the list below.
const fn published(
    [suite, dtype]: [&'static str; 2],
    what: &'static str,
    value: &'static str,
    source: &'static str,
    ours: fn(&Chosen<'_>) -> Option<String>,
) -> Published {
    Published { suite, dtype, what, value, source, ours }
}

/// The lists of the papers.
#[rustfmt::skip]
const PUBLISHED: [Published; 46] = [
    published(["dlmc", "f32"], "geometric mean over cuSPARSE", "3.58×", "Table I", mean_over_cusparse),
    published(["dlmc", "f32"], "most over cuSPARSE", "14.2×", "Table I", most_over_cusparse),
    published(["dlmc", "f32"], "problems faster than cuSPARSE", "99.75 %", "section VII-A", faster_than_cusparse),
    published(["dlmc", "f32"], "most TFLOP/s", "4.29", "Table I", most_tflops),
    published(["dlmc", "f16"], "geometric mean over cuSPARSE", "5.97×", "Table I", mean_over_cusparse),
    published(["dlmc", "f16"], "most over cuSPARSE", "297.5×", "Table I", most_over_cusparse),
    published(["dlmc", "f16"], "problems faster than cuSPARSE", "99.7 %", "section VII-A", faster_than_cusparse),
    published(["dlmc", "f16"], "most TFLOP/s", "5.57", "Table I", most_tflops),
    published(["rnn", "f32"], "geometric mean over cuSPARSE", "3.47×", "Fig. 10", mean_over_cusparse),
    published(["rnn", "f32"], "most over cuSPARSE", "4.45×", "Fig. 10", most_over_cusparse),
    published(["rnn", "f32"], "geometric means over ASpT and MergeSpmm", "1.56×, 1.59×", "Fig. 10", not_measured),
    published(["crossover", "f32"], "faster than dense from", "71 % zeros", "Fig. 1", our_crossover),
    published(["crossover", "f32"], "cuSPARSE faster than dense from", "97.9 % zeros (14× fewer nonzeros)", "Fig. 1", cusparse_crossover),
    published(["imbalance", "f32"], "throughput of the most uneven rows over even ones", "96.5 %", "Fig. 7", balance),
    published(["imbalance", "f32"], "the same, rows in the matrix's order", "47.5 %", "Fig. 7", not_measured),
    published(["mobilenet", "f32"], "us a frame, width 1.3: whole network; ours: 1×1 alone", "348", "Table IV", |c| frame(c, 0)),
    published(["mobilenet", "f32"], "the same, width 1.4", "370", "Table IV", |c| frame(c, 1)),
    published(["mobilenet", "f32"], "the same, width 1.5", "394", "Table IV", |c| frame(c, 2)),
    published(["mobilenet", "f32"], "the same, width 1.6", "423", "Table IV", |c| frame(c, 3)),
    published(["mobilenet", "f32"], "the same, width 1.7", "449", "Table IV", |c| frame(c, 4)),
    published(["mobilenet", "f32"], "the same, width 1.8", "477", "Table IV", |c| frame(c, 5)),
    published([sddmm::DLMC, "f32"], "geometric mean over cuSPARSE", "2.19×", "Table I", mean_over_cusparse),
    published([sddmm::DLMC, "f32"], "most over cuSPARSE", "6.58×", "Table I", most_over_cusparse),
    published([sddmm::DLMC, "f32"], "problems faster than cuSPARSE", "93.34 %", "section VII-A", faster_than_cusparse),
    published([sddmm::DLMC, "f32"], "most TFLOP/s", "4.11", "Table I", most_tflops),
    published([sddmm::RNN, "f32"], "geometric mean over cuSPARSE", "2.69×", "Fig. 10", |c| mean_over_cusparse(&c.group(sddmm::GRID))),
    published([sddmm::RNN, "f32"], "most over cuSPARSE", "3.51×", "Fig. 10", |c| most_over_cusparse(&c.group(sddmm::GRID))),
    published([sddmm::GRAPHS, "f32"], "geometric mean over cuSPARSE, K = 32", "16.11×", "Table II", |c| of_length(c, 32)),
    published([sddmm::GRAPHS, "f32"], "the same, K = 64", "15.92×", "Table II", |c| of_length(c, 64)),
    published([sddmm::GRAPHS, "f32"], "the same, K = 128", "12.38×", "Table II", |c| of_length(c, 128)),
    published([sddmm::GRAPHS, "f32"], "the same, K = 256", "13.42×", "Table II", |c| of_length(c, 256)),
    published([sddmm::GRAPHS, "f32"], "the same, K = 512", "15.86×", "Table II", |c| of_length(c, 512)),
    // On an RTX 2080 11.24; for a V100 there is none.
    published([sddmm::GRAPHS, "f32"], "the same, K = 1024", "–", "Table II", |c| of_length(c, 1024)),
    published([nhot::NAME, "f32"], "us of 100 sums of 1 row", "20", "Table 1", |c| lookup(c, 1)),
    published([nhot::NAME, "f32"], "the same, of 10 rows", "30", "Table 1", |c| lookup(c, 10)),
    published([nhot::NAME, "f32"], "the same, of 50 rows", "60", "Table 1", |c| lookup(c, 50)),
    published([nhot::NAME, "f32"], "the same, of 100 rows", "110", "Table 1", |c| lookup(c, 100)),
    published([topn::NAME, "f32"], "us of 1 row of 10,240, top 10", "70", "Table 2", |c| taken(c, 1, 10)),
    published([topn::NAME, "f32"], "the same, top 100", "570", "Table 2", |c| taken(c, 1, 100)),
    published([topn::NAME, "f32"], "the same, top 400", "4490", "Table 2", |c| taken(c, 1, 400)),
    published([topn::NAME, "f32"], "us of 512 rows, top 10", "140", "Table 2", |c| taken(c, 512, 10)),
    published([topn::NAME, "f32"], "the same, top 100", "1150", "Table 2", |c| taken(c, 512, 100)),
    published([topn::NAME, "f32"], "the same, top 400", "9050", "Table 2", |c| taken(c, 512, 400)),
    published([topn::NAME, "f32"], "us of 1024 rows, top 10", "250", "Table 2", |c| taken(c, 1024, 10)),
    published([topn::NAME, "f32"], "the same, top 100", "2370", "Table 2", |c| taken(c, 1024, 100)),
    published([topn::NAME, "f32"], "the same, top 400", "19,650", "Table 2", |c| taken(c, 1024, 400)),
];

/// The paper that has a suite.
fn paper(suite: &str) -> &'static str {
    match suite {
        sddmm::GRAPHS => PREDS,
        nhot::NAME | topn::NAME => ACL19,
        _ => SC20,
    }
}

/// The published numbers of a suite beside ours; none where no paper has the suite.
pub(crate) fn table(suite: &str, dtype: &str, chosen: &Chosen<'_>, ours: &str) -> Option<String> {
    let here: Vec<_> =
        PUBLISHED.iter().filter(|number| number.suite == suite && number.dtype == dtype).collect();
    if here.is_empty() {
        return None;
    }
    let published = format!("{}, {MACHINE}", paper(suite));
    let mut table = new_table(["number", published.as_str(), "where", ours]);
    for number in here {
        let ours = (number.ours)(chosen).unwrap_or_else(|| "–".into());
        table.add_row([number.what, number.value, number.source, &ours]);
    }
    for column in [1, 3] {
        table.column_mut(column)?.set_cell_alignment(CellAlignment::Right);
    }
    Some(table.to_string())
}

/// For what we do not run.
fn not_measured(_: &Chosen<'_>) -> Option<String> {
    None
}

fn mean_over_cusparse(chosen: &Chosen<'_>) -> Option<String> {
    geometric_mean(chosen.speedups(CUSPARSE)).map(|mean| format!("{mean:.2}×"))
}

/// Over cuSPARSE with sums of `k` products.
fn of_length(chosen: &Chosen<'_>, k: usize) -> Option<String> {
    mean_over_cusparse(&chosen.those(|record| record.k == k))
}

fn most_over_cusparse(chosen: &Chosen<'_>) -> Option<String> {
    chosen.speedups(CUSPARSE).reduce(f64::max).map(|most| format!("{most:.2}×"))
}

fn faster_than_cusparse(chosen: &Chosen<'_>) -> Option<String> {
    let all = chosen.speedups(CUSPARSE).count();
    let won = chosen.speedups(CUSPARSE).filter(|&speedup| speedup > 1.0).count();
    (all > 0).then(|| format!("{:.2} %", 100.0 * won as f64 / all as f64))
}

fn most_tflops(chosen: &Chosen<'_>) -> Option<String> {
    chosen.tflops().reduce(f64::max).map(|most| format!("{most:.2}"))
}

fn our_crossover(chosen: &Chosen<'_>) -> Option<String> {
    crossover(&first_group(chosen), |record| record.speedup(DENSE))
}

fn cusparse_crossover(chosen: &Chosen<'_>) -> Option<String> {
    crossover(&first_group(chosen), |record| {
        Some(record.peers.get(DENSE)?.time.median / record.peers.get(CUSPARSE)?.time.median)
    })
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

/// The throughput of the paper's problem with the most uneven rows over that with even ones.
fn balance(chosen: &Chosen<'_>) -> Option<String> {
    let group = first_group(chosen);
    let tflops = |cov: f64| {
        let record = group.records().iter().find(|record| record.cov == Some(cov))?;
        Some(record.flops as f64 / group.us(record)?)
    };
    let (even, uneven) = (tflops(imbalance::EVEN)?, tflops(imbalance::MOST_UNEVEN)?);
    Some(format!("{:.1} %", 100.0 * uneven / even))
}

/// The time of a network's sparse 1×1 convolutions together.
fn frame(chosen: &Chosen<'_>, width: usize) -> Option<String> {
    let network = chosen.group(&mobilenet::group(mobilenet::WIDTHS[width]));
    let times: Option<Vec<f64>> = network.records().iter().map(|record| network.us(record)).collect();
    // A part of the network, as the simulator runs it, has no time that could stand here.
    let times = times.filter(|times| times.len() == mobilenet::LAYERS)?;
    Some(format!("{:.0}", times.iter().sum::<f64>()))
}

/// The time of the paper's lookup of so many nonzeros a bag.
fn lookup(chosen: &Chosen<'_>, nonzeros: usize) -> Option<String> {
    us_of(chosen, &nhot::name(nonzeros))
}

/// The time of taking so many of each of the paper's rows.
fn taken(chosen: &Chosen<'_>, rows: usize, taken: usize) -> Option<String> {
    us_of(chosen, &topn::name(rows, taken))
}

/// The time of a case. A part of one, as the simulator runs it, has another name.
fn us_of(chosen: &Chosen<'_>, case: &str) -> Option<String> {
    let record = chosen.records().iter().copied().find(|record| record.case == case)?;
    chosen.us(record).map(|us| format!("{us:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::record;

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
        assert_eq!(balance(&Chosen::of(&records, "H200")).unwrap(), "80.0 %");
        assert_eq!(balance(&Chosen::of(&records[..2], "H200")), None, "the most uneven rows are missing");
    }

    #[test]
    fn sampled_products_stand_beside_the_same_length_and_the_grid_alone() {
        let graph = |k: usize, cusparse: f64| Record {
            k,
            ..record(sddmm::GRAPHS, "graph", 0.9, [100.0, 1.0, cusparse])
        };
        let records = [graph(32, 300.0), graph(64, 500.0), graph(32, 1200.0)];
        let text = table(sddmm::GRAPHS, "f32", &Chosen::of(&records, "H200"), "ours").unwrap();
        let line = |number: &str| text.lines().find(|line| line.contains(number)).unwrap();
        assert!(line("16.11×").contains("6.00×") && line("15.92×").contains("5.00×"), "{text}");
        assert!(text.contains("PRedS, V100"), "{text}");

        let weights = |group: &str, cusparse: f64| Record {
            group: group.into(),
            ..record(sddmm::RNN, "weights", 0.9, [100.0, 1.0, cusparse])
        };
        let records = [weights("table", 100.0), weights(sddmm::GRID, 200.0)];
        let text = table(sddmm::RNN, "f32", &Chosen::of(&records, "H200"), "ours").unwrap();
        assert!(text.lines().any(|line| line.contains("2.69×") && line.contains("2.00×")), "{text}");
    }

    #[test]
    fn lookups_and_top_n_stand_beside_the_papers_by_their_sizes() {
        let bags = |nonzeros: usize, us: f64| record(nhot::NAME, &nhot::name(nonzeros), 0.9, [us, 1.0, 1.0]);
        let records = [bags(2, 7.0), bags(10, 4.25)];
        let text = table(nhot::NAME, "f32", &Chosen::of(&records, "H200"), "ours").unwrap();
        let line = |text: &str, what: &str| {
            let found = text.lines().find(|line| line.contains(what)).unwrap();
            found.split('|').map(|cell| cell.trim().to_string()).collect::<Vec<_>>()
        };
        assert!(text.contains("ACL 2019, V100"), "{text}");
        assert_eq!(line(&text, "of 10 rows")[2..5], ["30", "Table 1", "4.2"]);
        assert_eq!(line(&text, "of 1 row ")[4], "–", "2 nonzeros are not 1");

        let logits = |rows: usize, taken: usize, us: f64| {
            record(topn::NAME, &topn::name(rows, taken), 0.0, [us, 1.0, 1.0])
        };
        let records = [logits(1024, 10, 25.0), logits(1024, 400, 77.0), logits(512, 10, 15.0)];
        let text = table(topn::NAME, "f32", &Chosen::of(&records, "H200"), "ours").unwrap();
        assert_eq!(line(&text, "1024 rows, top 10")[4], "25.0");
        assert_eq!(line(&text, "19,650")[4], "77.0");
        assert_eq!(line(&text, "512 rows, top 10")[4], "15.0");
        assert_eq!(line(&text, "1 row of")[4], "–");
    }

    #[test]
    fn a_part_of_a_network_has_no_time() {
        let mut one = record("mobilenet", "width 1.3 block 2", 0.9, [10.0, 1.0, 1.0]);
        one.group = mobilenet::group(1.3);
        assert_eq!(frame(&Chosen::of(&[one.clone()], "H200"), 0), None);
        let all = vec![one; mobilenet::LAYERS];
        assert_eq!(frame(&Chosen::of(&all, "H200"), 0).unwrap(), "120");
    }
}
