//! Timing on a GPU: graph replays between two events.
use anyhow::Result;
use lacuna::{Graph, Stream};
use serde::{Deserialize, Serialize};

use crate::cold::Flush;

/// Times of one piece of work, in microseconds.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Timing {
    /// The middle of the samples.
    pub median: f64,
    /// The shortest sample.
    pub min: f64,
    /// The longest sample.
    pub max: f64,
}

/// What one sample should take, in microseconds, so that the events' resolution does not matter; less for very short
/// work, which is repeated [`MOST_REPEATS`] times.
const SAMPLE_US: f64 = 200.0;
/// The most repetitions in one graph.
const MOST_REPEATS: u32 = 64;

impl Timing {
    /// The times of `samples` samples.
    ///
    /// # Panics
    /// Without samples.
    pub fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let middle = samples.len() / 2;
        let median = if samples.len() % 2 == 1 {
            samples[middle]
        } else {
            f64::midpoint(samples[middle - 1], samples[middle])
        };
        Self { median, min: samples[0], max: samples[samples.len() - 1] }
    }

    /// The times of `factor` times the work.
    pub fn times(self, factor: f64) -> Self {
        let Self { median, min, max } = self;
        Self { median: median * factor, min: min * factor, max: max * factor }
    }
}

/// Speeds over a peer's, geometric mean and least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speeds {
    /// How many there are.
    pub count: usize,
    /// Their geometric mean.
    pub mean: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Speeds {
    /// Those of cases; none where there are none.
    pub fn of(speeds: impl IntoIterator<Item = f64>) -> Option<Self> {
        let speeds: Vec<f64> = speeds.into_iter().collect();
        let (count, sum) = (speeds.len(), speeds.iter().map(|speed| speed.ln()).sum::<f64>());
        let least = speeds.iter().copied().reduce(f64::min)?;
        let most = speeds.into_iter().reduce(f64::max)?;
        Some(Self { count, mean: (sum / count as f64).exp(), least, most })
    }
}

/// Times `work`, which gives work to the stream and does not wait for it.
///
/// The work is recorded as often as fills a sample, so that launches cost what they cost in a graph, on every library
/// alike. Caches are warm: every repetition uses the same operands.
///
/// # Errors
/// Those of `work`, and what the driver says of the recording.
pub fn time(stream: &Stream, samples: u32, mut work: impl FnMut(&Stream) -> Result<()>) -> Result<Timing> {
    let rough = replays(stream, 1, 4, &mut work, || {})?[0].max(1.0) / 4.0;
    let repeats = ((SAMPLE_US / rough).ceil() as u32).clamp(4, MOST_REPEATS);
    let times = replays(stream, samples, repeats, &mut work, || {})?;
    Ok(Timing::of(times.into_iter().map(|us| us / f64::from(repeats)).collect()))
}

/// Times `work` with cold caches, if there is a flush for that, or as [`time`] does.
pub(crate) fn time_with(
    cold: Option<&Flush>,
    stream: &Stream,
    samples: u32,
    work: impl FnMut(&Stream) -> Result<()>,
) -> Result<Timing> {
    match cold {
        Some(flush) => flush.time(stream, samples, work),
        None => time(stream, samples, work),
    }
}

/// Microseconds of each of `samples` replays of a graph that does `work` `repeats` times, after one that warms up; `before` each.
pub(crate) fn replays(
    stream: &Stream,
    samples: u32,
    repeats: u32,
    mut work: impl FnMut(&Stream) -> Result<()>,
    before: impl Fn(),
) -> Result<Vec<f64>> {
    let mut graph = recorded(stream, repeats, &mut work)?;
    let mut sample = || -> Result<f64> {
        before();
        replay(stream, &mut graph)
    };
    sample()?;
    (0..samples).map(|_| sample()).collect()
}

/// A graph that does `work` `repeats` times.
pub(crate) fn recorded(
    stream: &Stream,
    repeats: u32,
    mut work: impl FnMut(&Stream) -> Result<()>,
) -> Result<Graph> {
    stream.capture(|stream| (0..repeats).try_for_each(|_| work(stream)))
}

/// Microseconds of a replay.
pub(crate) fn replay(stream: &Stream, graph: &mut Graph) -> Result<f64> {
    let start = stream.event()?;
    // SAFETY: the operands are alive in the caller, and nothing else uses them.
    unsafe { graph.replay(stream)? };
    let end = stream.event()?;
    end.synchronize()?;
    Ok(end.microseconds_since(&start)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(Timing::of(vec![3.0, 1.0, 2.0]), Timing { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Timing::of(vec![4.0, 1.0, 2.0, 3.0]).median, 2.5);
        let twice = Timing { median: 4.0, min: 2.0, max: 6.0 };
        assert_eq!(Timing::of(vec![3.0, 1.0, 2.0]).times(2.0), twice);
    }

    #[test]
    fn speeds_have_a_geometric_mean() {
        let speeds = Speeds::of([0.5, 2.0, 8.0]).unwrap();
        assert!(
            (speeds.mean - 2.0).abs() < 1e-12
                && speeds.least == 0.5
                && speeds.most == 8.0
                && speeds.count == 3
        );
        assert_eq!(Speeds::of([]), None);
    }
}
