//! Tables in Markdown pages that are made from records.
//!
//! A page marks the place, and says what stands there; `lacuna-bench tables` writes it:
//!
//! ```markdown
//! <!-- table: suites | h200-rnn h200-dlmc | problems | over cusparse | lost cusparse cublas_f32 -->
//!
//! <!-- end -->
//! ```
mod block;
mod draw;
mod layers;
mod spec;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result, bail, ensure};

use crate::conv;
use crate::record::Record;
use spec::Spec;

/// Where records are kept, from the root.
const RECORDS: &str = "benches/records";

/// Files of records, each read once.
pub(crate) struct Files {
    root: PathBuf,
    read: RefCell<BTreeMap<String, Rc<Vec<Record>>>>,
    convolutions: RefCell<BTreeMap<String, Rc<Vec<conv::Record>>>>,
}

impl Files {
    /// Those of the repository at `root`.
    pub(crate) fn of(root: &Path) -> Self {
        Self { root: root.into(), read: RefCell::default(), convolutions: RefCell::default() }
    }

    /// The records of `benches/records/NAME.jsonl` that the library chose.
    fn get(&self, name: &str) -> Result<Rc<Vec<Record>>> {
        once(&self.read, name, || {
            let mut records = Record::read_lines(&self.path(name))?;
            records.retain(|record| record.chosen);
            checked(name, &records, |record| (!record.is_right()).then_some(&record.case))?;
            Ok(records)
        })
    }

    /// The same of convolutions, but for depthwise ones.
    fn convolutions(&self, name: &str) -> Result<Rc<Vec<conv::Record>>> {
        once(&self.convolutions, name, || {
            let mut records = conv::Record::read_lines(&self.path(name))?;
            // Depthwise layers have tables of their own, from files of them alone.
            let has_others = records.iter().any(|record| !record.is_depthwise());
            records.retain(|record| record.chosen && !(has_others && record.is_depthwise()));
            checked(name, &records, |record| (!record.is_right()).then_some(&record.case))?;
            Ok(records)
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(RECORDS).join(format!("{name}.jsonl"))
    }
}

/// What `read` gives, read at its first use.
fn once<R>(
    known: &RefCell<BTreeMap<String, Rc<Vec<R>>>>,
    name: &str,
    read: impl FnOnce() -> Result<Vec<R>>,
) -> Result<Rc<Vec<R>>> {
    if let Some(known) = known.borrow().get(name) {
        return Ok(known.clone());
    }
    let records = Rc::new(read()?);
    known.borrow_mut().insert(name.into(), records.clone());
    Ok(records)
}

/// An error where there is no record, or one for which `wrong` gives its case.
fn checked<R>(name: &str, records: &[R], wrong: impl Fn(&R) -> Option<&String>) -> Result<()> {
    ensure!(!records.is_empty(), "{name}: no record");
    match records.iter().find_map(wrong) {
        Some(case) => bail!("{name}: {case} is out of its bound, and belongs in no table"),
        None => Ok(()),
    }
}

/// A page with its tables made anew.
pub(crate) struct Page {
    /// The whole text.
    pub(crate) text: String,
    /// Where it differs from what it was.
    pub(crate) changes: Vec<Change>,
}

/// A table that was not what the records give.
pub(crate) struct Change {
    /// The line of its mark, from 1.
    pub(crate) line: usize,
    /// What the mark asks for.
    pub(crate) spec: String,
}

/// Makes the tables of a page anew. `path` is the page's, from the root: links to records start there.
pub(crate) fn renewed(path: &Path, text: &str, files: &Files) -> Result<Page> {
    let to_root = "../".repeat(path.components().count() - 1);
    let records = format!("{to_root}{RECORDS}");
    block::renewed(text, |spec| draw::table(&Spec::parse(spec)?, files, &records))
        .with_context(|| path.display().to_string())
}
