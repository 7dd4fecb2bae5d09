//! How long work takes on a GPU.
use super::rank::median;
use crate::{Result, Stream};

/// What a sample should take, in microseconds, so that the events' resolution does not matter.
const SAMPLE_US: f64 = 100.0;
/// The most repetitions in a sample.
const MOST_REPEATS: f64 = 32.0;
/// Samples, of which the median counts.
const SAMPLES: usize = 5;

/// The time of `work` on a GPU, in microseconds. `work` gives work to the stream and does not wait.
///
/// It runs twice first: the first run loads its kernels, the second tells how often a sample repeats it. Samples are
/// replays of a graph, so that launches cost little and the same for all. Caches are warm.
///
/// # Errors
/// Those of `work`, and what the driver says of the recording; [`Error::Unsupported`](crate::Error::Unsupported) on the simulator, which takes no time.
pub fn time(stream: &Stream, mut work: impl FnMut(&Stream) -> Result<()>) -> Result<f64> {
    work(stream)?;
    let rough = between_events(stream, || work(stream))?;
    let repeats = (SAMPLE_US / rough).ceil().clamp(1.0, MOST_REPEATS);
    let mut graph = stream.capture(|stream| (0..repeats as u32).try_for_each(|_| work(stream)))?;
    // SAFETY: the operands are borrowed by `work`, which outlives the graph; each sample is waited for.
    let mut sample = || between_events(stream, || unsafe { graph.replay(stream) });
    sample()?;
    let mut samples = [0.0; SAMPLES];
    for us in &mut samples {
        *us = sample()? / repeats;
    }
    Ok(median(&mut samples).unwrap_or(f64::NAN))
}

/// Microseconds that the stream takes for `work`.
fn between_events(stream: &Stream, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = stream.event()?;
    work()?;
    let end = stream.event()?;
    end.synchronize()?;
    end.microseconds_since(&start)
}
