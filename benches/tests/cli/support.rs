//! Calls of the program, and inputs for them.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lacuna-bench")).args(arguments).output().expect("the program starts")
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary path is text")
}

/// A 3×4 pattern with an empty row.
pub(crate) fn small_matrix(folder: &TempDir) -> PathBuf {
    let path = folder.path().join("small.smtx");
    fs::write(&path, "3, 4, 5\n0 3 3 5\n0 2 3 1 3\n").unwrap();
    path
}

pub(crate) fn run_json(matrix: &Path, more: &[&str]) -> Vec<Value> {
    run_op(&["spmm", "--n", "5"], matrix, more)
}

/// Runs an operation, whose sizes are told with its name, on the simulator.
pub(crate) fn run_op(op: &[&str], matrix: &Path, more: &[&str]) -> Vec<Value> {
    json(&[&["run"], op, &["--matrix", text(matrix)], more].concat())
}

/// The records of a call on the simulator that must go well.
pub(crate) fn json(arguments: &[&str]) -> Vec<Value> {
    let output = bench(&[arguments, &["--device", "sim", "--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A folder of data with one layer of ResNet-50 and one of the Transformer.
pub(crate) fn data() -> TempDir {
    let data = TempDir::new().unwrap();
    let dlmc = data.path().join("dlmc");
    for (network, rest) in [("rn50", "layer"), ("transformer", "ffn")] {
        let folder = dlmc.join(network).join("magnitude_pruning/0.7");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{rest}.smtx")), "3, 4, 5\n0 3 3 5\n0 2 3 1 3\n").unwrap();
    }
    fs::write(dlmc.join("rn50_batchsizes.txt"), "layer,49\n").unwrap();
    data
}
