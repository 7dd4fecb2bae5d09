//! `run`: one operation on one matrix.
use anyhow::Result;

use crate::cli::{Measure, RunOptions};
use crate::exit::{Outcome, Usage};
use crate::measure;
use crate::op::Op;
use crate::problem::Problem;
use crate::record::Record;
use crate::session::Session;
use crate::suites::Case;
use crate::table;

/// Measures one operation on one matrix.
///
/// # Errors
/// A matrix or a device that cannot be used.
pub fn run(options: &RunOptions) -> Result<Outcome> {
    let problem = problem(options)?;
    let how = &options.measure;
    let mut session = Session::open(how)?;
    let records = measure::measure(&mut session, "run", &problem)?;
    print(&records, options.measure.json)?;
    Ok(outcome(&records))
}

/// The problem of a matrix in a file, or of a dense one of a size.
fn problem(options: &RunOptions) -> Result<Problem> {
    let RunOptions { op, heads, measure: Measure { seed, .. }, .. } = *options;
    let width = width(options)?;
    let why = match (op.is_sparse(), &options.matrix, (options.rows, options.cols)) {
        (true, Some(matrix), (None, None)) => {
            return Problem::read(op, matrix, width, heads as usize, seed);
        }
        (false, None, (Some(rows), Some(cols))) => {
            return Problem::generate(&Case::logits(rows as usize, cols as usize, width), seed);
        }
        (true, None, _) => "needs its sparse matrix; name a file by --matrix",
        (true, Some(_), _) => {
            "does not know --rows and --cols: its matrix is that of --matrix; leave them out"
        }
        (false, None, _) => "needs the size of its logits; say it by --rows and --cols",
        (false, Some(_), _) => {
            "does not know --matrix: its logits are drawn; leave it out, and say how many by --rows and --cols"
        }
    };
    Err(Usage(format!("`{}` {why}", op.name())).into())
}

/// The width of the dense operands, which each operation has under another name, and no operation needs two of.
fn width(options: &RunOptions) -> Result<usize, Usage> {
    let RunOptions { op, n, k, d, heads, .. } = *options;
    let given = [("--n", n), ("--k", k), ("--d", d)];
    let own = match op {
        Op::Spmm | Op::NHot | Op::TopN => Some("--n"),
        Op::Sddmm => Some("--k"),
        Op::Attention => Some("--d"),
        Op::SparseSoftmax => None,
    };
    let op = op.name();
    if let Some((other, _)) = given.iter().find(|(name, value)| value.is_some() && Some(*name) != own) {
        let has = match (own, options.op) {
            (None, _) => "no dense operands".into(),
            (Some(own), Op::TopN) => format!("{own} for how many are taken of a row"),
            (Some(own), _) => format!("{own} for their columns"),
        };
        return Err(Usage(format!("`{op}` does not know {other}: it has {has}; leave {other} out")));
    }
    if heads != 1 && !matches!(options.op, Op::SparseSoftmax | Op::Attention) {
        return Err(Usage(format!(
            "`{op}` does not know --heads: expected it of `attention` or `sparse-softmax`"
        )));
    }
    let Some(own) = own else { return Ok(1) };
    let width = given.iter().find(|(name, _)| *name == own).and_then(|(_, value)| *value);
    width.map(|width| width as usize).ok_or_else(|| {
        let what = if options.op == Op::TopN {
            "how many to take of a row"
        } else {
            "the columns of its dense operands"
        };
        Usage(format!("`{op}` needs {what}; say how many by {own}"))
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
