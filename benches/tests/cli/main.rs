//! The command line's contract, through the built program, on the simulator.
mod compare;
mod conv;
mod host;
mod lookups;
mod networks;
mod operations;
mod prune;
mod ranks;
mod support;
mod tables;

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{bench, data, run_json, small_matrix, text};

#[test]
fn run_prints_the_fields_of_the_contract() {
    let folder = TempDir::new().unwrap();
    let records = run_json(&small_matrix(&folder), &[]);
    assert_eq!(records.len(), 1);
    let record = &records[0];
    assert_eq!(
        (&record["suite"], &record["op"], &record["dtype"]),
        (&"run".into(), &"spmm".into(), &"f32".into())
    );
    assert_eq!((&record["m"], &record["k"], &record["n"]), (&3.into(), &4.into(), &5.into()));
    assert_eq!((&record["nnz"], &record["seed"], &record["flops"]), (&5.into(), &1.into(), &50.into()));
    assert_eq!(record["bytes"], 5 * 8 + 3 * 16 + (4 + 3) * 5 * 4);
    assert_eq!(record["device"], "simulator");
    // Lanes past the last column repeat it.
    assert!(record["counts"]["fmas"].as_u64().unwrap() >= 25);
    assert!(record.get("time_us").is_none(), "the simulator measures nothing");
    for machine in ["V100", "A100", "H100", "H200"] {
        assert!(record["model_us"][machine].as_f64().unwrap() > 0.0, "{machine}");
    }
    assert!(record["error_over_bound"].as_f64().unwrap() <= 1.0);
    assert_eq!(record["checked_rows"], 3);
}

#[test]
fn every_legal_kernel_is_measured_when_asked() {
    let folder = TempDir::new().unwrap();
    let records = run_json(&small_matrix(&folder), &["--all-algorithms"]);
    let mut names: Vec<&str> = records.iter().map(|record| record["algorithm"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), records.len());
    assert!(
        names.len() > 5 && names.iter().all(|name| name.starts_with("spmm_f32_rowsplit_v1_")),
        "{names:?}"
    );
}

#[test]
fn prepacked_matrices_say_so_under_both_names_of_the_option() {
    let folder = TempDir::new().unwrap();
    let matrix = small_matrix(&folder);
    for option in ["--prepacked", "--packed"] {
        assert_eq!(run_json(&matrix, &["--dtype", "f16", option])[0]["packed"], true);
    }
    let said =
        bench(&["run", "sddmm", "--matrix", text(&matrix), "--k", "4", "--device", "sim", "--prepacked"]);
    assert_eq!(said.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&said.stderr).contains("--prepacked"));
}

#[test]
fn matrix_market_files_run_too() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("small.mtx");
    fs::write(&path, "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 0.5\n2 2 -3\n").unwrap();
    assert_eq!(run_json(&path, &[])[0]["nnz"], 2);
}

#[test]
fn bad_usage_exits_with_2_and_says_why() {
    let folder = TempDir::new().unwrap();
    let matrix = small_matrix(&folder);
    let truncated = folder.path().join("truncated.smtx");
    fs::write(&truncated, "3, 4, 5\n0 3 3 5\n0 2\n").unwrap();
    let cases: [(&[&str], &str); 13] = [
        (&["run", "spmm", "--matrix", "nowhere.smtx", "--n", "4", "--device", "sim"], "nowhere.smtx"),
        (&["run", "spmm", "--matrix", text(&truncated), "--n", "4", "--device", "sim"], "line 3"),
        (&["run", "spmm", "--matrix", text(&matrix), "--n", "4", "--device", "tpu"], "`tpu`"),
        (&["run", "spmm", "--matrix", text(&matrix), "--n", "0", "--device", "sim"], "--n"),
        (&["run", "spmm", "--matrix", text(&matrix), "--n", "4294967295", "--device", "sim"], "--n"),
        (&["run", "gemm", "--matrix", text(&matrix), "--n", "4"], "gemm"),
        (&["sweep", "--suite", "help", "--device", "sim"], "smoke"),
        (&["sweep", "--suite", "rnn", "--device", "sim", "--profile", "tpu"], "h200"),
        (&["sweep", "--suite", "rnn", "--device", "sim", "--dtype", "f64"], "bf16"),
        (&["sweep", "--suite", "rnn", "--device", "sim", "--limit", "0"], "--limit"),
        (&["sweep", "--suite", "smoke", "--device", "sim", "--case", "nowhere"], "`nowhere`"),
        (&["run", "spmm", "--matrix", text(&matrix), "--n", "4", "--device", "sim", "--index", "u64"], "u16"),
        (&["sweep", "--suite", "dlmc", "--device", "sim", "--data", text(folder.path())], "dlmc.tar.xz"),
    ];
    for (arguments, word) in cases {
        let output = bench(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
}

#[test]
fn a_gpu_that_is_not_there_exits_with_3() {
    let folder = TempDir::new().unwrap();
    let matrix = small_matrix(&folder);
    let output = bench(&["run", "spmm", "--matrix", text(&matrix), "--n", "4", "--device", "cuda:1000"]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn stats_describe_a_pattern() {
    let folder = TempDir::new().unwrap();
    small_matrix(&folder);
    let output = bench(&["stats", "--json", text(folder.path())]);
    assert_eq!(output.status.code(), Some(0));
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&line["rows"], &line["nnz"], &line["empty_rows"]), (&3.into(), &5.into(), &1.into()));
    assert!((line["mean_row_length"].as_f64().unwrap() - 5.0 / 3.0).abs() < 1e-12);
}

#[test]
fn real_weights_are_swept_with_the_papers_columns() {
    let data = data();
    let arguments = ["sweep", "--suite", "dlmc", "--device", "sim", "--json", "--data", text(data.path())];
    let output = bench(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let records: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: Vec<_> =
        records.iter().map(|r| (r["case"].as_str().unwrap(), r["n"].as_u64().unwrap())).collect();
    let layers = [("rn50/0.7/layer", 52), ("rn50/0.7/layer", 392)];
    assert_eq!(found, [&layers[..], &[("transformer/0.7/ffn", 256), ("transformer/0.7/ffn", 2048)]].concat());
    assert!(records.iter().all(|record| record["chosen"] == true && record["index"] == "u32"));
    assert_eq!((&records[1]["group"], &records[1]["m"]), (&"rn50, batch 8".into(), &3.into()));
}

#[test]
fn a_sweep_ends_with_means_beside_what_was_published() {
    let data = data();
    let arguments =
        ["sweep", "--suite", "dlmc", "--device", "sim", "--profile", "v100", "--data", text(data.path())];
    let output = bench(&arguments);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    for part in ["model of V100", "N = 392", "transformer, batch 8", "3.58×", "Table I"] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
}

#[test]
fn a_batch_size_that_is_not_there_is_named() {
    let data = data();
    fs::write(data.path().join("dlmc/rn50_batchsizes.txt"), "other,49\n").unwrap();
    let output = bench(&["sweep", "--suite", "dlmc", "--device", "sim", "--data", text(data.path())]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no line for layer"));
}

#[test]
fn ablations_stand_beside_the_papers() {
    let data = data();
    let arguments = ["ablation", "--device", "sim", "--data", text(data.path())];
    let output = bench(&arguments);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let percent = |cell: &str| cell.trim_end_matches(" %").parse::<f64>().unwrap();
    // The paper's and ours, for each network and batch.
    for (idea, first) in [
        ("load balancing", 96.1),
        ("vector instructions", 100.1),
        ("residue unrolling", 92.0),
        ("index pre-scaling *", 100.6),
    ] {
        let line = said.lines().find(|line| line.contains(idea)).unwrap();
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        assert_eq!(percent(cells[2]), first);
        assert!([3, 5, 7, 9].iter().all(|&ours| percent(cells[ours]) > 0.0), "{line}");
    }
    assert!(said.contains("The kernel: spmm_f32_rowsplit_v4_l"), "{said}");
    let json = bench(&[&arguments[..], &["--json"]].concat());
    let json = String::from_utf8(json.stdout).unwrap();
    let records: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kernel = |record: &Value| record["algorithm"].as_str().unwrap().to_string();
    for (variant, ending) in [
        ("no load balancing", "w8"),
        ("no vector instructions", "w8"),
        ("no residue unrolling", "w8_noresidue"),
        ("with index pre-scaling", "w8_prescaled"),
    ] {
        let suite = format!("ablation: {variant}");
        let of_variant: Vec<_> = records.iter().filter(|record| record["suite"] == suite.as_str()).collect();
        assert_eq!(of_variant.len(), 4, "{variant}");
        assert!(of_variant.iter().all(|record| kernel(record).ends_with(ending)), "{of_variant:?}");
    }
    let two = bench(&[&arguments[..], &["--json", "--limit", "2", "--samples", "1"]].concat());
    assert_eq!(
        String::from_utf8(two.stdout).unwrap().lines().count(),
        2 * 5,
        "complete kernels and four variants"
    );
    assert!(String::from_utf8_lossy(&two.stderr).contains("2 of 4 cases run"));
    let halves = bench(&[&arguments[..], &["--dtype", "f16"]].concat());
    assert_eq!(halves.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&halves.stderr).contains("--dtype"));
}

#[test]
fn ablations_of_sampled_products_have_a_kernel_each() {
    let data = data();
    let arguments = ["ablation", "sddmm", "--device", "sim", "--data", text(data.path())];
    let output = bench(&arguments);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for (idea, published) in [("load balancing", "101.1 %"), ("vector instructions", "170.6 %")] {
        let line = said.lines().find(|line| line.contains(idea)).unwrap();
        assert!(line.contains(published) && !line.contains('–'), "{line}");
    }
    let json = bench(&[&arguments[..], &["--json", "--limit", "2"]].concat());
    let json = String::from_utf8(json.stdout).unwrap();
    let records: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kernels = |suite: &str| -> Vec<&str> {
        let of_suite = records.iter().filter(|record| record["suite"] == suite);
        of_suite.map(|record| record["algorithm"].as_str().unwrap()).collect()
    };
    assert_eq!(records.len(), 2 * 4, "two complete kernels, and a variant of each");
    assert_eq!(kernels("ablation: panels"), kernels("ablation: panels, no load balancing"));
    let complete = kernels("ablation: nonzeros");
    assert!(complete.iter().all(|kernel| kernel.contains("_nonzero_v4x1_l")), "{complete:?}");
    let scalar: Vec<String> = complete.iter().map(|kernel| kernel.replace("v4x1", "v1x4")).collect();
    assert_eq!(kernels("ablation: nonzeros, no vector instructions"), scalar);
}

#[test]
fn cold_caches_stand_in_records_and_tables() {
    let arguments = ["sweep", "--suite", "smoke", "--device", "sim", "--limit", "1"];
    let of = |more: &[&str]| {
        let output = bench(&[&arguments[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let [warm, cold]: [Value; 2] =
        [&["--json"][..], &["--json", "--cold"]].map(|more| serde_json::from_str(&of(more)).unwrap());
    assert!(warm.get("cold").is_none() && cold["cold"] == true, "{cold}");
    assert_eq!(warm["counts"], cold["counts"], "the flush is none of the work");
    assert!(of(&["--cold"]).contains("| caches"));
}

#[test]
fn cases_can_be_named() {
    let output =
        bench(&["sweep", "--suite", "smoke", "--device", "sim", "--case", "attention output", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&record["case"], &record["m"]), (&"attention output".into(), &256.into()));
}

#[test]
fn the_transpose_is_checked_and_modelled() {
    let folder = TempDir::new().unwrap();
    let matrix = small_matrix(&folder);
    let output = bench(&["transpose", "--matrix", text(&matrix), "--device", "sim", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&record["op"], &record["m"], &record["k"]), (&"transpose".into(), &3.into(), &4.into()));
    assert_eq!((&record["right"], &record["gather_bytes"]), (&true.into(), &60.into()));
    assert!(record.get("gather_us").is_none(), "the simulator measures nothing");
    assert!(record["build_model_us"]["H200"].as_f64() > record["gather_model_us"]["H200"].as_f64());
    let drawn = ["transpose", "--rows", "20", "--cols", "30", "--sparsity", "0.5", "--device", "sim"];
    let output = bench(&drawn);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("20 × 30, 300 nonzeros"));
    assert_eq!(bench(&["transpose", "--sparsity", "1.5", "--device", "sim"]).status.code(), Some(2));
}
