//! `cargo xtask build`: the kernels' PTX, and what they take of a GPU.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use lacuna_kernels::{Entry, entries};
use lacuna_ptx::{Builder, Cache, LaunchBounds, Module, ResourceTable, Target, cache};

use crate::outcome::Usage;
use crate::{paths, rust_cuda, setup};

/// The committed tables, from the repository's root: a file an operation.
const GOLDEN: &str = "docs/resources";

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
    /// Rewrite the tables in docs/resources instead of comparing with them
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
    print!("{table}");
    match (arguments.bless, whole && of_rustc) {
        (true, _) => bless(&table),
        (false, true) => compare(paths::root(), &tables(&table)),
        (false, false) => Ok(()),
    }
}

/// The table of each operation, with the name of its file.
fn tables(table: &ResourceTable) -> Vec<(String, String)> {
    let of = |(operation, entries): &(&str, &[Entry<()>])| {
        let rows = table.rows.iter().filter(|row| entries.iter().any(|entry| entry.name == row.entry));
        let table = ResourceTable { rows: rows.cloned().collect(), ..table.clone() };
        (format!("{GOLDEN}/{operation}.txt"), table.to_string())
    };
    entries::OPERATIONS.iter().map(of).collect()
}

fn bless(table: &ResourceTable) -> anyhow::Result<()> {
    for (name, table) in tables(table) {
        cache::write_atomically(&paths::root().join(name), &table)?;
    }
    Ok(())
}

/// The host's table of entries gives the launch bounds.
pub(crate) fn launch_bounds(entry: &str) -> Option<LaunchBounds> {
    entries::all().find(|listed| listed.name == entry).map(|listed| LaunchBounds {
        max_threads: listed.bounds.max_threads,
        min_blocks: listed.bounds.min_blocks,
        cluster: listed.cluster,
        has_map: listed.has_map,
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
pub(crate) fn check_entries(module: &Module, codegen: Codegen) -> anyhow::Result<()> {
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

/// Fails where a table is not the one of the same name below `root`, with all that has changed.
fn compare(root: &Path, tables: &[(String, String)]) -> anyhow::Result<()> {
    let mut differences = Vec::new();
    for (name, table) in tables {
        let old = match fs::read_to_string(root.join(name)) {
            Ok(old) if !old.trim().is_empty() => old,
            Ok(_) => bail!("{name} is empty: write it with `cargo xtask build --bless`"),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                bail!("there is no {name}: write it with `cargo xtask build --bless`")
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read {name}")),
        };
        if old.lines().next() != table.lines().next() {
            eprintln!("note: {name} was made with other tools ({}), so it is not compared", first_line(&old));
            continue;
        }
        let changes = changes(&old, table);
        if !changes.is_empty() {
            differences.push(format!("{name} has changed:\n{}", changes.join("\n")));
        }
    }
    ensure!(
        differences.is_empty(),
        "{}\nif that is meant, rewrite it with `cargo xtask build --bless`",
        differences.join("\n")
    );
    Ok(())
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
    use lacuna_ptx::{EntryPtx, Resources};

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
    fn each_operation_has_the_rows_of_its_entries() {
        let row = |entry: &str| Resources {
            entry: entry.into(),
            target: Target::Sm70,
            registers: 32,
            shared_bytes: 0,
            stack_bytes: 0,
            launch: None,
            barriers: 0,
        };
        let rows = vec![row(entries::spmm()[0].name), row(entries::transpose()[0].name)];
        let tables = tables(&ResourceTable { rows, ptxas: "12.9".into(), compiler: "rustc 1.96.0".into() });
        assert_eq!(tables.len(), entries::OPERATIONS.len());
        for (name, table) in &tables {
            for operation in ["spmm", "transpose"] {
                let is_its = *name == format!("{GOLDEN}/{operation}.txt");
                assert_eq!(table.contains(&format!("\n{operation}_")), is_its, "{name}: {table}");
            }
        }
    }

    #[test]
    fn a_golden_table_is_compared_only_with_its_equals() {
        let root = tempfile::tempdir().unwrap();
        let golden = root.path().join("add.txt");
        let compare = |table: &str| compare(root.path(), &[("add.txt".into(), table.into())]);
        let refusal = |table: &str| compare(table).unwrap_err().to_string();
        assert!(refusal("tools 1\na 1\n").contains("there is no add.txt"));
        fs::write(&golden, "\n").unwrap();
        assert!(refusal("tools 1\na 1\n").contains("--bless"));
        fs::write(&golden, "tools 1\na 1\n").unwrap();
        assert!(compare("tools 1\na 1\n").is_ok());
        assert!(compare("tools 2\na 2\n").is_ok());
        assert!(refusal("tools 1\na 2\n").contains("add.txt has changed:\n- a  1\n+ a  2"));
    }
}
