//! `run`: one operation on one matrix.
use anyhow::Result;

use crate::cli::{Op, RunOptions};
use crate::exit::Outcome;
use crate::record::Record;
use crate::session::Session;
use crate::spmm::{self, Problem};
use crate::table;

/// Measures one operation on one matrix.
///
/// # Errors
/// A matrix or a device that cannot be used.
pub fn run(options: &RunOptions) -> Result<Outcome> {
    let Op::Spmm = options.op;
    let problem = Problem::read(&options.matrix, options.n as usize, options.measure.seed)?;
    let mut session = Session::open(&options.measure)?;
    let records = spmm::measure(&mut session, "run", &problem)?;
    print(&records, options.measure.json)?;
    Ok(outcome(&records))
}

/// Prints records as a table, or as JSON lines.
pub(super) fn print(records: &[Record], json: bool) -> Result<()> {
    if json {
        for record in records {
            println!("{}", serde_json::to_string(record)?);
        }
    } else {
        println!("{}", table::of(records));
    }
    Ok(())
}

pub(super) fn outcome(records: &[Record]) -> Outcome {
    if records.iter().all(Record::is_right) { Outcome::Good } else { Outcome::Failure }
}
