//! `prune`: weights of small magnitude become zero.
use std::path::Path;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use lacuna::matrix::PatternStats;
use lacuna_models::files::{Archive, FileError};
use lacuna_models::prune::{self, LayerStats, Patterns, PruneError};
use lacuna_models::weights::Tensor;
use serde::Serialize;

use super::stats;
use crate::cli::PruneOptions;
use crate::table::{align_numbers, new_table};
use lacuna_cases::exit::{Outcome, Usage};

/// Columns of the table that are text.
const NAMES: usize = 2;

#[derive(Serialize)]
struct Line {
    tensor: String,
    shape: Vec<usize>,
    #[serde(flatten)]
    stats: PatternStats,
}

/// Prunes the weights of a file.
///
/// # Errors
/// A file that cannot be read or written, a sparsity that is none, or patterns that fit no tensor.
pub fn prune(options: &PruneOptions) -> Result<Outcome> {
    if is_same(&options.input, &options.output) {
        return Err(Usage("the file to write is the one to read: name another".into()).into());
    }
    let mut archive = read(&options.input)?;
    let mut sparse: Vec<String> = archive.sparse.keys().cloned().collect();
    archive.decompress().map_err(in_input(&options.input))?;
    let chosen = chosen(&archive, &options.only)?;
    let is_chosen = |name: &str| chosen.binary_search_by(|known| known.as_str().cmp(name)).is_ok();

    let progress = progress(chosen.len(), "prunes")?;
    if options.global {
        prune::global(&mut archive.dense, options.sparsity, |name, _| is_chosen(name)).map_err(refused)?;
    } else {
        for (name, tensor) in archive.dense.iter_mut().filter(|(name, _)| is_chosen(name)) {
            progress.set_message(name.to_owned());
            prune::tensor(tensor, options.sparsity).map_err(refused)?;
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    let layers = archive.dense.iter().filter(|(name, _)| is_chosen(name));
    let layers: Vec<LayerStats> = layers
        .map(|(name, tensor)| LayerStats::of(name, tensor))
        .collect::<Result<_, _>>()
        .map_err(refused)?;

    if options.csr {
        sparse.extend(chosen.iter().cloned());
    }
    archive.compress(sparse.iter().map(String::as_str))?;
    archive.save(&options.output)?;
    print(layers, options)?;
    Ok(Outcome::Good)
}

/// Whether both are one file that is there.
fn is_same(input: &Path, output: &Path) -> bool {
    matches!((input.canonicalize(), output.canonicalize()), (Ok(input), Ok(output)) if input == output)
}

/// What is wrong with the input is bad usage, as with other files.
pub(super) fn in_input(path: &Path) -> impl Fn(FileError) -> Usage {
    move |error| {
        let (path, text) = (path.display().to_string(), error.to_string());
        Usage(if text.contains(&path) { text } else { format!("{path}: {text}") })
    }
}

fn refused(error: PruneError) -> Usage {
    Usage(error.to_string())
}

/// indicatif draws on stderr, and only where that is a terminal.
fn progress(len: usize, what: &'static str) -> Result<ProgressBar> {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {prefix} {msg}")?;
    Ok(ProgressBar::new(len as u64).with_style(style).with_prefix(what))
}

fn read(path: &Path) -> Result<Archive> {
    let progress = progress(0, "reads")?;
    let archive = Archive::open(path, |name, count| {
        progress.set_length(count as u64);
        progress.set_message(name.to_owned());
        progress.inc(1);
    });
    progress.finish_and_clear();
    Ok(archive.map_err(in_input(path))?)
}

/// The names of the tensors to prune, in order.
fn chosen(archive: &Archive, only: &[String]) -> Result<Vec<String>> {
    let matrices =
        archive.dense.iter().filter(|(name, tensor): &(&str, &Tensor)| prune::is_matrix(name, tensor));
    let names: Vec<&str> = matrices.map(|(name, _)| name).collect();
    let patterns = Patterns::new(only);
    if let Some(unused) = patterns.unused(names.iter().copied()).first() {
        let why = format!(
            "`--only {unused}` fits no tensor of two dimensions or more; there are {}",
            listed(&names)
        );
        return Err(Usage(why).into());
    }
    if names.is_empty() {
        return Err(Usage("there is no tensor of two dimensions or more to prune".into()).into());
    }
    let fit = |name: &&str| only.is_empty() || patterns.fit(name);
    Ok(names.into_iter().filter(fit).map(str::to_owned).collect())
}

/// The first of the names, for a message.
fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    let dots = if names.len() > SHOWN { " and more" } else { "" };
    match &names[..names.len().min(SHOWN)] {
        [] => "none".into(),
        shown => format!("{}{dots}", shown.join(", ")),
    }
}

fn print(layers: Vec<LayerStats>, options: &PruneOptions) -> Result<()> {
    if options.json {
        for LayerStats { name, shape, stats } in layers {
            println!("{}", serde_json::to_string(&Line { tensor: name, shape, stats })?);
        }
        return Ok(());
    }
    let mut table = new_table(["tensor", "shape"].into_iter().chain(stats::COLUMNS));
    let (mut nnz, mut elements) = (0, 0);
    for LayerStats { name, shape, stats: of_layer } in &layers {
        nnz += of_layer.nnz;
        elements += of_layer.rows * of_layer.cols;
        table.add_row([name.clone(), format!("{shape:?}")].into_iter().chain(stats::cells(of_layer)));
    }
    align_numbers(&mut table, NAMES);
    println!("{table}");
    let zeros = if elements == 0 { 0.0 } else { 100.0 - 100.0 * nnz as f64 / elements as f64 };
    println!(
        "{nnz} of {elements} weights left in {} tensors, {zeros:.2} % zeros: {}",
        layers.len(),
        options.output.display()
    );
    Ok(())
}
