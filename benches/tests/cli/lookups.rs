//! Embedding-bag lookups, and softmax with top-N.
use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{bench, json, run_op, small_matrix, text};

fn are_right(records: &[Value]) -> bool {
    records.iter().all(|record| record["error_over_bound"].as_f64().unwrap() <= 1.0)
}

/// Kernels' names, each once.
fn kernels(records: &[Value]) -> Vec<&str> {
    let mut names: Vec<&str> = records.iter().map(|record| record["algorithm"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn lookups_have_bags_for_rows_and_a_table_of_columns() {
    let folder = TempDir::new().unwrap();
    let matrix = small_matrix(&folder);
    let records = run_op(&["nhot", "--n", "5"], &matrix, &["--all-algorithms"]);
    let record = &records[0];
    assert_eq!((&record["op"], &record["nnz"], &record["chosen"]), (&"nhot".into(), &5.into(), &true.into()));
    assert_eq!((&record["m"], &record["k"], &record["n"]), (&3.into(), &4.into(), &5.into()));
    assert_eq!(record["flops"], 5 * 5);
    assert_eq!(record["bytes"], 5 * 4 + 3 * 4 + (5 + 3) * 5 * 4);
    assert!(records.len() > 1 && are_right(&records), "{records:?}");
    assert_eq!(kernels(&records).len(), records.len());
    let halves = run_op(&["nhot", "--n", "8"], &matrix, &["--dtype", "bf16"]);
    assert_eq!(halves[0]["bytes"], 5 * 4 + 3 * 4 + (5 + 3) * 8 * 2);
    assert!(are_right(&halves), "{halves:?}");
    let wide = run_op(&["nhot", "--n", "5"], &matrix, &["--index", "u64"]);
    assert_eq!((&wide[0]["index"], &wide[0]["bytes"]), (&"u64".into(), &(5 * 8 + 3 * 4 + 8 * 5 * 4).into()));
    assert!(are_right(&wide), "{wide:?}");
}

#[test]
fn top_n_is_of_logits_that_are_drawn() {
    let size = ["run", "topn", "--rows", "3", "--cols", "100", "--n", "7"];
    let records = json(&[&size[..], &["--all-algorithms"]].concat());
    let record = &records[0];
    assert_eq!((&record["op"], &record["chosen"]), (&"topn".into(), &true.into()));
    assert_eq!((&record["m"], &record["k"], &record["n"]), (&3.into(), &7.into(), &100.into()));
    assert_eq!((&record["nnz"], &record["sparsity"]), (&300.into(), &0.0.into()));
    assert_eq!((&record["flops"], &record["checked_rows"]), (&(4 * 300).into(), &3.into()));
    assert_eq!(record["bytes"], 300 * 4 + 3 * 7 * 8);
    assert!(records.len() > 1 && are_right(&records), "{records:?}");
    assert_eq!(kernels(&records).len(), records.len());
    let halves = json(&[&size[..], &["--dtype", "f16"]].concat());
    assert_eq!(halves[0]["bytes"], 300 * 2 + 3 * 7 * 8);
    assert!(are_right(&halves), "{halves:?}");
}

#[test]
fn what_is_looked_up_and_taken_must_be_told() {
    let folder = TempDir::new().unwrap();
    let matrix = small_matrix(&folder);
    let of_matrix = ["--matrix", text(&matrix)];
    let of_size = ["--rows", "2", "--cols", "40"];
    let cases: [(&[&str], &str); 10] = [
        (&[&["nhot", "--n", "4", "--index", "u16"], &of_matrix[..]].concat(), "u64"),
        (&[&["nhot"], &of_matrix[..]].concat(), "--n"),
        (&["nhot", "--n", "4"], "--matrix"),
        (&[&["nhot", "--n", "4"], &of_matrix[..], &of_size].concat(), "--rows"),
        (&[&["nhot", "--n", "4", "--heads", "2"], &of_matrix[..]].concat(), "--heads"),
        (&[&["topn"], &of_size[..]].concat(), "how many to take"),
        (&[&["topn", "--n", "4"], &of_matrix[..]].concat(), "--rows and --cols"),
        (&["topn", "--n", "4", "--rows", "2"], "--rows and --cols"),
        (&[&["topn", "--n", "41"], &of_size[..]].concat(), "41"),
        (&[&["topn", "--n", "4", "--index", "u16"], &of_size[..]].concat(), "--index"),
    ];
    for (arguments, word) in cases {
        let output = bench(&[&["run"], arguments, &["--device", "sim"]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
}

#[test]
fn parts_of_both_suites_are_swept_beside_the_paper() {
    for (suite, case, published) in
        [("nhot", "100 rows of 1, 10240×512", "110"), ("topn", "1×10240, top 10", "19,650")]
    {
        let output = bench(&["sweep", "--suite", suite, "--device", "sim", "--limit", "1"]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        for part in [case, published, "ACL 2019", "TB/s"] {
            assert!(said.contains(part), "{part} is not in\n{said}");
        }
    }
}

#[test]
fn where_there_is_no_library_the_copy_tells_how_fast_the_machine_was() {
    let folder = TempDir::new().unwrap();
    let record = json(&["run", "topn", "--rows", "2", "--cols", "40", "--n", "4"]).remove(0);
    let timed = |name: &str, us: f64, copy: f64| {
        let timing = |us: f64| serde_json::json!({ "median": us, "min": us, "max": us });
        let (mut record, mut peer) = (record.clone(), timing(copy));
        (peer["algorithm"], peer["version"]) = ("device to device".into(), "13.0".into());
        (peer["error_over_bound"], record["time_us"]) = (0.0.into(), timing(us));
        record["peers"]["copy"] = peer;
        let path = folder.path().join(name);
        fs::write(&path, record.to_string()).unwrap();
        path
    };
    let base = timed("base.jsonl", 10.0, 8.0);
    assert_eq!(
        bench(&["compare", text(&base), text(&timed("mood.jsonl", 20.0, 16.0))]).status.code(),
        Some(0)
    );
    assert_eq!(
        bench(&["compare", text(&base), text(&timed("slower.jsonl", 20.0, 8.0))]).status.code(),
        Some(1)
    );
    let picture = folder.path().join("plot.svg");
    assert_eq!(bench(&["plot", text(&base), "--out", text(&picture)]).status.code(), Some(0));
    assert!(fs::read_to_string(picture).unwrap().contains("plain copy"));
}
