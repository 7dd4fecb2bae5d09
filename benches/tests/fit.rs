//! `lacuna-bench fit`, through the built program, on records made up from a cost model.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lacuna::{IndexType, ValueType, spmm};
use serde_json::{Value, json};
use tempfile::TempDir;

fn fit(paths: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lacuna-bench"));
    command.args(["fit", "--records"]).args(paths).output().expect("the program starts")
}

/// A record as `sweep --all-algorithms` writes it on a GPU.
fn record(problem: &spmm::Problem, entry: &str, median: f64) -> Value {
    let spmm::Problem { rows: m, cols: k, nnz, longest_row, n, value, index, multiprocessors, sm, .. } =
        *problem;
    json!({
        "suite": "made up", "op": "spmm", "case": format!("{m} {k} {nnz}"), "algorithm": entry,
        "dtype": value.name(), "index": index.name(),
        "m": m, "k": k, "n": n, "nnz": nnz, "sparsity": 0.9, "longest_row": longest_row, "seed": 1,
        "time_us": { "median": median, "min": median, "max": median },
        "flops": 2 * nnz * n, "bytes": 8 * nnz, "error_over_bound": 0.1, "checked_rows": m,
        "device": "A GPU", "sm": sm, "multiprocessors": multiprocessors, "driver": "13.0", "clocks": null,
        "revision": "made up",
    })
}

const F32: (ValueType, IndexType) = (ValueType::F32, IndexType::U32);
const F16: (ValueType, IndexType) = (ValueType::F16, IndexType::U16);

/// Records of all kernels on several problems of a type, where times are what `truth` says.
fn records(truth: &spmm::CostModel, (value, index): (ValueType, IndexType)) -> Vec<Value> {
    let mut records = Vec::new();
    for rows in [256, 1024, 8192] {
        for row in [16, 200] {
            for n in [1, 32, 128] {
                let (nnz, longest_row) = (rows * row, row + 10);
                let problem = spmm::Problem {
                    packed: false,
                    rows,
                    cols: 2048,
                    nnz,
                    longest_row,
                    n,
                    vector: 8,
                    batch: 1,
                    value,
                    index,
                    precision: lacuna::Precision::Single,
                    block_shared_bytes: 227 * 1024,
                    multiprocessors: 132,
                    sm: 90,
                };
                let choices = spmm::choose_by(&problem, truth);
                records.extend(choices.iter().map(|choice| record(&problem, choice.entry.name, choice.cost)));
            }
        }
    }
    records
}

fn write(folder: &TempDir, name: &str, records: &[Value]) -> PathBuf {
    let path = folder.path().join(name);
    let lines: Vec<String> = records.iter().map(|record| format!("{record}\n")).collect();
    fs::write(&path, lines.concat()).unwrap();
    path
}

/// The part of what was printed that is about a kind of values.
fn part<'s>(said: &'s str, kind: &str, next: &str) -> &'s str {
    let from = said.find(&format!("{kind}: ")).unwrap_or_else(|| panic!("no {kind} in\n{said}"));
    said[from..].split(&format!("\n{next}: ")).next().unwrap()
}

/// A mean in a table of what was printed.
fn mean(said: &str, constants: &str, problems: &str) -> f64 {
    let rows = said.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let row = rows.into_iter().find(|cells| cells.get(1..3) == Some(&[constants, problems]));
    row.unwrap_or_else(|| panic!("{constants}, {problems}: {said}"))[4].parse().unwrap()
}

/// The fitted constants, in order.
fn constants(said: &str) -> Vec<f64> {
    let value = |name: &&str| -> f64 {
        let line = said.lines().find_map(|line| line.trim().strip_prefix(&format!("{name}: ")));
        line.unwrap_or_else(|| panic!("no {name} in\n{said}")).trim_end_matches(',').parse().unwrap()
    };
    spmm::CostModel::NAMES.iter().map(value).collect()
}

#[test]
fn fit_prints_scores_and_constants() {
    let folder = TempDir::new().unwrap();
    let mut truth = spmm::CostModel::H200;
    truth.quad_latency /= 30.0;
    truth.a_traffic *= 30.0;
    let records = records(&truth, F32);
    // Two files are one set, and what other versions or wrong results add changes nothing.
    let (some, others) = records.split_at(records.len() / 2);
    let mut foreign = others.to_vec();
    foreign.extend([records[0].clone(), records[0].clone()]);
    let last = foreign.len() - 1;
    foreign[last]["algorithm"] = "spmm_of_old".into();
    foreign[last - 1]["error_over_bound"] = 2.0.into();
    foreign[last - 1]["time_us"]["median"] = 1e-9.into();
    let output = fit(&[&write(&folder, "some.jsonl", some), &write(&folder, "others.jsonl", &foreign)]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.starts_with(&format!("f32: 18 problems, {} times, A GPU\n", records.len())), "{said}");
    assert!(mean(&said, "the library's", "fitted to") < 0.99, "{said}");
    assert!(mean(&said, "fitted", "fitted to") > 0.999, "{said}");
    assert!(mean(&said, "the library's", "held out") < mean(&said, "fitted", "held out"), "{said}");
    assert!(constants(&said).iter().all(|&value| value > 0.0) && !said.contains("f16"), "{said}");
}

#[test]
fn halves_are_fitted_by_themselves() {
    let folder = TempDir::new().unwrap();
    // Rows of halves wait less than the library thinks, and tiles are far faster.
    let mut truth = spmm::CostModel::H200_HALVES;
    truth.quad_latency /= 30.0;
    truth.tile_scale /= 5.0;
    let halves = write(&folder, "f16.jsonl", &records(&truth, F16));
    let single = write(&folder, "f32.jsonl", &records(&spmm::CostModel::H200, F32));
    let output = fit(&[&single, &halves]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));

    let of_single = part(&said, "f32", "f16 and bf16");
    assert_eq!(mean(of_single, "the library's", "held out"), 1.0, "{said}");
    assert_eq!(
        constants(of_single),
        spmm::CostModel::H200.values(),
        "nothing to gain, so nothing moves:\n{said}"
    );
    let of_halves = part(&said, "f16 and bf16", "f32");
    assert!(of_halves.contains("`spmm::CostModel::H200_HALVES`"), "{said}");
    assert!(mean(of_halves, "the library's", "fitted to") < 0.95, "{said}");
    assert!(mean(of_halves, "fitted", "fitted to") > 0.999, "{said}");
    assert!(mean(of_halves, "the library's", "held out") < mean(of_halves, "fitted", "held out"), "{said}");
    // Halves alone are enough.
    let alone = fit(&[&halves]);
    assert_eq!(String::from_utf8(alone.stdout).unwrap().trim(), of_halves.trim());
}

#[test]
fn records_that_do_not_serve_exit_with_2_and_say_why() {
    let folder = TempDir::new().unwrap();
    let good = records(&spmm::CostModel::H200, F32);
    let without = |field: &str| {
        let mut records = good.clone();
        records[5].as_object_mut().unwrap().remove(field).unwrap();
        records
    };
    let mut foreign = good.clone();
    foreign[5]["device"] = "Another".into();
    let mut unknown = good.clone();
    unknown[5]["dtype"] = "f8".into();
    let mut imprecise = good.clone();
    imprecise[5]["precision"] = "fp4".into();
    let cases = [
        ("empty", Vec::new(), "0 problems to fit to"),
        ("one", good[..3].to_vec(), "--all-algorithms"),
        ("foreign", foreign, "`Another`"),
        ("unknown", unknown, "`f8`"),
        ("imprecise", imprecise, "`fp4`"),
        ("without", without("longest_row"), "longest_row"),
        ("modelled", without("time_us"), "simulator"),
    ];
    for (name, records, word) in cases {
        let output = fit(&[&write(&folder, name, &records)]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains(word), "{name}: {said}");
    }
    assert_eq!(fit(&[&folder.path().join("nowhere.jsonl")]).status.code(), Some(2));
}
