use std::collections::BTreeSet;

use lacuna::matrix::generate;
use lacuna::matrix::io::mtx;
use lacuna_cases::data::{Data, Folder, named_files};
use lacuna_cases::{Draw, Problem, Spec, Values};

use super::case::sparse;
use super::*;
use crate::profile::Profile;
use crate::spmm;

fn setup(profile: &str) -> Setup {
    Setup { profile: Profile::named(profile).unwrap(), data: None, case: None, limit: None }
}

/// The cases of a suite on an H200.
pub(super) fn cases_of(name: &str) -> Vec<Case> {
    find(name, &setup("h200")).unwrap()
}

/// A uniform case of SpMM, named by its numbers.
pub(super) fn uniform(m: usize, k: usize, n: usize, sparsity: f64) -> Case {
    let names = [format!("{m} {k} {n} {sparsity}"), String::new()];
    sparse(&spmm::OPERATION, names, [m, k, n], Draw::Uniform { sparsity })
}

/// What the collection is like, by the file of suite `dlmc`.
fn collection() -> &'static dlmc::Collection {
    named("dlmc").unwrap().dlmc.as_ref().unwrap()
}

/// What `read` makes of a folder of real data, where it is.
fn of_real<T>(folder: &'static str, read: impl FnOnce(&std::path::Path) -> T) -> Option<T> {
    let mut data = Data::find(None).unwrap();
    data.unpack(folder);
    let Folder::At(folder) = data.folder(folder) else {
        eprintln!("skipped: there is no folder of real data");
        return None;
    };
    Some(read(&folder))
}

#[test]
fn files_have_the_cases_and_operations_that_they_expect() {
    for (name, suite) in SUITES.iter().filter(|(_, suite)| !suite.by_host) {
        let expected = suite.expect.as_ref().unwrap_or_else(|| panic!("{name} expects nothing"));
        let cases = cases_of(name);
        assert_eq!(cases.len(), expected.cases, "{name}");
        assert!(cases.iter().all(|case| case.op.name == expected.operation), "{name}");
        let peers = expected.speedups.iter().flat_map(|speedups| speedups.at_least.keys());
        for peer in peers {
            assert!(cases[0].op.peers.iter().any(|(known, _)| known == peer), "{name}: {peer}");
        }
    }
    let has_a_suite = |op: &crate::operation::Op| {
        SUITES.iter().any(|(_, suite)| suite.expect.as_ref().is_some_and(|it| it.operation == op.name))
    };
    assert!(crate::OPERATIONS.iter().all(has_a_suite), "an operation has no suite");
    let count = |name, profile| find(name, &setup(profile)).unwrap().len();
    assert_eq!((count("imbalance", "v100"), count("crossover", "v100"), count("rnn", "v100")), (7, 13, 72));
}

#[test]
fn names_tell_cases_apart() {
    for (name, _) in FILES.iter().filter(|(name, _)| !name.ends_with("dlmc")) {
        let cases = cases_of(name);
        let keys: BTreeSet<_> = cases.iter().map(|case| (&case.spec.name, case.spec.width)).collect();
        assert_eq!(keys.len(), cases.len(), "{name}");
    }
}

#[test]
fn another_name_lists_the_suites() {
    let error = find("help", &setup("h200")).unwrap_err().to_string();
    assert!(FILES.iter().all(|(name, _)| error.contains(name)), "{error}");
}

#[test]
fn sizes_are_those_of_the_gradient() {
    let cases = cases_of("sddmm-rnn");
    let sizes = |name: &str| {
        let Case { op, spec } = cases.iter().find(|case| case.spec.name == name).unwrap();
        op.sizes(spec.rows, spec.cols, spec.width)
    };
    assert_eq!(sizes("8192 128 2048 0.9"), [8192, 128, 2048]);
    assert_eq!(sizes("table 12288 64 12288 0.95"), [12_288, 64, 12_288]);
    assert_eq!(cases.iter().filter(|case| case.spec.group == "grid").count(), 72);
}

#[test]
fn layers_of_a_network_fit_each_other() {
    let cases = cases_of("mobilenet");
    for network in cases.chunks(12) {
        assert!(network.iter().all(|case| case.spec.group == network[0].spec.group));
        let fits = |pair: &[Case]| {
            pair[0].spec.rows == pair[1].spec.cols && pair[0].spec.width >= pair[1].spec.width
        };
        assert!(network.windows(2).all(fits));
    }
}

#[test]
fn bags_have_as_many_ones_each_as_the_paper_names() {
    for (case, nonzeros) in cases_of("nhot").iter().zip([1, 2, 3, 4, 5, 10, 50, 100]) {
        let problem = Problem::draw(&case.spec, 1).unwrap();
        let a = problem.sparse().unwrap();
        assert!((0..100).all(|row| a.pattern().row_columns(row).len() == nonzeros), "{}", case.spec.name);
        assert!(a.values().iter().all(|&value| value == 1.0));
        assert_eq!(case.op.values, Some(Values::Ones));
        assert_eq!(case.op.sizes(problem.rows(), problem.cols(), problem.width), [100, 10_240, 512]);
    }
}

#[test]
fn masks_have_as_many_nonzeros_as_are_counted_on() {
    let cases = cases_of("softmax");
    let counted = |at: usize| cases[at].spec.size().elements;
    let drawn = Problem::draw(&cases[1].spec, 1).unwrap().matrix.elements() as f64;
    assert!((drawn / counted(1) - 1.0).abs() < 0.02, "{drawn}, not {}", counted(1));
    // 12,288 tokens: 3.1 million in the band, 3.6 million below.
    assert!((6.6e6..6.8e6).contains(&counted(4)) && (7.5e6..7.6e6).contains(&counted(9)));
}

#[test]
fn drawn_weights_are_like_the_table() {
    let cases = collection().drawn();
    assert_eq!(cases.len(), 216);
    for Case { spec, .. } in &cases {
        if spec.rows * spec.cols >= 300_000 || spec.width >= 1000 {
            continue;
        }
        let Some(&Draw::Varied { mean, cov }) = spec.pattern() else { panic!("{}", spec.name) };
        let stats = Problem::draw(spec, 1).unwrap().sparse().unwrap().pattern().stats();
        let few = 4.0 / (spec.rows as f64).sqrt();
        assert!((stats.mean_row_length / mean - 1.0).abs() < few * cov.max(0.1), "{}", spec.name);
        assert!((stats.row_length_cov / cov - 1.0).abs() < 0.1 + few, "{}: {stats:?}", spec.name);
    }
}

#[test]
fn a_part_of_the_weights_has_every_network_and_batch_and_every_sparsity() {
    let part = thinned(collection().drawn(), 48);
    let groups: BTreeSet<&str> = part.iter().map(|case| case.spec.group.as_str()).collect();
    let percent = |case: &Case| (100.0 * case.spec.level().unwrap()).round() as usize;
    let sparsities: BTreeSet<usize> = part.iter().map(percent).collect();
    assert_eq!((groups.len(), sparsities.len()), (4, 4), "{groups:?} {sparsities:?}");
}

#[test]
fn n_of_weights_is_that_of_the_paper() {
    let cases = collection().drawn();
    let ns = |layer: &str| -> Vec<usize> {
        let here = cases.iter().map(|case| &case.spec);
        let here = here.filter(|spec| spec.name.contains(layer) && spec.name.contains("/0.9/"));
        here.map(|spec| spec.width).collect()
    };
    assert_eq!(ns("bottleneck_1_block_group4_1_1"), [52, 392]);
    assert_eq!(ns("final_dense"), [4, 8]);
    assert_eq!(ns("encoder_layer_5_ffn_conv1"), [256, 2048]);
}

/// The table against the files it was measured from, where they are.
#[test]
fn the_table_of_weights_is_that_of_the_real_matrices() {
    let read = |folder: &std::path::Path| -> Vec<Case> {
        let weights = lacuna_cases::dlmc::weights(folder).unwrap();
        weights.into_iter().flat_map(|weights| collection().real(weights).unwrap()).collect()
    };
    let Some(mut real) = of_real(dlmc::FOLDER, read) else { return };
    let mut drawn = collection().drawn();
    let order = |case: &Case| (case.spec.name.clone(), case.spec.width);
    real.sort_by_key(order);
    drawn.sort_by_key(order);
    assert_eq!(real.len(), drawn.len());
    // What a name and a batch say of a case, apart from the pattern.
    let shape = |spec: &Spec| {
        let name = spec.name.trim_end_matches(" (drawn)").to_owned();
        (name, [spec.rows, spec.cols, spec.width], spec.group.clone())
    };
    for (Case { spec: real, .. }, Case { spec: drawn, .. }) in real.iter().zip(&drawn) {
        assert_eq!(shape(real), shape(drawn));
        let (Some(Draw::Given(pattern)), Some(Draw::Varied { mean, cov })) =
            (real.pattern(), drawn.pattern())
        else {
            panic!("{}", real.name)
        };
        let stats = pattern.stats();
        assert!((stats.nnz as f64 - mean * real.rows as f64).abs() <= 2.0, "{}: {stats:?}", real.name);
        assert!((stats.row_length_cov - cov).abs() < 0.0006, "{}: {stats:?}", real.name);
    }
}

/// Graphs that are drawn against those that they stand for, where these are.
#[test]
fn drawn_graphs_are_like_the_real_ones() {
    let Some(files) = of_real(graphs::FOLDER, |folder| {
        let files = named_files(folder, "mtx").unwrap();
        files
            .into_iter()
            .map(|(name, path)| (name, mtx::read_path(path).unwrap().pattern().stats()))
            .collect()
    }) else {
        return;
    };
    let files: Vec<(String, _)> = files;
    let suites = ["sddmm-graphs", "spmm-graphs"].map(|suite| named(suite).unwrap().graphs.as_ref().unwrap());
    let pairs = files.iter().flat_map(|file| suites.map(|graphs| (file, graphs)));
    for ((name, real), graphs) in pairs {
        let graphs::Graph { nodes, mean, cov, .. } =
            graphs.drawn.iter().find(|graph| graph.name == *name).unwrap();
        let drawn = generate::with_row_cov(*nodes, *nodes, *mean, *cov, 1).unwrap().stats();
        assert_eq!((real.rows, real.cols), (*nodes, *nodes), "{name}");
        assert!((real.mean_row_length - mean).abs() < 0.006, "{name}: {real:?}");
        assert!((real.row_length_cov - cov).abs() < 0.0006, "{name}: {real:?}");
        assert!((drawn.mean_row_length / mean - 1.0).abs() < 0.1, "{name}: {drawn:?}");
        assert!((drawn.row_length_cov / cov - 1.0).abs() < 0.2, "{name}: {drawn:?}");
    }
}
