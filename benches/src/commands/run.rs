//! `run`: one operation on one matrix.
use anyhow::Result;
use lacuna_peers::{Peers, Search};

use crate::cli::{Dtype, Measure, Op, RunOptions};
use crate::exit::Outcome;
use crate::record::Record;
use crate::spmm::{self, Options, Problem};
use crate::{machine, table};

/// Measures one operation on one matrix.
///
/// # Errors
/// A matrix or a device that cannot be used.
pub fn run(options: &RunOptions) -> Result<Outcome> {
    let Op::Spmm = options.op;
    let Dtype::F32 = options.dtype;
    let problem = Problem::read(&options.matrix, options.n as usize, options.measure.seed)?;
    let device = machine::device(&options.measure.device)?;
    let peers = load_peers(&options.measure);
    let how = Options {
        suite: "run",
        samples: options.measure.samples,
        all_algorithms: options.measure.all_algorithms,
        peers: peers.as_ref(),
    };
    let records = spmm::measure(&device, &problem, &how)?;
    print(&records, options.measure.json)?;
    Ok(outcome(&records))
}

/// The vendor's libraries, if they are wanted; tells which are not there.
pub(super) fn load_peers(measure: &Measure) -> Option<Peers> {
    let peers = measure.peers.then(|| Peers::load(&Search::from_env()))?;
    let missing = [peers.cusparse.as_ref().err(), peers.cublas.as_ref().err()];
    for missing in missing.into_iter().flatten() {
        eprintln!("lacuna-bench: {missing}");
    }
    Some(peers)
}

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
