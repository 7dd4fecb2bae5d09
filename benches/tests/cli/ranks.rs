//! `spdnn` by one process. `cargo xtask verify` runs it as several ranks.
use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{bench, text};

#[test]
fn one_process_is_no_job() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("mnist")).unwrap();
    let out = folder.path().join("out.jsonl");
    let network = ["spdnn", "--neurons", "64", "--layers", "2", "--images", "40", "--device", "sim"];
    let files = ["--data", text(folder.path()), "--cache", text(folder.path()), "--out", text(&out)];
    // The second run has its images from the cache.
    for _ in 0..2 {
        let output = bench(&[&network[..], &files, &["--compare-baseline"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let records = fs::read_to_string(out).unwrap();
    let records: Vec<Value> = records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 6);
    for record in &records {
        assert!(record.get("ranks").is_none() && record.get("shares").is_none(), "{record}");
        assert_eq!(
            (&record["source"], &record["reference"]),
            (&"drawn".into(), &serde_json::json!([40, true]))
        );
    }
    for (first, second) in records.iter().zip(&records[3..]) {
        assert!(first["scores"].is_string());
        assert_eq!(first["scores"], second["scores"]);
    }
}

#[cfg(not(feature = "mpi"))]
#[test]
fn ranks_of_a_program_without_mpi_do_not_all_do_the_same() {
    use std::process::Command;

    let mut command = Command::new(env!("CARGO_BIN_EXE_lacuna-bench"));
    let output =
        command.args(["spdnn", "--device", "sim"]).env("OMPI_COMM_WORLD_SIZE", "2").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--features mpi"));
}
