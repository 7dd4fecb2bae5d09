//! Suites: lists of problems under a name, each a file of `benches/suites`.
mod case;
mod cut;
mod dlmc;
mod file;
mod graphs;
mod grid;

use std::sync::LazyLock;

use anyhow::{Context as _, Result};
use lacuna_cases::exit::Usage;

pub use case::{Case, Setup};
pub use cut::{Sample, for_simulator, thinned};
pub(crate) use file::{Expected, Ours, Published, PublishedNumber};

use self::case::operation;
use self::file::Suite;

/// The name and the text of each file of `benches/suites`; the build script lists them.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/suites.rs"));

/// The suites; a file that says something unknown is a fault of the program, and a test reads them all.
static SUITES: LazyLock<Vec<(&str, Suite)>> = LazyLock::new(|| {
    let read = |&(name, text)| match toml::from_str(text) {
        Ok(suite) => (name, suite),
        Err(error) => panic!("benches/suites/{name}.toml: {error}"),
    };
    FILES.iter().map(read).collect()
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

/// Whether a suite is about the host's time.
pub(crate) fn is_by_host(name: &str) -> bool {
    named(name).is_some_and(|suite| suite.by_host)
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

#[cfg(test)]
mod tests;
