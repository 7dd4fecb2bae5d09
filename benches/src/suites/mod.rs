//! Suites: lists of problems under a name, each a file of `benches/suites`.
mod cut;
mod dlmc;
mod file;
mod graphs;
mod grid;

use std::path::PathBuf;
use std::sync::LazyLock;

use anyhow::{Context as _, Result};
use lacuna_cases::data::{Data, Folder};
use lacuna_cases::exit::Usage;
use lacuna_cases::{Draw, Source, Spec};

pub use cut::{Sample, for_simulator, thinned};
pub(crate) use file::{Expected, Number, Ours, Published};

use self::file::Suite;
use crate::operation::Op;
use crate::operations;
use crate::profile::Profile;

/// A problem of a suite, before it is drawn, and its operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The operation.
    pub op: Op,
    /// Its problem.
    pub spec: Spec,
}

/// What a suite is made for.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The machine.
    pub profile: Profile,
    /// The folder of real matrices, where one was named.
    pub data: Option<PathBuf>,
    /// The most cases that are to run, where a number was named.
    pub limit: Option<usize>,
}

/// A suite's name, and its file.
macro_rules! suite {
    ($name:literal) => {
        ($name, include_str!(concat!("../../suites/", $name, ".toml")))
    };
}

const FILES: [(&str, &str); 15] = [
    suite!("smoke"),
    suite!("rnn"),
    suite!("dlmc"),
    suite!("imbalance"),
    suite!("crossover"),
    suite!("mobilenet"),
    suite!("shapes"),
    suite!("table"),
    suite!("sddmm-rnn"),
    suite!("sddmm-dlmc"),
    suite!("sddmm-graphs"),
    suite!("softmax"),
    suite!("attention"),
    suite!("nhot"),
    suite!("topn"),
];

/// The suites; a file that says something unknown is a fault of the program, and a test reads them all.
static SUITES: LazyLock<Vec<(&str, Suite)>> = LazyLock::new(|| {
    let read = |(name, text)| match toml::from_str(text) {
        Ok(suite) => (name, suite),
        Err(error) => panic!("benches/suites/{name}.toml: {error}"),
    };
    FILES.map(read).into()
});

fn named(name: &str) -> Option<&'static Suite> {
    SUITES.iter().find(|(known, _)| *known == name).map(|(_, suite)| suite)
}

/// The published numbers of a suite.
pub(crate) fn published(name: &str) -> Option<&'static Published> {
    named(name)?.published.as_ref()
}

/// What a suite should come to on an H200.
pub(crate) fn expected(name: &str) -> Option<&'static Expected> {
    named(name)?.expect.as_ref()
}

/// Whether a suite is about how uneven rows are.
pub(crate) fn is_by_cov(name: &str) -> bool {
    named(name).is_some_and(|suite| suite.by_cov)
}

/// The cases of a suite that fit the machine's memory; what does not is named on stderr.
///
/// # Errors
/// [`Usage`] for a name that is none, with a list of those that are; data that cannot be read.
pub fn find(name: &str, setup: &Setup) -> Result<Vec<Case>> {
    let Some(suite) = named(name) else {
        let list: Vec<String> =
            SUITES.iter().map(|(name, suite)| format!("  {name:12} {}", suite.about)).collect();
        return Err(Usage(format!("there is no suite `{name}`; there are:\n{}", list.join("\n"))).into());
    };
    let mut cases = all(suite, setup).with_context(|| format!("suite {name}"))?;
    cases.retain(|Case { op, spec }| {
        let fits = (op.footprint)(&spec.size()) <= setup.profile.usable_bytes();
        if !fits {
            eprintln!("lacuna-bench: {} does not fit the memory of {}", spec.name, setup.profile.name());
        }
        fits
    });
    Ok(cases)
}

fn all(suite: &Suite, setup: &Setup) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    if let Some(other) = &suite.like {
        let other = named(other).with_context(|| format!("there is no suite `{other}` to be like"))?;
        cases = all(other, setup)?;
    }
    if let Some(op) = &suite.op {
        let op = operation(op)?;
        cases.iter_mut().for_each(|case| case.op = op);
    }
    if let Some(collection) = &suite.dlmc {
        cases.extend(collection.cases(setup)?);
    }
    if let Some(graphs) = &suite.graphs {
        cases.extend(graphs.cases(setup)?);
    }
    for grid in &suite.cases {
        cases.extend(grid.cases(setup.profile)?);
    }
    Ok(cases)
}

/// The operation that a file names.
fn operation(name: &str) -> Result<Op> {
    operations::named(name).with_context(|| format!("there is no operation `{name}`"))
}

/// A case with a sparse matrix of rows × columns and dense operands of a width.
fn sparse(op: Op, [name, group]: [String; 2], [rows, cols, width]: [usize; 3], pattern: Draw) -> Case {
    let source = Source::Sparse { pattern, values: op.values.unwrap_or_default() };
    Case { op, spec: Spec { name, group, rows, cols, width, batch: 1, source } }
}

/// What `read` makes of a folder of real data; none where there is none and none was named, told on stderr with `drawn`,
/// what stands in its place.
fn real<T>(
    setup: &Setup,
    folder: &'static str,
    drawn: &str,
    read: impl FnOnce(&std::path::Path) -> Result<T>,
) -> Result<Option<T>> {
    let mut data = Data::find(setup.data.as_deref())?;
    data.unpack(folder);
    match data.folder(folder) {
        Folder::At(folder) => read(&folder).map(Some),
        Folder::Packed => Err(Usage(format!("{folder}.tar.xz cannot be unpacked: unpack it by hand")).into()),
        Folder::Missing(why) if setup.data.is_some() => Err(Usage(why).into()),
        Folder::Missing(why) => {
            eprintln!("lacuna-bench: {drawn} is drawn, with the statistics of the real ones: {why}");
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests;
