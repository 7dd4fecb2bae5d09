//! `prune`, through the built program.
use std::path::{Path, PathBuf};

use lacuna_models::files::{Archive, safetensors};
use lacuna_models::weights::{Tensor, Weights};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{bench, text};

/// Two matrices and a bias.
fn network(folder: &TempDir) -> PathBuf {
    let mut weights = Weights::new();
    let mut insert = |name: &str, shape: &[usize], values: &[f32]| {
        weights.insert(name, Tensor::new(shape.to_vec(), values.to_vec()).unwrap());
    };
    insert("conv.weight", &[2, 2, 1, 1], &[1.0, -4.0, 2.0, 3.0]);
    insert("fc.weight", &[2, 2], &[0.1, 0.2, -0.3, 0.4]);
    insert("fc.bias", &[2], &[0.01, 0.02]);
    let path = folder.path().join("in.safetensors");
    safetensors::write(&weights, &path).unwrap();
    path
}

fn prune(input: &Path, output: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    let result = bench(&[&["prune", text(input), text(output)], more].concat());
    let [out, err] = [result.stdout, result.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (result.status.code(), out, err)
}

#[test]
fn layers_are_pruned_and_described() {
    let folder = TempDir::new().unwrap();
    let (input, output) = (network(&folder), folder.path().join("out.safetensors"));
    let (code, out, err) = prune(&input, &output, &["--sparsity", "0.5", "--json"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (lines.len(), &lines[0]["tensor"], &lines[1]["tensor"]),
        (2, &"conv.weight".into(), &"fc.weight".into())
    );
    assert_eq!(
        (&lines[0]["sparsity"], &lines[0]["nnz"], &lines[0]["rows"]),
        (&0.5.into(), &2.into(), &2.into())
    );
    let pruned = safetensors::read(&output).unwrap();
    assert_eq!(pruned.get("conv.weight", &[2, 2, 1, 1]).unwrap().values(), [0.0, -4.0, 0.0, 3.0]);
    assert_eq!(pruned.get("fc.weight", &[2, 2]).unwrap().values(), [0.0, 0.0, -0.3, 0.4]);
    assert_eq!(pruned.get("fc.bias", &[2]).unwrap().values(), [0.01, 0.02]);
}

#[test]
fn pruned_tensors_are_written_as_csr_when_asked() {
    let folder = TempDir::new().unwrap();
    let (input, output) = (network(&folder), folder.path().join("out.safetensors"));
    let (code, out, _) = prune(&input, &output, &["--sparsity", "0.5", "--global", "--csr"]);
    assert_eq!(code, Some(0));
    assert!(
        out.contains("| fc.weight") && out.contains("4 of 8 weights left in 2 tensors, 50.00 % zeros"),
        "{out}"
    );
    let archive = Archive::open(&output, |_, _| {}).unwrap();
    assert_eq!(archive.sparse.keys().collect::<Vec<_>>(), ["conv.weight", "fc.weight"]);
    assert_eq!(archive.sparse["conv.weight"].matrix().nnz(), 4);
    assert_eq!(archive.sparse["fc.weight"].matrix().nnz(), 0);

    // What was sparse stays so.
    let again = folder.path().join("again.safetensors");
    let (code, ..) = prune(&output, &again, &["--sparsity", "0.75", "--only", "conv"]);
    assert_eq!(code, Some(0));
    let archive = Archive::open(&again, |_, _| {}).unwrap();
    assert_eq!(archive.sparse["conv.weight"].matrix().values(), [-4.0]);
    assert!(archive.sparse.contains_key("fc.weight"));
}

#[test]
fn what_cannot_be_pruned_is_bad_usage() {
    let folder = TempDir::new().unwrap();
    let (input, output) = (network(&folder), folder.path().join("out.safetensors"));
    let damaged = folder.path().join("damaged.safetensors");
    std::fs::write(&damaged, b"nothing").unwrap();
    for (input, output, more, says) in [
        (&input, &output, &["--sparsity", "1.5"][..], "expected from 0 to 1, got 1.5"),
        (&input, &output, &["--sparsity", "0.5", "--only", "conv", "norm"], "`--only norm` fits no tensor"),
        (&input, &input, &["--sparsity", "0.5"], "name another"),
        (&damaged, &output, &["--sparsity", "0.5"], "damaged.safetensors"),
    ] {
        let (code, _, err) = prune(input, output, more);
        assert!(code == Some(2) && err.contains(says), "{code:?} {err}");
    }
    assert!(!output.exists());
    let (code, _, err) = prune(&input, &folder.path().join("none/out"), &["--sparsity", "0.5"]);
    assert!(code == Some(1) && err.contains("cannot write"), "{code:?} {err}");
}
