//! `run`: one operation on one matrix.
use anyhow::Result;
use lacuna_cases::exit::{Outcome, Usage};
use lacuna_cases::{Problem, Source, Spec};

use crate::cli::RunOptions;
use crate::measure;
use crate::operation::Task;
use crate::record::Record;
use crate::session::{Measure, Session};
use crate::table;

/// Measures one operation on one matrix.
///
/// # Errors
/// A matrix or a device that cannot be used.
pub fn run(options: &RunOptions) -> Result<Outcome> {
    let problem = problem(options)?;
    let mut session = Session::open(&options.measure)?;
    let records = measure::measure(&mut session, &Task { suite: "run", op: options.op, problem: &problem })?;
    print(&records, options.measure.json)?;
    Ok(outcome(&records))
}

/// The problem of a matrix in a file, or of a dense one of a size.
fn problem(options: &RunOptions) -> Result<Problem> {
    let RunOptions { op, heads, measure: Measure { seed, .. }, .. } = *options;
    let width = width(options)?;
    let why = match (op.values, &options.matrix, (options.rows, options.cols)) {
        (Some(values), Some(matrix), (None, None)) => {
            return Problem::read(matrix, values, width, heads as usize, seed);
        }
        (None, None, (Some(rows), Some(cols))) => {
            let taken = op.width.map_or_else(String::new, |own| format!(", {} {width}", own.title));
            let (name, group) = (format!("{rows}×{cols}{taken}"), String::new());
            let (rows, cols) = (rows as usize, cols as usize);
            let spec = Spec { name, group, rows, cols, width, batch: 1, source: Source::Dense };
            return Problem::draw(&spec, seed);
        }
        (Some(_), None, _) => "needs its sparse matrix; name a file by --matrix",
        (Some(_), Some(_), _) => {
            "does not know --rows and --cols: its matrix is that of --matrix; leave them out"
        }
        (None, None, _) => "needs the size of its dense matrix; say it by --rows and --cols",
        (None, Some(_), _) => {
            "does not know --matrix: its matrix is dense and drawn; say how large it is by --rows and --cols"
        }
    };
    Err(Usage(format!("`{}` {why}", op.name)).into())
}

/// The width of the dense operands, which each operation has under another name, and no operation needs two of.
fn width(options: &RunOptions) -> Result<usize, Usage> {
    let RunOptions { op, n, k, d, heads, .. } = *options;
    let given = [("--n", n), ("--k", k), ("--d", d)];
    let (name, own) = (op.name, op.width.map(|width| width.flag));
    if let Some((other, _)) = given.iter().find(|(flag, value)| value.is_some() && Some(*flag) != own) {
        let has = op.width.map_or_else(
            || "no dense operands".into(),
            |width| format!("{} for {}", width.flag, width.about),
        );
        return Err(Usage(format!("`{name}` does not know {other}: it has {has}; leave {other} out")));
    }
    if heads != 1 && !op.takes.heads {
        let expected = "expected it of `attention` or `sparse-softmax`";
        return Err(Usage(format!("`{name}` does not know --heads: {expected}")));
    }
    let Some(own) = op.width else { return Ok(1) };
    let width = given.iter().find(|(flag, _)| *flag == own.flag).and_then(|(_, value)| *value);
    width
        .map(|width| width as usize)
        .ok_or_else(|| Usage(format!("`{name}` needs {}; say how many by {}", own.about, own.flag)))
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
    Outcome::good_if(records.iter().all(Record::is_right))
}
