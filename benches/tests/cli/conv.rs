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

#[test]
fn layers_with_sparse_weights_tell_how_sparse_they_are() {
    let folder = TempDir::new().unwrap();
    let records = folder.path().join("records.jsonl");
    let layers = ["conv", "--suite", "pointwise", "--widths", "0.25", "--device", "sim"];
    let output = bench(&[&layers[..], &["--sparsity", "0.5,0.9", "--out", text(&records)]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let records = fs::read_to_string(&records).unwrap();
    let records: Vec<Value> = records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let parts: Vec<f64> = records.iter().map(|record| record["sparsity"].as_f64().unwrap()).collect();
    let is_near = |parts: &[f64], part: f64| parts.iter().all(|got| (got - part).abs() < 0.01);
    assert!(parts.len() == 18 && is_near(&parts[..9], 0.5) && is_near(&parts[9..], 0.9), "{parts:?}");
    let is_of_spmm = |record: &Value| record["algorithm"].as_str().unwrap().starts_with("spmm_f32");
    assert!(records.iter().all(|record| is_of_spmm(record) && record["op"] == "conv"));

    let output = bench(&[&layers[..], &["--layout", "nhwc"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("NCHW alone"));
}
