//! `lacuna-bench fit`, through the built program, on the committed records.
use std::path::Path;
use std::process::{Command, Output};

fn fit(records: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lacuna-bench"));
    command.args(["fit", "--check", "--records"]).arg(records).output().expect("the program starts")
}

#[test]
fn small_changes_of_the_shipped_constants_do_not_choose_much_better() {
    let output = fit(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/records/fit/hopper-spmm.jsonl")));
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let cells = |row: &str| -> Vec<String> {
        let line = said.lines().find(|line| line.contains(row)).unwrap_or_else(|| panic!("{row}: {said}"));
        line.split('|').map(|cell| cell.trim().into()).collect()
    };
    for (row, least) in [("f32: held out", 0.967), ("16-bit: held out", 0.976), ("graphs f32", 0.95)] {
        let mean: f64 = cells(row)[3].parse().unwrap();
        assert!(mean >= least, "{row}: {mean}");
    }
}

#[test]
fn records_that_are_none_exit_with_an_error() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for path in ["records/h200-table.jsonl", "Cargo.toml", "nowhere.jsonl"] {
        assert_ne!(fit(&here.join(path)).status.code(), Some(0), "{path}");
    }
}
