//! `lacuna-bench fit`, through the built program, on the committed records.
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const RECORDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/records");

fn fit(records: &Path) -> Output {
    check(&[records.to_path_buf()], &[], &[])
}

fn check(records: &[PathBuf], times: &[PathBuf], held_out: &[PathBuf]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lacuna-bench"));
    command.args(["fit", "--check", "--records"]).args(records);
    for (name, files) in [("--times", times), ("--held-out", held_out)] {
        if !files.is_empty() {
            command.arg(name).args(files);
        }
    }
    command.output().expect("the program starts")
}

/// The cells of the row of a table that has this text.
fn cells(said: &str, row: &str) -> Vec<String> {
    let line = said.lines().find(|line| line.contains(row)).unwrap_or_else(|| panic!("{row}: {said}"));
    line.split('|').map(|cell| cell.trim().into()).collect()
}

#[test]
fn small_changes_of_the_shipped_constants_do_not_choose_much_better() {
    let rows: [(&str, &[(&str, f64)]); 4] = [
        ("spmm", &[("f32: held out", 0.967), ("graphs f32", 0.95), ("imbalance f32 fma", 0.92)]),
        ("spmm-16-bit", &[("| 16-bit: held out", 0.976)]),
        ("spmm-prepacked-16-bit", &[("prepacked 16-bit: held out", 0.985)]),
        ("spmm-prepacked-f32", &[("prepacked f32: held out", 0.965)]),
    ];
    for (file, rows) in rows {
        let output = fit(&Path::new(RECORDS).join(format!("fit/hopper-{file}.jsonl")));
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
        for &(row, least) in rows {
            let mean: f64 = cells(&said, row)[3].parse().unwrap();
            assert!(mean >= least, "{row}: {mean}");
        }
    }
}

#[test]
fn small_changes_of_the_constants_of_convolution_do_not_choose_much_better() {
    let file = |name: &&str| Path::new(RECORDS).join(format!("conv/h100-{name}.jsonl"));
    let [train, times, held_out] = [
        &["fit-layers", "fit-taps", "fit-16"][..],
        &["all", "taps"],
        &["held-out-layers", "held-out-taps", "held-out-16"],
    ]
    .map(|names| names.iter().map(file).collect::<Vec<_>>());
    let output = check(&train, &times, &held_out);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
    for (row, least) in
        [("fit-16", 0.97), ("held-out-layers", 0.98), ("held-out-taps", 0.97), ("held-out-16", 0.97)]
    {
        let mean: f64 = cells(&said, row)[3].parse().unwrap();
        assert!(mean >= least, "{row}: {mean}");
    }
    let spmm = [Path::new(RECORDS).join("fit/hopper-spmm.jsonl")];
    // Of SpMM a third of the problems is held out, and no file; its records leave nothing out.
    for (times, held_out) in [(&spmm[..], &[][..]), (&[], &spmm)] {
        assert_eq!(check(&spmm, times, held_out).status.code(), Some(2));
    }
}

#[test]
fn constants_of_sddmm_are_scored_by_kind_and_by_file() {
    let records = [Path::new(RECORDS).join("fit/hopper-sddmm-f16.jsonl")];
    let output = check(&records, &[], &records);
    let said = String::from_utf8_lossy(&output.stdout);
    let counts = ["16-bit: fitted to", "16-bit: held out", "hopper-sddmm-f16: held out"].map(|row| {
        let cells = cells(&said, row);
        let mean: f64 = cells[3].parse().unwrap();
        assert!((0.97..=1.0).contains(&mean), "{row}: {mean}");
        cells[2].parse::<usize>().unwrap()
    });
    assert_eq!((counts[0] + counts[1], counts[2]), (80, 80), "{said}");
    assert!(!said.contains("f32: "), "no constants of `f32` are fitted: {said}");
    let output = check(&[Path::new(RECORDS).join("fit/hopper-sddmm-f32.jsonl")], &[], &[]);
    let said = String::from_utf8_lossy(&output.stdout);
    for row in ["f32: fitted to", "f32: held out"] {
        let mean: f64 = cells(&said, row)[3].parse().unwrap();
        assert!(mean > 0.97, "{row}: {mean}");
    }
    assert_eq!(check(&records, &records, &[]).status.code(), Some(2), "--times are of convolutions");
}

#[test]
fn records_that_are_none_exit_with_an_error() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for path in ["records/h200-table.jsonl", "Cargo.toml", "nowhere.jsonl"] {
        assert_ne!(fit(&here.join(path)).status.code(), Some(0), "{path}");
    }
}
