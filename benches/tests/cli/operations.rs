//! All operations; SDDMM, sparse softmax and sparse attention.
use std::collections::BTreeSet;
use std::fs;

use lacuna_bench::OPERATIONS;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{bench, data, json, run_op, small_matrix, text};

#[test]
fn every_operation_is_right_by_every_kernel_in_every_type() {
    let folder = TempDir::new().unwrap();
    let matrix = small_matrix(&folder);
    for op in OPERATIONS {
        let mut run = vec!["run", op.name, "--all-algorithms"];
        match op.values {
            Some(_) => run.extend(["--matrix", text(&matrix)]),
            None => run.extend(["--rows", "3", "--cols", "40"]),
        }
        run.extend(op.width.iter().flat_map(|width| [width.flag, "8"]));
        for dtype in ["f32", "f16", "bf16"] {
            let records = json(&[&run[..], &["--dtype", dtype]].concat());
            let kernels: BTreeSet<_> = records.iter().map(|r| r["algorithm"].as_str().unwrap()).collect();
            // A dense transpose has one kernel for each width of its values, and a layer norm one for the pixels of maps.
            let least = if ["dense-transpose", "layer-norm"].contains(&op.name) { 1 } else { 2 };
            assert!(kernels.len() == records.len() && records.len() >= least, "{kernels:?}");
            assert!(records.iter().all(|r| r["error_over_bound"].as_f64().unwrap() <= 1.0), "{records:?}");
            assert!(records.iter().all(|r| r["op"] == op.name && r["dtype"] == dtype), "{records:?}");
            assert_eq!(records.iter().filter(|r| r["chosen"] == true).count(), 1, "{records:?}");
        }
    }
}

#[test]
fn sampled_products_have_their_own_sizes_and_work() {
    let folder = TempDir::new().unwrap();
    let records = run_op(&["sddmm", "--k", "7"], &small_matrix(&folder), &["--all-algorithms"]);
    let record = &records[0];
    assert_eq!(
        (&record["op"], &record["nnz"], &record["chosen"]),
        (&"sddmm".into(), &5.into(), &true.into())
    );
    assert_eq!((&record["m"], &record["k"], &record["n"]), (&3.into(), &7.into(), &4.into()));
    assert_eq!(record["flops"], 2 * 5 * 7);
    assert_eq!(record["bytes"], 5 * 8 + 3 * 4 + (3 + 4) * 7 * 4);
    assert!(record.get("batch").is_none(), "one product is no batch");
    assert!(records.len() > 1 && records.iter().all(|r| r["error_over_bound"].as_f64().unwrap() <= 1.0));
    let names: Vec<&str> = records.iter().map(|r| r["algorithm"].as_str().unwrap()).collect();
    assert!(names.iter().all(|name| name.starts_with("sddmm_f32_")), "{names:?}");
    let narrow =
        run_op(&["sddmm", "--k", "7"], &small_matrix(&folder), &["--dtype", "f16", "--index", "u16"]);
    assert_eq!(narrow[0]["bytes"], 5 * 4 + 3 * 4 + (3 + 4) * 7 * 2);
}

#[test]
fn reductions_and_pieces_are_measured_and_told() {
    let folder = TempDir::new().unwrap();
    let matrix = small_matrix(&folder);
    for (reduce, is_extremum) in [("mean", false), ("max", true), ("min", true)] {
        let records = run_op(&["spmm", "--n", "5"], &matrix, &["--all-algorithms", "--reduce", reduce]);
        for record in records {
            let algorithm = record["algorithm"].as_str().unwrap();
            assert_eq!((algorithm.contains("extremum"), &record["reduce"]), (is_extremum, &reduce.into()));
            assert!(record["error_over_bound"].as_f64().unwrap() <= 1.0, "{record:?}");
        }
    }
    let pieces = run_op(&["spmm", "--n", "5"], &matrix, &["--longest-piece", "1", "--all-algorithms"]);
    assert!(pieces.iter().all(|record| record.get("reduce").is_none()), "a sum is not told");
    assert!(pieces.iter().all(|record| record["error_over_bound"].as_f64().unwrap() <= 1.0), "{pieces:?}");
    let refused = bench(&["run", "sddmm", "--k", "5", "--matrix", text(&matrix), "--reduce", "max"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--reduce"));
}

#[test]
fn softmaxes_are_measured_in_batches() {
    let folder = TempDir::new().unwrap();
    let heads = ["--heads", "3", "--all-algorithms"];
    let records = run_op(&["sparse-softmax"], &small_matrix(&folder), &heads);
    let record = &records[0];
    assert_eq!((&record["op"], &record["batch"]), (&"sparse-softmax".into(), &3.into()));
    assert_eq!((&record["m"], &record["n"], &record["flops"]), (&3.into(), &4.into(), &60.into()));
    assert_eq!(record["bytes"], 3 * 2 * 5 * 4 + 3 * 4);
    assert!(records.len() > 1 && records.iter().all(|r| r["error_over_bound"].as_f64().unwrap() <= 1.0));
    assert_eq!(records.iter().filter(|r| r["chosen"] == true).count(), 1);
}

#[test]
fn attention_is_measured_by_every_kernel_and_in_three_steps() {
    let folder = TempDir::new().unwrap();
    let matrix = small_matrix(&folder);
    for dtype in ["f32", "bf16"] {
        let more = ["--heads", "2", "--dtype", dtype, "--all-algorithms"];
        let records = run_op(&["attention", "--d", "16"], &matrix, &more);
        let record = &records[0];
        assert_eq!((&record["m"], &record["k"], &record["n"]), (&3.into(), &16.into(), &4.into()));
        assert_eq!((&record["batch"], &record["flops"]), (&2.into(), &(4 * 5 * 16 * 2).into()));
        let mut names: Vec<&str> = records.iter().map(|r| r["algorithm"].as_str().unwrap()).collect();
        assert!(names.contains(&"three_steps"), "{names:?}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), records.len());
        assert!(records.iter().all(|r| r["error_over_bound"].as_f64().unwrap() <= 1.0), "{records:?}");
    }
}

#[test]
fn sizes_of_other_operations_are_refused() {
    let folder = TempDir::new().unwrap();
    let matrix = small_matrix(&folder);
    for (op, word) in [
        (&["spmm"][..], "--n"),
        (&["sddmm", "--n", "4"], "--k"),
        (&["sparse-softmax", "--d", "4"], "no dense operands"),
        (&["attention", "--heads", "2"], "--d"),
        (&["attention", "--d", "257"], "256"),
        (&["sddmm", "--k", "4", "--heads", "2"], "--heads"),
        (&["sddmm", "--k", "4", "--precision", "tf32"], "one precision"),
    ] {
        let output = bench(&[&["run"], op, &["--matrix", text(&matrix), "--device", "sim"]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{op:?}: {said}");
        assert!(said.contains(word), "{op:?}: {said}");
    }
}

#[test]
fn gradients_of_real_weights_are_swept() {
    let data = data();
    let arguments = ["sweep", "--suite", "sddmm-dlmc", "--data", text(data.path())];
    let records = json(&arguments);
    let sizes: Vec<[u64; 3]> =
        records.iter().map(|r| ["m", "k", "n"].map(|size| r[size].as_u64().unwrap())).collect();
    assert_eq!(sizes, [[3, 52, 4], [3, 392, 4], [3, 256, 4], [3, 2048, 4]]);
    let output = bench(&[&arguments[..], &["--device", "sim"]].concat());
    let said = String::from_utf8_lossy(&output.stdout);
    for part in ["K = 392", "transformer, batch 8", "2.19×"] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
}

#[test]
fn graphs_are_swept_with_each_length() {
    let data = TempDir::new().unwrap();
    let folder = data.path().join("graphs");
    fs::create_dir_all(&folder).unwrap();
    let graph = "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 1\n";
    fs::write(folder.join("star.mtx"), graph).unwrap();
    let records = json(&["sweep", "--suite", "sddmm-graphs", "--data", text(data.path())]);
    let lengths: Vec<u64> = records.iter().map(|r| r["k"].as_u64().unwrap()).collect();
    assert_eq!(lengths, [32, 64, 128, 256, 512, 1024]);
    assert!(records.iter().all(|r| r["group"] == "star" && r["nnz"] == 4 && r["op"] == "sddmm"));
}

#[test]
fn records_of_every_operation_are_compared_and_judged() {
    let folder = TempDir::new().unwrap();
    let matrix = small_matrix(&folder);
    let mut lines = Vec::new();
    for op in [&["spmm", "--n", "5"][..], &["sddmm", "--k", "5"], &["sddmm", "--k", "8"], &["sparse-softmax"]]
    {
        lines.extend(run_op(op, &matrix, &["--all-algorithms"]).iter().map(Value::to_string));
    }
    lines.extend(
        run_op(&["attention", "--d", "8"], &matrix, &["--all-algorithms"]).iter().map(Value::to_string),
    );
    let all = folder.path().join("all.jsonl");
    fs::write(&all, lines.join("\n")).unwrap();
    let output = bench(&["compare", text(&all), text(&all)]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("0 of 5 cases failed") && said.contains("| width |"), "{said}");
    let output = bench(&["oracle", "--records", text(&all)]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("| run   |     5 |"), "{said}");
}

#[test]
fn compare_is_by_the_products_where_there_is_no_cusparse() {
    let folder = TempDir::new().unwrap();
    let record = run_op(&["attention", "--d", "8"], &small_matrix(&folder), &[]).remove(0);
    let timed = |name: &str, us: f64, products: f64| {
        let timing = |us: f64| serde_json::json!({ "median": us, "min": us, "max": us });
        let (mut record, mut peer) = (record.clone(), timing(products));
        (peer["algorithm"], peer["version"]) = ("fp32".into(), "13.0".into());
        record["time_us"] = timing(us);
        record["peers"]["cublas_f32_products"] = peer;
        let path = folder.path().join(name);
        fs::write(&path, record.to_string()).unwrap();
        path
    };
    let (base, same) = (timed("base.jsonl", 10.0, 20.0), timed("same.jsonl", 20.0, 40.0));
    assert_eq!(bench(&["compare", text(&base), text(&same)]).status.code(), Some(0));
    let slower = timed("slower.jsonl", 20.0, 20.0);
    assert_eq!(bench(&["compare", text(&base), text(&slower)]).status.code(), Some(1));
    let picture = folder.path().join("plot.svg");
    assert_eq!(bench(&["plot", text(&base), "--out", text(&picture)]).status.code(), Some(0));
    let svg = fs::read_to_string(picture).unwrap();
    assert!(svg.contains("Sparse attention") && svg.contains("both products"), "{svg}");
}
