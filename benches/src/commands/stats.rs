//! `stats`: what patterns look like.
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lacuna::matrix::{PatternStats, io};
use serde::Serialize;

use crate::cli::StatsOptions;
use crate::table::new_table;
use lacuna_cases::exit::{Outcome, Usage};

/// The columns of a table that describes patterns.
pub(super) const COLUMNS: [&str; 9] =
    ["rows", "columns", "nonzeros", "sparsity", "mean row", "CoV", "min", "max", "empty"];

/// A pattern in these columns.
pub(super) fn cells(stats: &PatternStats) -> [String; 9] {
    [
        stats.rows.to_string(),
        stats.cols.to_string(),
        stats.nnz.to_string(),
        format!("{:.4}", stats.sparsity),
        format!("{:.1}", stats.mean_row_length),
        format!("{:.3}", stats.row_length_cov),
        stats.min_row_length.to_string(),
        stats.max_row_length.to_string(),
        stats.empty_rows.to_string(),
    ]
}

#[derive(Serialize)]
struct Line {
    matrix: String,
    #[serde(flatten)]
    stats: PatternStats,
}

/// Describes the patterns of matrices.
///
/// # Errors
/// A path that is not there, or a file that is no matrix.
pub fn stats(options: &StatsOptions) -> Result<Outcome> {
    let mut files = Vec::new();
    for path in &options.paths {
        collect(path, &mut files)?;
    }
    if files.is_empty() {
        return Err(Usage("no *.smtx or *.mtx file in these folders".into()).into());
    }
    files.sort();
    let mut table = new_table(["matrix"].into_iter().chain(COLUMNS));
    for path in files {
        let stats = read(&path)?;
        let matrix = path.display().to_string();
        if options.json {
            println!("{}", serde_json::to_string(&Line { matrix, stats })?);
            continue;
        }
        table.add_row([matrix].into_iter().chain(cells(&stats)));
    }
    if !options.json {
        println!("{table}");
    }
    Ok(Outcome::Good)
}

fn is_matrix(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "smtx" || extension == "mtx")
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    for entry in path.read_dir().with_context(|| format!("{} cannot be read", path.display()))? {
        let entry = entry?.path();
        if entry.is_dir() || is_matrix(&entry) {
            collect(&entry, files)?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<PatternStats> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("smtx") => Ok(io::smtx::read_path(path)?.stats()),
        Some("mtx") => Ok(io::mtx::read_path(path)?.pattern().stats()),
        _ => Err(Usage(format!("{}: expected a folder, *.smtx or *.mtx", path.display())).into()),
    }
}
