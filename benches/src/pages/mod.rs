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
mod spec;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result, ensure};

use crate::record::Record;
use spec::Spec;

/// Where records are kept, from the root.
const RECORDS: &str = "benches/records";

/// Files of records, each read once.
pub(crate) struct Files {
    root: PathBuf,
    read: RefCell<BTreeMap<String, Rc<Vec<Record>>>>,
}

impl Files {
    /// Those of the repository at `root`.
    pub(crate) fn of(root: &Path) -> Self {
        Self { root: root.into(), read: RefCell::default() }
    }

    /// The records of `benches/records/NAME.jsonl` that the library chose.
    fn get(&self, name: &str) -> Result<Rc<Vec<Record>>> {
        if let Some(known) = self.read.borrow().get(name) {
            return Ok(known.clone());
        }
        let mut records = Record::read_lines(&self.root.join(RECORDS).join(format!("{name}.jsonl")))?;
        records.retain(|record| record.chosen);
        for record in &records {
            ensure!(
                record.is_right(),
                "{name}: {} is out of its bound, and belongs in no table",
                record.case
            );
        }
        ensure!(!records.is_empty(), "{name}: no record");
        let records = Rc::new(records);
        self.read.borrow_mut().insert(name.into(), records.clone());
        Ok(records)
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
