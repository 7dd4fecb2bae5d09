//! `cargo xtask build`: the kernels' PTX, and what they take of a GPU.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use lacuna_kernels::entries;
use lacuna_ptx::{Builder, Cache, LaunchBounds, Module, Target, cache};

use crate::outcome::Usage;
use crate::{paths, rust_cuda, setup};

/// The committed table, from the repository's root.
const GOLDEN: &str = "docs/resources.txt";

/// What makes PTX of the kernels.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Codegen {
    /// rustc's own back end
    #[default]
    Rustc,
    /// rust-cuda's, with CUDA's libNVVM: see docs/rust-cuda.md
    Nvvm,
}

/// What `build` is told.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Build for this target only; may be repeated [default: all]
    #[arg(long = "target", value_name = "sm_NN")]
    targets: Vec<Target>,
    /// What makes the PTX
    #[arg(long, value_enum, default_value_t)]
    codegen: Codegen,
    /// Rewrite docs/resources.txt instead of comparing with it
    #[arg(long)]
    bless: bool,
    /// Write each entry's PTX below this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let whole = arguments.targets.is_empty();
    if arguments.bless && !whole {
        return Err(Usage("--bless needs the table of all targets: leave --target out".into()).into());
    }
    let of_rustc = arguments.codegen == Codegen::Rustc;
    if arguments.bless && !of_rustc {
        return Err(Usage("--bless needs the table of rustc's PTX: leave --codegen out".into()).into());
    }
    let given = tempfile::tempdir()?;
    let cache = Cache::of_user()?;
    if of_rustc {
        setup::compiler(&cache)?;
    } else {
        rust_cuda::modules(given.path())?;
    }
    if let Err(error) = setup::ptxas(&cache) {
        eprintln!("note: resources are not checked: {error:#}");
    }

    let mut builder =
        Builder::new(paths::root().join("crates/kernels")).launch_bounds(launch_bounds).cache(cache);
    if !whole {
        builder = builder.targets(&arguments.targets);
    }
    if let Some(folder) = &arguments.out {
        builder = builder.copy_to(folder);
    }
    if !of_rustc {
        builder = builder.modules(given.path());
    }
    let start = Instant::now();
    let build = builder.build()?;
    let seconds = start.elapsed().as_secs_f64();
    for module in &build.modules {
        check_entries(module, arguments.codegen)?;
        let from = match arguments.codegen {
            Codegen::Nvvm => "by rust-cuda",
            Codegen::Rustc if build.compiled.contains(&module.target) => "compiled",
            Codegen::Rustc => "from the cache",
        };
        eprintln!("{}: {} entries, {from}", module.target, module.entries.len());
    }
    let compiler = build.compiler.map_or_else(|| "rust-cuda".into(), |compiler| compiler.version);
    eprintln!("{compiler}, {seconds:.1} s");

    let Some(table) = build.resources else {
        ensure!(!arguments.bless, "no ptxas, so no table to write to {GOLDEN}");
        return Ok(());
    };
    let table = table.to_string();
    print!("{table}");
    let golden = paths::root().join(GOLDEN);
    match (arguments.bless, whole && of_rustc) {
        (true, _) => Ok(cache::write_atomically(&golden, &table)?),
        (false, true) => compare(&golden, &table),
        (false, false) => Ok(()),
    }
}

/// The host's table of entries gives the launch bounds.
fn launch_bounds(entry: &str) -> Option<LaunchBounds> {
    entries::all().find(|listed| listed.name == entry).map(|listed| LaunchBounds {
        max_threads: listed.bounds.max_threads,
        min_blocks: listed.bounds.min_blocks,
        cluster: listed.cluster,
        threads: listed.threads,
        shared_bytes: listed.shared_bytes,
    })
}

/// The highest level of entries that a code generator makes: rust-cuda's route has no products of warpgroups.
fn highest_level(codegen: Codegen) -> u32 {
    match codegen {
        Codegen::Rustc => u32::MAX,
        Codegen::Nvvm => 80,
    }
}

/// The module must have just the entries that the host would launch on its target, up to the code generator's level.
fn check_entries(module: &Module, codegen: Codegen) -> anyhow::Result<()> {
    let built: BTreeSet<_> = module.entries.iter().map(|entry| entry.name.as_str()).collect();
    let level = module.target.level();
    let highest = highest_level(codegen);
    let listed: BTreeSet<_> = entries::all()
        .filter(|entry| entry.runs_on(level) && entry.min_sm <= highest)
        .map(|entry| entry.name)
        .collect();
    if let Some(entry) = listed.difference(&built).next() {
        bail!("{}: entry `{entry}` is in the list of kernels and not in the PTX", module.target);
    }
    if let Some(entry) = built.difference(&listed).next() {
        bail!(
            "{}: entry `{entry}` is in the PTX and not in the list of kernels for this target",
            module.target
        );
    }
    Ok(())
}

fn compare(golden: &Path, table: &str) -> anyhow::Result<()> {
    let old = match fs::read_to_string(golden) {
        Ok(old) if !old.trim().is_empty() => old,
        Ok(_) => bail!("{GOLDEN} is empty: write it with `cargo xtask build --bless`"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("there is no {GOLDEN}: write it with `cargo xtask build --bless`")
        }
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", golden.display())),
    };
    if old.lines().next() != table.lines().next() {
        eprintln!("note: {GOLDEN} was made with other tools ({}), so it is not compared", first_line(&old));
        return Ok(());
    }
    let changes = changes(&old, table);
    if changes.is_empty() {
        return Ok(());
    }
    bail!(
        "{GOLDEN} has changed:\n{}\nif that is meant, rewrite it with `cargo xtask build --bless`",
        changes.join("\n")
    )
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Lines that only one of the two tables has, the old one's first for each entry. Widths of columns do not count.
fn changes(old: &str, new: &str) -> Vec<String> {
    let words = |text: &str| -> BTreeSet<Vec<String>> {
        text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    };
    let (old, new) = (words(old), words(new));
    let mut changes: Vec<_> = old.difference(&new).map(|line| (line, '-')).collect();
    changes.extend(new.difference(&old).map(|line| (line, '+')));
    changes.sort_by(|a, b| (a.0.get(..2), b.1).cmp(&(b.0.get(..2), a.1)));
    changes.into_iter().map(|(line, sign)| format!("{sign} {}", line.join("  "))).collect()
}

#[cfg(test)]
mod tests {
    use lacuna_ptx::EntryPtx;

    use super::*;

    #[test]
    fn changes_pair_up_by_entry() {
        let old = "head\n\nadd    sm_70  64\nscale  sm_70  32\n";
        let new = "head\n\nadd       sm_70  72\nscale     sm_70  32\nscale_all sm_70  16\n";
        assert_eq!(changes(old, new), ["- add  sm_70  64", "+ add  sm_70  72", "+ scale_all  sm_70  16"]);
        assert!(changes(old, old).is_empty());
    }

    #[test]
    fn every_listed_entry_has_bounds() {
        for entry in entries::all() {
            let bounds = launch_bounds(entry.name).unwrap();
            assert_eq!(
                (bounds.max_threads, bounds.min_blocks),
                (entry.bounds.max_threads, entry.bounds.min_blocks)
            );
        }
        assert_eq!(launch_bounds("no such entry"), None);
    }

    #[test]
    fn each_code_generator_must_make_the_entries_of_its_levels() {
        let module = |target: Target, highest: u32| {
            let listed =
                entries::all().filter(|entry| entry.runs_on(target.level()) && entry.min_sm <= highest);
            let entry = |name: &str| EntryPtx { name: name.into(), ptx: String::new(), bounds: None };
            Module { target, entries: listed.map(|listed| entry(listed.name)).collect() }
        };
        let [all, lower] = [u32::MAX, 80].map(|highest| module(Target::Sm90a, highest));
        assert!(check_entries(&all, Codegen::Rustc).is_ok());
        assert!(check_entries(&lower, Codegen::Nvvm).is_ok());
        assert!(check_entries(&lower, Codegen::Rustc).unwrap_err().to_string().contains("not in the PTX"));
        assert!(check_entries(&all, Codegen::Nvvm).unwrap_err().to_string().contains("not in the list"));
    }

    #[test]
    fn a_golden_table_is_compared_only_with_its_equals() {
        let dir = tempfile::tempdir().unwrap();
        let golden = dir.path().join("resources.txt");
        assert!(compare(&golden, "tools 1\na 1\n").unwrap_err().to_string().contains("--bless"));
        fs::write(&golden, "\n").unwrap();
        assert!(compare(&golden, "tools 1\na 1\n").unwrap_err().to_string().contains("--bless"));
        fs::write(&golden, "tools 1\na 1\n").unwrap();
        assert!(compare(&golden, "tools 1\na 1\n").is_ok());
        assert!(compare(&golden, "tools 2\na 2\n").is_ok());
        assert!(compare(&golden, "tools 1\na 2\n").unwrap_err().to_string().contains("- a  1\n+ a  2"));
    }
}
