//! Files of records: two of them, all kernels, a picture.
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{bench, run_json, small_matrix, text};

#[test]
fn the_choice_is_set_against_the_fastest_kernel() {
    let folder = TempDir::new().unwrap();
    let records = run_json(&small_matrix(&folder), &["--all-algorithms"]);
    assert_eq!(records.iter().filter(|record| record["chosen"] == true).count(), 1);
    let path = folder.path().join("all.jsonl");
    let lines: Vec<String> = records.iter().map(Value::to_string).collect();
    fs::write(&path, lines.join("\n")).unwrap();
    let output = bench(&["oracle", "--records", text(&path)]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("| run   |     1 |") && said.contains("model of H200"), "{said}");

    fs::write(&path, &lines[0]).unwrap();
    let output = bench(&["oracle", "--records", text(&path)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--all-algorithms"));
}

/// A record with a measured time and a peer's, made from a simulated one.
fn measured(folder: &TempDir, name: &str, median: f64, peer: f64) -> PathBuf {
    let mut record = run_json(&small_matrix(folder), &[]).remove(0);
    let timing = |us: f64| serde_json::json!({ "median": us, "min": us, "max": us });
    record["time_us"] = timing(median);
    record["peers"]["cusparse"] = timing(peer);
    record["peers"]["cusparse"]["algorithm"] = "csr_alg2".into();
    record["peers"]["cusparse"]["version"] = "12.0".into();
    let path = folder.path().join(name);
    fs::write(&path, format!("{record}\n")).unwrap();
    path
}

#[test]
fn compare_finds_what_became_slower() {
    let folder = TempDir::new().unwrap();
    let base = measured(&folder, "base.jsonl", 10.0, 20.0);
    let same = measured(&folder, "same.jsonl", 20.0, 40.0);
    let slower = measured(&folder, "slower.jsonl", 12.0, 20.0);
    // Twice as slow beside a peer that is twice as slow too: another clock, not another kernel.
    assert_eq!(bench(&["compare", text(&base), text(&same)]).status.code(), Some(0));
    assert_eq!(bench(&["compare", text(&base), text(&slower)]).status.code(), Some(1));
    assert_eq!(bench(&["compare", text(&base), text(&slower), "--tolerance", "0.5"]).status.code(), Some(0));
}

/// The record of `path`, changed by `change`, under another name.
fn changed(path: &Path, name: &str, change: impl FnOnce(&mut Value)) -> PathBuf {
    let mut record: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    change(&mut record);
    let changed = path.with_file_name(name);
    fs::write(&changed, format!("{record}\n")).unwrap();
    changed
}

#[test]
fn compare_passes_no_wrong_missing_or_foreign_case() {
    let folder = TempDir::new().unwrap();
    let base = measured(&folder, "base.jsonl", 10.0, 20.0);
    let code = |other: &Path, more: &[&str]| {
        bench(&[&["compare", text(&base), text(other)], more].concat()).status.code()
    };
    assert_eq!(code(&changed(&base, "wrong.jsonl", |r| r["error_over_bound"] = 1.5.into()), &[]), Some(1));
    assert_eq!(code(&changed(&base, "device.jsonl", |r| r["device"] = "another".into()), &[]), Some(2));
    assert_eq!(code(&base, &["--tolerance", "nan"]), Some(2));
    let two = folder.path().join("two.jsonl");
    let other = changed(&base, "other.jsonl", |r| r["case"] = "other".into());
    fs::write(&two, [fs::read(&base).unwrap(), fs::read(&other).unwrap()].concat()).unwrap();
    assert_eq!(bench(&["compare", text(&two), text(&base)]).status.code(), Some(1));
}

#[test]
fn compare_names_the_line_that_is_no_record() {
    let folder = TempDir::new().unwrap();
    let base = measured(&folder, "base.jsonl", 10.0, 20.0);
    let broken = folder.path().join("broken.jsonl");
    fs::write(&broken, format!("{}{{\"suite\":", fs::read_to_string(&base).unwrap())).unwrap();
    let output = bench(&["compare", text(&base), text(&broken)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("line 2"));
}

#[test]
fn plot_draws_a_picture() {
    let folder = TempDir::new().unwrap();
    let records = measured(&folder, "records.jsonl", 10.0, 20.0);
    let picture = folder.path().join("plot.svg");
    let output = bench(&["plot", text(&records), "--out", text(&picture)]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let svg = fs::read_to_string(picture).unwrap();
    assert!(svg.contains("<svg") && svg.contains("2.00× in geometric mean"), "{svg}");
}

#[test]
fn plot_draws_networks_by_their_twins() {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("records/models/h100.jsonl");
    let folder = TempDir::new().unwrap();
    let picture = folder.path().join("plot.svg");
    let output = bench(&["plot", text(&records), "--out", text(&picture)]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let svg = fs::read_to_string(&picture).unwrap();
    for words in ["mobilenet-v1 1.8, 90 % zeros", "vgg-16", "by cuDNN: 4.08×", "by our kernels: 1.51×"] {
        assert!(svg.contains(words), "{words}: {svg}");
    }

    // A line that is none, and networks that are set against nothing.
    let text_of = fs::read_to_string(&records).unwrap();
    let first = text_of.lines().next().unwrap();
    let spoilt = folder.path().join("spoilt.jsonl");
    for (contents, words) in [
        (format!("{first}\n{{}}\n"), ":2: no record of a network"),
        (first.replace("cudnn", "other"), "no network"),
    ] {
        fs::write(&spoilt, contents).unwrap();
        let output = bench(&["plot", text(&spoilt), "--out", text(&picture)]);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(words), "{output:?}");
    }
}

#[test]
fn plot_draws_convolutions_by_zeros() {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("records/conv/h200.jsonl");
    let folder = TempDir::new().unwrap();
    let picture = folder.path().join("plot.svg");
    let output = bench(&["plot", text(&records), "--out", text(&picture)]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let svg = fs::read_to_string(&picture).unwrap();
    for words in [
        "zeros of the feature map",
        "one image: geometric mean of 13 layers",
        "16 images",
        "real feature maps",
    ] {
        assert!(svg.contains(words), "{words}: {svg}");
    }

    // Without cuDNN's times there is nothing to draw.
    let alone = Path::new(env!("CARGO_MANIFEST_DIR")).join("records/conv/h200-all.jsonl");
    let output = bench(&["plot", text(&alone), "--out", text(&picture)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cudnn_f32"));
}
