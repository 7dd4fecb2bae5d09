//! Real matrices, where the environment variable `LACUNA_DATA` names a folder that holds the Deep Learning
//! Matrix Collection as `dlmc/` and Matrix Market graphs as `graphs/`. Without it these tests say so and pass.

use lacuna_matrix::io::{mtx, smtx};
use std::path::{Path, PathBuf};

/// The files below a folder of the data with this extension; none, with a word why, where there is no data.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let Some(data) = std::env::var_os("LACUNA_DATA") else {
        eprintln!("skipped: LACUNA_DATA is not set");
        return Vec::new();
    };
    let folder = Path::new(&data).join(folder);
    if !folder.is_dir() {
        eprintln!("skipped: {} is not there; unpack it", folder.display());
        return Vec::new();
    }
    let mut found = Vec::new();
    collect(&folder, extension, &mut found);
    assert!(!found.is_empty(), "no .{extension} file in {}", folder.display());
    found
}

fn collect(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, extension, found);
        } else if path.extension().is_some_and(|is| is == extension) {
            found.push(path);
        }
    }
}

/// Every DLMC matrix loads, has the sparsity that its folder names, and is written as it was read.
#[test]
fn dlmc() {
    for path in files("dlmc", "smtx") {
        let pattern = smtx::read_path(&path).unwrap();
        let named: f64 = path.parent().unwrap().file_name().unwrap().to_str().unwrap().parse().unwrap();
        let stats = pattern.stats();
        assert!((stats.sparsity - named).abs() < 0.02, "{}: {stats:?}", path.display());
        let mut written = Vec::new();
        smtx::write(&pattern, &mut written).unwrap();
        assert_eq!(smtx::read(&written[..]).unwrap(), pattern);
        assert_eq!(pattern.transpose().transpose(), pattern);
    }
}

#[test]
fn graphs() {
    for path in files("graphs", "mtx") {
        let graph = mtx::read_path(&path).unwrap();
        assert_eq!(graph.rows(), graph.cols(), "{}", path.display());
        let symmetric = graph.pattern().transpose() == **graph.pattern();
        // Of these graphs only Gnutella's is directed.
        assert_eq!(symmetric, !path.ends_with("p2p-Gnutella31.mtx"), "{}", path.display());
        let mut written = Vec::new();
        mtx::write(&graph, &mut written).unwrap();
        assert_eq!(mtx::read(&written[..]).unwrap(), graph);
    }
}
