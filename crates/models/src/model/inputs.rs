//! The memory that a layer reads while it writes another part of it.
use std::ops::Range;

use lacuna::{Result, Slice, SliceMut, Value};

use crate::memory::{Home, Place};

/// A piece of memory, but for a part that is written.
#[derive(Debug)]
pub(super) struct Around<'r, T: Value> {
    before: SliceMut<'r, T>,
    after: SliceMut<'r, T>,
    /// Where `after` begins.
    from: usize,
}

impl<'r, T: Value> Around<'r, T> {
    /// All of a piece of memory.
    pub(super) fn whole(memory: SliceMut<'r, T>) -> Result<Self> {
        let from = memory.len();
        let (before, after) = memory.split_at(from)?;
        Ok(Self { before, after, from })
    }

    /// What is around a part, and the part.
    pub(super) fn split(memory: SliceMut<'r, T>, part: Range<usize>) -> Result<(Self, SliceMut<'r, T>)> {
        let (before, rest) = memory.split_at(part.start)?;
        let (out, after) = rest.split_at(part.len())?;
        Ok((Self { before, after, from: part.end }, out))
    }

    /// A part that is before or after what is written.
    pub(super) fn part(&self, part: Range<usize>) -> Result<Slice<'_, T>> {
        if part.end <= self.before.len() {
            return self.before.as_slice().part(part);
        }
        // One that is in neither is refused there.
        let from = |at: usize| at.checked_sub(self.from).unwrap_or(usize::MAX);
        self.after.as_slice().part(from(part.start)..from(part.end))
    }
}

/// What a layer reads.
#[derive(Debug)]
pub(super) struct Inputs<'r, T: Value> {
    /// What the user gave.
    pub(super) input: Slice<'r, T>,
    /// The user's result, as far as it was written.
    pub(super) output: &'r Around<'r, T>,
    /// The network's own memory.
    pub(super) arena: &'r Around<'r, T>,
    /// Where the layer's inputs lie.
    pub(super) places: &'r [Place],
}

impl<T: Value> Inputs<'_, T> {
    /// The input of this number.
    pub(super) fn at(&self, input: usize) -> Result<Slice<'_, T>> {
        let place = self.places[input];
        match place.home {
            Home::Input => self.input.part(place.range()),
            Home::Output => self.output.part(place.range()),
            Home::Arena => self.arena.part(place.range()),
        }
    }
}
