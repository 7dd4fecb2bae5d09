//! The energy of a piece of work on a GPU, by the counter of its driver.
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lacuna::{Device, Stream};
use lacuna_vendor::nvml::EnergyCounter;

/// How long the work is repeated at least: the counter moves a few times in a tenth of a second.
const LEAST: Duration = Duration::from_millis(500);
/// How long it is waited for the counter to move.
const PATIENCE: Duration = Duration::from_secs(2);
/// What is given to the stream at once takes about so long, in microseconds.
const BATCH_US: f64 = 4000.0;
/// Repetitions in a graph at most.
const MOST_REPEATS: f64 = 1024.0;

/// The energy counter of a device; none where there is none, with a line on stderr that says why.
pub(crate) fn counter(device: &Device) -> Option<EnergyCounter> {
    let opened = match &device.info().pci {
        Some(pci) => EnergyCounter::open(pci).map_err(|error| error.to_string()),
        None => Err("the simulator uses no energy that is counted".into()),
    };
    opened.map_err(|why| eprintln!("lacuna-bench: no energy: {why}")).ok()
}

/// Millijoules of `work` as [`energy_mj`] counts them; none without a counter, and, with a line on stderr, where it fails.
pub(crate) fn of_call(
    case: &str,
    stream: &Stream,
    counter: Option<&EnergyCounter>,
    us: f64,
    work: impl FnMut(&Stream) -> Result<()>,
) -> Option<f64> {
    let energy = energy_mj(stream, counter?, us, work);
    energy.map_err(|error| eprintln!("lacuna-bench: no energy of {case}: {error:#}")).ok()
}

/// Millijoules of `work`, which gives work to the stream and does not wait for it, and takes so many microseconds. It is recorded,
/// and repeated for half a second or longer while the counter is watched, without a pause.
///
/// # Errors
/// Those of `work`; a counter that stands still; what the driver says.
fn energy_mj(
    stream: &Stream,
    counter: &EnergyCounter,
    us: f64,
    mut work: impl FnMut(&Stream) -> Result<()>,
) -> Result<f64> {
    let repeats = (BATCH_US / us.max(0.1)).ceil().clamp(1.0, MOST_REPEATS) as u32;
    let mut graph = stream.capture(|stream| (0..repeats).try_for_each(|_| work(stream)))?;
    let mut before = None;
    // The GPU works on one batch while the end of the one before is waited for.
    let batch = || -> Result<()> {
        // SAFETY: the operands are alive in the caller, and nothing else uses them.
        unsafe { graph.replay(stream)? };
        let end = stream.event()?;
        if let Some(before) = before.replace(end) {
            before.synchronize()?;
        }
        Ok(())
    };
    let start = Instant::now();
    let of_batch = watched(batch, || Ok(counter.millijoules()?), || start.elapsed());
    stream.synchronize()?;
    Ok(of_batch? / f64::from(repeats))
}

/// What the counter grows by in a batch, from a move of the counter to another at least half a second later.
fn watched(
    mut batch: impl FnMut() -> Result<()>,
    mut counter: impl FnMut() -> Result<u64>,
    mut clock: impl FnMut() -> Duration,
) -> Result<f64> {
    let mut seen = counter()?;
    // Batches until the counter moves after so long, and what it then shows.
    let mut to_move = |least: Duration| -> Result<(u64, u64)> {
        let start = clock();
        let mut batches = 0;
        loop {
            batch()?;
            batches += 1;
            let (now, elapsed) = (counter()?, clock() - start);
            let has_moved = now != seen;
            seen = now;
            if has_moved && elapsed >= least {
                return Ok((batches, now));
            }
            ensure!(elapsed < least + PATIENCE, "the energy counter stands still at {now} mJ");
        }
    };
    let (_, first) = to_move(Duration::ZERO)?;
    let (batches, last) = to_move(LEAST)?;
    Ok(last.saturating_sub(first) as f64 / batches as f64)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const BATCH_MS: u64 = 4;

    /// What a counter comes to that shows 3 mJ a batch, every `every` batches; and the batches that it took.
    fn of_counter(every: u64) -> (Result<f64>, u64) {
        let batches = Cell::new(5);
        let counter = || Ok(batches.get() / every * every * 3);
        let batch = || {
            batches.set(batches.get() + 1);
            Ok(())
        };
        let clock = || Duration::from_millis(batches.get() * BATCH_MS);
        (watched(batch, counter, clock), batches.get())
    }

    #[test]
    fn energy_is_counted_from_move_to_move_over_half_a_second() {
        for every in [1, 7, 25, 100] {
            let (mj, batches) = of_counter(every);
            assert_eq!(mj.unwrap(), 3.0, "a move every {every} batches");
            assert!(batches * BATCH_MS >= 500, "{batches} batches");
        }
    }

    #[test]
    fn a_counter_that_stands_still_is_an_error() {
        let (mj, batches) = of_counter(1 << 40);
        assert!(mj.unwrap_err().to_string().contains("stands still"));
        assert!(batches * BATCH_MS < 3000, "{batches} batches");
    }
}
