//! Whole networks.
use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{bench, json, text};

const SPARSE: [&str; 6] = ["model", "mobilenet-v1", "--width", "0.5", "--sparsity", "0.9"];

#[test]
fn a_network_is_a_record_with_its_layers_and_its_twins() {
    let records = json(&[&SPARSE[..], &["--twins", "--layers"]].concat());
    assert_eq!(records.len(), 1);
    let record = &records[0];
    for (field, expected) in [
        ("suite", Value::from("run")),
        ("op", "model".into()),
        ("case", "mobilenet-v1".into()),
        ("width", 0.5.into()),
        ("batch", 1.into()),
        ("cut", true.into()),
        ("sparsity", 0.9.into()),
        ("layout", "nchw".into()),
        ("weights", "drawn".into()),
        ("sparse_layers", 14.into()),
        ("seed", 1.into()),
        ("device", "simulator".into()),
        ("clocks", Value::Null),
    ] {
        assert_eq!(record[field], expected, "{field}");
    }
    assert!(record["revision"].is_string() && record["peak_bytes"].as_u64() < record["sum_bytes"].as_u64());
    assert!(record["error_over_bound"].as_f64().unwrap() <= 1.0);
    assert!(record["difference"].as_f64().unwrap() < 1e-4);
    assert!(record["model_us"]["H200"].as_f64().unwrap() > 0.0 && record.get("time_us").is_none());
    assert!(record["peers"]["dense"]["model_us"]["H200"].as_f64().unwrap() > 0.0);
    assert!(record["peer_failures"]["cudnn"].is_string());
    let layers = record["layers"].as_array().unwrap();
    assert_eq!((layers.len(), &layers[0]["name"]), (29, &Value::from("model.0.0")));
    assert_eq!((&layers[0]["zero_weights"], &layers[27]["kernel"].is_string()), (&0.0.into(), &true));
}

#[test]
fn values_have_the_type_that_is_asked_for() {
    for value in ["f32", "f16", "bf16"] {
        let records = json(&["model", "transformer", "--layout", "nhwc", "--value", value]);
        assert_eq!(records[0]["value"], value);
    }
    let output = bench(&["model", "transformer", "--value", "f8"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_network_of_dlmc_tells_where_its_masks_are_from() {
    let record = &json(&["model", "transformer-base", "--sparsity", "0.7"])[0];
    // Real masks do not fit the network that the simulator runs. All layers are sparse, also those with a few zeros less.
    assert_eq!(record["masks"], serde_json::json!({"real": [], "drawn": 96}));
    assert_eq!((&record["tokens"], &record["sparse_layers"]), (&16.into(), &96.into()));
    assert!(record["error_over_bound"].as_f64().unwrap() <= 1.0);
}

#[test]
fn a_network_is_told_in_words_and_kept_in_a_file() {
    let folder = TempDir::new().unwrap();
    let records = folder.path().join("records.jsonl");
    let output = bench(&[&SPARSE[..], &["--layers", "--device", "sim", "--out", text(&records)]].concat());
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for part in ["Weights are drawn", "cut to the simulator's size", "(model of an H200)", "| model.13.3 "] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let records = fs::read_to_string(&records).unwrap();
    assert_eq!(records.lines().count(), 1);
    let record: Value = serde_json::from_str(&records).unwrap();
    assert!(record.get("peers").is_none());
}

#[test]
fn sizes_that_a_network_cannot_have_are_bad_usage() {
    for (arguments, why) in
        [(["vgg-16", "--resolution", "16"], "features.30"), (["resnet-50", "--width", "2"], "one width")]
    {
        let output = bench(&[&["model"], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(why));
    }
}
