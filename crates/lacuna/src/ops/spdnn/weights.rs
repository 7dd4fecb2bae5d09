//! Where the weights of a network are: on the device, or on the host and sent while layers run.
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::packed::Arrays;
use crate::{Buffer, Device, Event, HostBuffer, Result, Stream};

/// Buffers that parts of the weights take turns in: while layers read one, the next part is sent to another.
const SLOTS: usize = 2;

/// The weights of a network.
#[derive(Debug)]
pub(super) enum Weights {
    /// All on the device; where those of each layer begin.
    Resident { buffer: Buffer<u32>, bases: Vec<u64> },
    /// On the host.
    Streamed(Box<Streamed>),
}

/// Weights on the host, in parts of some layers.
#[derive(Debug)]
pub(super) struct Streamed {
    host: HostBuffer<u32>,
    /// For each layer the index of its first word.
    starts: Vec<usize>,
    parts: Vec<Part>,
    slots: Vec<Buffer<u32>>,
    /// What copies are given to.
    copies: Stream,
    /// The end of the last part that a run has read.
    last: Mutex<Option<Event>>,
}

/// Neighbouring layers whose weights are sent together.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    layers: Range<usize>,
    words: Range<usize>,
}

impl Weights {
    /// All on the device.
    pub(super) fn resident(device: &Device, arrays: &[Arrays]) -> Result<Self> {
        let buffer = device.uninitialized(words(arrays))?;
        let first = buffer.as_slice().address();
        let bases = starts(arrays).iter().map(|&start| first + 4 * start as u64).collect();
        let mut weights = Self::Resident { buffer, bases };
        weights.replace(arrays)?;
        Ok(weights)
    }

    /// On the host, in parts of about so many bytes.
    pub(super) fn streamed(device: &Device, arrays: &[Arrays], part_bytes: usize) -> Result<Self> {
        let mut host = device.host_buffer(words(arrays))?;
        let starts = starts(arrays);
        for (arrays, &start) in arrays.iter().zip(&starts) {
            host[start..start + arrays.words.len()].copy_from_slice(&arrays.words);
        }
        let parts = parts_of(arrays, part_bytes);
        let longest = longest(&parts);
        let slots = (0..SLOTS.min(parts.len())).map(|_| device.uninitialized(longest));
        let slots = slots.collect::<Result<_>>()?;
        let (copies, last) = (device.stream()?, Mutex::new(None));
        Ok(Self::Streamed(Box::new(Streamed { host, starts, parts, slots, copies, last })))
    }

    /// Sends all anew, where they are on the device.
    pub(super) fn replace(&mut self, arrays: &[Arrays]) -> Result<()> {
        let Self::Resident { buffer, .. } = self else { return Ok(()) };
        for (arrays, start) in arrays.iter().zip(starts(arrays)) {
            buffer.slice_mut(start..start + arrays.words.len())?.upload(&arrays.words)?;
        }
        Ok(())
    }

    /// Bytes of the device's memory.
    pub(super) fn device_bytes(&self) -> usize {
        match self {
            Self::Resident { buffer, .. } => 4 * buffer.len(),
            Self::Streamed(streamed) => streamed.slots.iter().map(|slot| 4 * slot.len()).sum(),
        }
    }

    /// Begins a run.
    pub(super) fn begin(&self) -> Result<Feed<'_>> {
        match self {
            Self::Resident { bases, .. } => Ok(Feed::Resident(bases)),
            Self::Streamed(streamed) => {
                let last = streamed.last.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(last) = &*last {
                    streamed.copies.wait_for(last)?;
                }
                let mut sending = Sending { streamed, sent: VecDeque::new(), part: 0, last };
                for part in 0..streamed.slots.len() {
                    sending.send(part)?;
                }
                Ok(Feed::Streamed(sending))
            }
        }
    }
}

/// What gives a run the weights of its layers, in their order.
pub(super) enum Feed<'w> {
    Resident(&'w [u64]),
    Streamed(Sending<'w>),
}

/// Parts that are sent during a run.
pub(super) struct Sending<'w> {
    streamed: &'w Streamed,
    /// The ends of copies that no layer has waited for.
    sent: VecDeque<Event>,
    /// The part of the next layer.
    part: usize,
    /// Kept for the run, so that no other takes the slots.
    last: MutexGuard<'w, Option<Event>>,
}

impl Feed<'_> {
    /// Where the arrays of a layer are, once `stream` comes to this.
    pub(super) fn base(&mut self, stream: &Stream, layer: usize) -> Result<u64> {
        match self {
            Self::Resident(bases) => Ok(bases[layer]),
            Self::Streamed(sending) => sending.base(stream, layer),
        }
    }

    /// The end of the layers whose arrays lie one after another with those of the layer whose base was asked for last.
    pub(super) fn end(&self) -> usize {
        match self {
            Self::Resident(bases) => bases.len(),
            Self::Streamed(sending) => sending.streamed.parts[sending.part].layers.end,
        }
    }

    /// A layer was given to the stream.
    pub(super) fn done(&mut self, stream: &Stream, layer: usize) -> Result<()> {
        match self {
            Self::Resident(_) => Ok(()),
            Self::Streamed(sending) => sending.done(stream, layer),
        }
    }
}

impl Sending<'_> {
    /// Sends a part to its slot.
    fn send(&mut self, part: usize) -> Result<()> {
        let Streamed { host, parts, slots, copies, .. } = self.streamed;
        let words = parts[part].words.clone();
        let slot = slots[part % slots.len()].as_slice();
        copies.upload_to(host, words.clone(), slot.part(..words.len())?)?;
        self.sent.push_back(copies.event()?);
        Ok(())
    }

    fn base(&mut self, stream: &Stream, layer: usize) -> Result<u64> {
        let Streamed { starts, parts, slots, .. } = self.streamed;
        let part = &parts[self.part];
        if layer == part.layers.start
            && let Some(sent) = self.sent.pop_front()
        {
            stream.wait_for(&sent)?;
        }
        let inside = starts[layer] - part.words.start;
        Ok(slots[self.part % slots.len()].as_slice().address() + 4 * inside as u64)
    }

    fn done(&mut self, stream: &Stream, layer: usize) -> Result<()> {
        let Streamed { parts, slots, copies, .. } = self.streamed;
        if layer + 1 < parts[self.part].layers.end {
            return Ok(());
        }
        let read = stream.event()?;
        let next = self.part + slots.len();
        if next < parts.len() {
            copies.wait_for(&read)?;
            self.send(next)?;
        }
        self.part += 1;
        // Kept for each part, so that a run that breaks off is waited for, too.
        *self.last = Some(read);
        Ok(())
    }
}

/// Bytes of a device's memory that streamed weights take.
pub(super) fn slots_bytes(arrays: &[Arrays], part_bytes: usize) -> usize {
    let parts = parts_of(arrays, part_bytes);
    4 * SLOTS.min(parts.len()) * longest(&parts)
}

fn parts_of(arrays: &[Arrays], part_bytes: usize) -> Vec<Part> {
    let lengths: Vec<usize> = arrays.iter().map(|arrays| arrays.words.len()).collect();
    parts(&lengths, part_bytes / 4)
}

/// Words of the longest part.
fn longest(parts: &[Part]) -> usize {
    parts.iter().map(|part| part.words.len()).max().unwrap_or(0)
}

/// Words of all arrays.
pub(super) fn words(arrays: &[Arrays]) -> usize {
    arrays.iter().map(|arrays| arrays.words.len()).sum()
}

/// For each layer the index of its first word.
pub(super) fn starts(arrays: &[Arrays]) -> Vec<usize> {
    let ends = arrays.iter().scan(0, |end, arrays| {
        *end += arrays.words.len();
        Some(*end)
    });
    std::iter::once(0).chain(ends).take(arrays.len()).collect()
}

/// Layers of these lengths, in parts of at most `most` words; a layer that is longer is a part of its own.
fn parts(lengths: &[usize], most: usize) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut start = 0;
    for (layer, &length) in lengths.iter().enumerate() {
        match parts.last_mut().filter(|part| part.words.len() + length <= most) {
            Some(part) => {
                part.layers.end = layer + 1;
                part.words.end += length;
            }
            None => parts.push(Part { layers: layer..layer + 1, words: start..start + length }),
        }
        start += length;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_what_fits() {
        let part = |layers: Range<usize>, words: Range<usize>| Part { layers, words };
        let expected = [part(0..2, 0..8), part(2..3, 8..28), part(3..5, 28..30)];
        assert_eq!(parts(&[3, 5, 20, 1, 1], 8), expected);
        assert_eq!(parts(&[3, 5], 1), [part(0..1, 0..3), part(1..2, 3..8)]);
        assert_eq!(parts(&[], 1), []);
    }
}
