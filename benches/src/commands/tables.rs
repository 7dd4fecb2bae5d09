//! `tables`: the tables of Markdown pages that are made from records.
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cli::TablesOptions;
use crate::pages::{self, Files};
use lacuna_cases::exit::{Outcome, Usage};

/// Writes the tables of README.md and of the pages in docs anew, or tells which differ from the records.
///
/// # Errors
/// Pages or records that cannot be read, and marks that make no sense.
pub fn tables(options: &TablesOptions) -> Result<Outcome> {
    let files = Files::of(&options.root);
    let mut changed = 0;
    for path in markdown(&options.root)? {
        let full = options.root.join(&path);
        let old = fs::read_to_string(&full).with_context(|| format!("{} cannot be read", full.display()))?;
        let page = pages::renewed(&path, &old, &files)?;
        for change in &page.changes {
            let what = if options.check { "differs from the records" } else { "written" };
            println!("{}, line {}, table `{}`: {what}", path.display(), change.line, change.spec);
        }
        changed += page.changes.len();
        if !options.check && !page.changes.is_empty() {
            fs::write(&full, page.text).with_context(|| format!("{} cannot be written", full.display()))?;
        }
    }
    if options.check && changed > 0 {
        println!("`lacuna-bench tables` writes them anew");
        return Ok(Outcome::Failure);
    }
    Ok(Outcome::Good)
}

/// README.md and all pages below docs, from the root.
fn markdown(root: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = vec![PathBuf::from("README.md")];
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        let full = root.join(&folder);
        let entries = fs::read_dir(&full).with_context(|| {
            Usage(format!("{}: no folder of pages; --root names the repository", full.display()))
        })?;
        for entry in entries {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    Ok(pages)
}
