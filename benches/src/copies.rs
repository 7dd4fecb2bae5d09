//! Plain copies on the device: the yardstick of operations that are a matter of bytes.
use anyhow::{Result, ensure};
use lacuna::{Device, Stream};
use lacuna_cases::Number;

use crate::peers::{Context, PeerSession, Peered};
use crate::record::PeerRecord;
use crate::timing::{Timing, time, time_with};

/// A plain copy of as many bytes as an operation's work model has, by its name in records.
pub(crate) const COPY: &str = "copy";
/// A plain copy: its name in records, and its title.
pub(crate) const PLAIN_COPY: (&str, &str) = (COPY, "plain copy of its bytes");
/// A copy of exactly the logits.
pub(crate) const COPY_OF_LOGITS: &str = "copy_of_logits";

/// Bytes of the large copy, read once and written once: more than caches hold.
const LARGE_BYTES: usize = 512 << 20;
/// Elements at each end of a copy that are looked at.
const LOOKED_AT: usize = 1024;

/// What a copy takes for a problem of its bytes, read and written together, by the time of the large one, which is timed
/// once; and what a copy of so many bytes takes, each read and written, for what the problem reads. None on the simulator.
pub(crate) fn measure(session: &mut PeerSession, context: &Context<'_>, read: Option<usize>) -> Peered {
    if context.device.is_simulator() {
        return Peered::default();
    }
    let ways = [(COPY, None)].into_iter().chain(read.map(|read| (COPY_OF_LOGITS, Some(read))));
    let peered = Peered::of_each(ways.map(|(name, read)| (name.to_string(), read)), |read| {
        let (time, size) = match read {
            Some(read) => (timed(context, read)?, read),
            None => {
                let large = match session.large_copy {
                    Some(large) => large,
                    None => *session.large_copy.insert(timed(context, LARGE_BYTES)?),
                };
                (large.times(context.bytes as f64 / (2 * LARGE_BYTES) as f64), LARGE_BYTES)
            }
        };
        Ok(Some(PeerRecord {
            time,
            algorithm: format!("device to device, {size} bytes"),
            version: context.device.info().driver.clone(),
            error_over_bound: Some(0.0),
            preprocess_us: None,
            energy_mj: None,
            measured_in: None,
        }))
    });
    peered.tell(context.problem);
    peered
}

/// The time of a copy of so many bytes, to whole words.
fn timed(context: &Context<'_>, bytes: usize) -> Result<Timing> {
    let len = bytes.div_ceil(size_of::<u32>());
    let (device, stream): (&Device, _) = (context.device, context.stream);
    let from = device.upload(&(0..len as u32).collect::<Vec<_>>())?;
    let mut to = device.zeros::<u32>(len)?;
    let copy = |stream: &Stream| Ok(stream.copy(from.as_slice(), to.as_slice_mut())?);
    let time = time_with(context.cold, stream, context.samples, copy)?;
    for start in [0, len.saturating_sub(LOOKED_AT)] {
        let end = len.min(start + LOOKED_AT);
        let copied = to.slice(start..end)?.download(stream)?;
        ensure!(copied.into_iter().eq(start as u32..end as u32), "the copy has other elements at {start}");
    }
    Ok(time)
}

/// What a copy takes that reads and writes as many elements as an operation, together.
///
/// # Errors
/// What the device says.
pub(crate) fn of_elements<T: Number>(
    device: &Device,
    stream: &Stream,
    elements: usize,
    samples: u32,
) -> Result<PeerRecord> {
    let len = elements.div_ceil(2);
    let (from, mut to) = (device.zeros::<T>(len)?, device.zeros::<T>(len)?);
    let time = time(stream, samples, |stream| Ok(stream.copy(from.as_slice(), to.as_slice_mut())?))?;
    Ok(PeerRecord {
        energy_mj: None,
        time,
        algorithm: format!("device to device, {} bytes", len * size_of::<T>()),
        version: device.info().driver.clone(),
        error_over_bound: None,
        preprocess_us: None,
        measured_in: None,
    })
}
