//! The program: what it prints, and its exit codes.
use std::fs;
use std::process::{Command, Output};

use tempfile::TempDir;

/// Runs with a small graph and an archive that cannot be unpacked.
fn verify(arguments: &[&str]) -> Output {
    let data = data();
    verify_with(data.path().to_str().unwrap(), arguments)
}

/// Runs with this for LACUNA_DATA.
fn verify_with(data: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lacuna-verify"));
    command.args(arguments).env("LACUNA_DATA", data).output().unwrap()
}

fn data() -> TempDir {
    let data = TempDir::new().unwrap();
    fs::create_dir(data.path().join("graphs")).unwrap();
    let graph = "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n2 1\n";
    fs::write(data.path().join("graphs/cora.mtx"), graph).unwrap();
    fs::write(data.path().join("dlmc.tar.xz"), "not an archive").unwrap();
    data
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn a_good_run_ends_with_the_counts() {
    let output = verify(&["--device", "sim", "--only", "spmm/columns/n17"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output).lines().last(), Some("1 passed, 0 failed, 0 skipped"));
    assert!(stderr(&output).is_empty(), "progress is for terminals: {}", stderr(&output));
}

#[test]
fn cases_for_a_gpu_are_skipped_on_the_simulator() {
    let output = verify(&["--device", "sim", "--only", "spmm/huge/c_above_2e32_bytes"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("skipped 1: for a GPU only"), "{}", stdout(&output));
    assert_eq!(stdout(&output).lines().last(), Some("0 passed, 0 failed, 1 skipped"));
}

#[test]
fn the_list_has_every_group_and_marks_what_is_large() {
    let output = verify(&["--list"]);
    assert_eq!(output.status.code(), Some(0));
    let list = stdout(&output);
    for part in [
        "device/memory/",
        "spmm/columns/n130",
        "spmm/values/",
        "spmm/dlmc/all",
        "spmm/graphs/cora",
        "[GPU only]",
    ] {
        assert!(list.contains(part), "{part} is not in\n{list}");
    }
    let quick = verify(&["--list", "--quick"]);
    assert!(stdout(&quick).lines().count() < list.lines().count());
    assert!(!stdout(&quick).contains("[not quick]") && !stdout(&quick).contains("[GPU only]"));
}

#[test]
fn json_is_an_object_a_case() {
    let output = verify(&["--device", "sim", "--only", "spmm/rows/one", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    for line in stdout(&output).lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["device"], "sim");
        assert_eq!(record["outcome"], "passed");
        assert!(record["error_over_bound"].as_f64().unwrap() <= 1.0);
    }
}

#[test]
fn bad_usage_is_2() {
    for arguments in [
        &["--device", "gpu"][..],
        &["--no-such-flag"],
        &["--only", "no such case"],
        &["--data", "no-such-folder"],
        &["--seed", "-1"],
        &["--random", "1000001"],
    ] {
        let output = verify(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(!stderr(&output).is_empty());
        assert!(stdout(&output).is_empty());
    }
}

#[test]
fn a_gpu_that_is_not_there_is_3() {
    let output = verify(&["--device", "cuda:4096", "--only", "device/memory/empty"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let says: &[&str] =
        if cfg!(feature = "cuda") { &["no GPU 4096", "NVIDIA driver"] } else { &["feature `cuda`"] };
    assert!(says.iter().any(|says| stderr(&output).contains(says)), "{}", stderr(&output));
}

#[test]
fn real_data_is_run_and_a_broken_archive_is_told_without_ending_the_run() {
    let output = verify(&["--device", "sim", "--only", "spmm/graphs/cora"]);
    assert_eq!(stdout(&output).lines().last(), Some("1 passed, 0 failed, 0 skipped"), "{}", stderr(&output));
    let output = verify(&["--device", "sim", "--only", "spmm/dlmc"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("skipped 1: cannot unpack"), "{}", stdout(&output));
    let output = verify(&["--device", "sim", "--only", "all", "--quick", "--list"]);
    assert!(!stdout(&output).contains("dlmc"), "{}", stdout(&output));
}

#[test]
fn an_empty_variable_names_no_data() {
    let output = verify_with("", &["--list", "--only", "device/memory"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = verify_with("no-such-folder", &["--list"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn random_problems_depend_on_the_seed_alone() {
    let run = |seed: &str| {
        let output = verify(&["--device", "sim", "--only", "spmm/random/0", "--seed", seed, "--json"]);
        let record: serde_json::Value = serde_json::from_str(stdout(&output)).unwrap();
        record["error_over_bound"].as_f64().unwrap()
    };
    assert_eq!(run("5"), run("5"));
    assert_ne!(run("5"), run("6"));
}
