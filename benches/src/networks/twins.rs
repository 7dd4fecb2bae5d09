//! What a network is set against: itself with dense weights, by our kernels and by cuDNN, and the dense one that is as accurate.
use anyhow::Result;
use lacuna::Stream;
use lacuna_cases::Number;
use lacuna_cases::exit::describe;
use lacuna_models::model::Options;
use lacuna_vendor::Search;
use lacuna_vendor::cudnn::CuDnn;

use super::case::Drawn;
use super::measure::{difference, published};
use super::planned::Planned;
use super::record::{CUDNN, DENSE, Record, SAME_ACCURACY, Twin};
use super::{Case, How};

/// Measures all twins, into the record. One that cannot be had is told on stderr, and in the record.
pub(super) fn measure<T: Number>(
    stream: &Stream,
    case: &Case,
    drawn: &Drawn,
    expected: &[f32],
    how: How<'_>,
    record: &mut Record,
) -> Result<()> {
    let ours = Options::dense().layout(how.layout);
    // A network without zeros is its own dense twin.
    if record.sparsity > 0.0 {
        let mut planned = drawn.plan::<T>(stream, &ours)?;
        let twin = twin(&mut planned, case, DENSE, Some(expected), how)?;
        record.peers.insert(DENSE, twin);
    }
    match by_cudnn::<T>(stream, case, drawn, expected, how) {
        Ok(twin) => {
            record.peers.insert(CUDNN, twin);
        }
        Err(why) => {
            let why = describe(&why);
            eprintln!("lacuna-bench: no twin {CUDNN} of {}: {why}", record.case);
            record.peer_failures.insert(CUDNN, why);
        }
    }
    let row = published(case, how).filter(|row| row.is_sparse);
    if let Some(dense) = row.and_then(|row| row.dense_of_same_accuracy()) {
        let case = Case { width: dense.width, sparsity: 0.0, ..*case };
        let other = case.drawn(stream.device(), How { weights: None, ..how })?;
        let twin = twin(&mut other.plan::<T>(stream, &ours)?, &case, SAME_ACCURACY, None, how)?;
        let paper_frames_per_s = (!record.cut).then_some(dense.frames_per_s);
        record.peers.insert(SAME_ACCURACY, Twin { paper_frames_per_s, ..twin });
    }
    Ok(())
}

fn by_cudnn<T: Number>(
    stream: &Stream,
    case: &Case,
    drawn: &Drawn,
    expected: &[f32],
    how: How<'_>,
) -> Result<Twin> {
    let mut planned = drawn.plan::<T>(stream, &Options::cudnn().layout(how.layout))?;
    let twin = twin(&mut planned, case, CUDNN, Some(expected), how)?;
    let version = CuDnn::load(&Search::from_env())?.version()?.to_string();
    Ok(Twin { version: Some(version), ..twin })
}

fn twin<T: Number>(
    planned: &mut Planned<'_, T>,
    case: &Case,
    name: &str,
    expected: Option<&[f32]>,
    how: How<'_>,
) -> Result<Twin> {
    let scores = planned.scores()?;
    let difference = expected.map(|expected| difference(&scores, expected));
    let cost = planned.cost(&format!("{} {name}", case.network.name()), how)?;
    Ok(Twin { width: case.width(), cost, difference, paper_frames_per_s: None, version: None })
}
