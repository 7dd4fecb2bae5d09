//! Convolutions.
use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{bench, text};

#[test]
fn energy_that_is_not_counted_is_told_and_left_out() {
    let folder = TempDir::new().unwrap();
    let records = folder.path().join("records.jsonl");
    let layers = ["conv", "--suite", "depthwise", "--widths", "0.125", "--device", "sim"];
    let output = bench(&[&layers[..], &["--energy", "--out", text(&records)]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("lacuna-bench: no energy: the simulator"), "{said}");
    let records = fs::read_to_string(&records).unwrap();
    let records: Vec<Value> = records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(records.len() == 9 && records.iter().all(|record| record.get("energy_mj").is_none()));
    let output = bench(&layers);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed.matches("(model of an H200)").count(), 9, "{printed}");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("energy"));
}
