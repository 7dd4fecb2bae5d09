//! `run`: one operation on one matrix.
use anyhow::Result;

use crate::cli::RunOptions;
use crate::exit::{Outcome, Usage};
use crate::measure;
use crate::op::Op;
use crate::problem::Problem;
use crate::record::Record;
use crate::session::Session;
use crate::table;

/// Measures one operation on one matrix.
///
/// # Errors
/// A matrix or a device that cannot be used.
pub fn run(options: &RunOptions) -> Result<Outcome> {
    let RunOptions { op, matrix, heads, measure: how, .. } = options;
    let problem = Problem::read(*op, matrix, width(options)?, *heads as usize, how.seed)?;
    let mut session = Session::open(how)?;
    let records = measure::measure(&mut session, "run", &problem)?;
    print(&records, options.measure.json)?;
    Ok(outcome(&records))
}

/// The width of the dense operands, which each operation has under another name, and no operation needs two of.
fn width(options: &RunOptions) -> Result<usize, Usage> {
    let RunOptions { op, n, k, d, heads, .. } = *options;
    let given = [("--n", n), ("--k", k), ("--d", d)];
    let own = match op {
        Op::Spmm => Some("--n"),
        Op::Sddmm => Some("--k"),
        Op::Attention => Some("--d"),
        Op::SparseSoftmax => None,
    };
    let op = op.name();
    if let Some((other, _)) = given.iter().find(|(name, value)| value.is_some() && Some(*name) != own) {
        let has = own.map_or_else(|| "no dense operands".into(), |own| format!("{own} for their columns"));
        return Err(Usage(format!("`{op}` does not know {other}: it has {has}; leave {other} out")));
    }
    if heads != 1 && matches!(options.op, Op::Spmm | Op::Sddmm) {
        return Err(Usage(format!(
            "`{op}` does not know --heads: expected it of `attention` or `sparse-softmax`"
        )));
    }
    let Some(own) = own else { return Ok(1) };
    let width = given.iter().find(|(name, _)| *name == own).and_then(|(_, value)| *value);
    width.map(|width| width as usize).ok_or_else(|| {
        Usage(format!("`{op}` needs the columns of its dense operands; say how many by {own}"))
    })
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
