//! A case of a suite, and what all suites share.
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use lacuna_cases::data::{Data, Folder};
use lacuna_cases::exit::Usage;
use lacuna_cases::{Draw, Source, Spec};

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
    /// What the names of cases must contain, where that was given.
    pub case: Option<String>,
    /// The most cases that are to run, where a number was named.
    pub limit: Option<usize>,
}

impl Setup {
    /// Whether all cases of a suite run.
    pub fn is_whole(&self) -> bool {
        self.case.is_none() && self.limit.is_none()
    }
}

/// The operation that a file names.
pub(super) fn operation(name: &str) -> Result<Op> {
    operations::named(name).with_context(|| format!("there is no operation `{name}`"))
}

/// A case with a sparse matrix of rows × columns and dense operands of a width.
pub(super) fn sparse(
    op: Op,
    [name, group]: [String; 2],
    [rows, cols, width]: [usize; 3],
    pattern: Draw,
) -> Case {
    let source = Source::Sparse { pattern, values: op.values.unwrap_or_default() };
    Case { op, spec: Spec { name, group, rows, cols, width, batch: 1, source } }
}

/// What `read` makes of a folder of real data; none where there is none and none was named, told on stderr with `drawn`,
/// what stands in its place.
pub(super) fn real<T>(
    setup: &Setup,
    folder: &'static str,
    drawn: &str,
    read: impl FnOnce(&Path) -> Result<T>,
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
