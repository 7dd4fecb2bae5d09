//! Operands inside larger buffers, so that what is written or read beside them shows.
use std::ops::Range;

use anyhow::{Result, ensure};
use lacuna::{Buffer, Device, Slice, SliceMut, Stream};

use crate::Number;

/// Elements of a guard on each side: more than any kernel's tile of columns, and a multiple of 256 bytes.
const GUARD: usize = 256;

/// Where an operand lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// It is a whole buffer: the simulator and compute-sanitizer see every access outside.
    Whole,
    /// It is a slice that starts this many elements after a multiple of 256 bytes, between guards.
    Slice(usize),
}

/// Where B and C lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Of B.
    pub b: Spot,
    /// Of C.
    pub c: Spot,
}

impl Placement {
    /// Both are whole buffers.
    pub const WHOLE: Self = Self { b: Spot::Whole, c: Spot::Whole };

    /// Slices aligned to 4, 2 and 1 elements, alike and not.
    pub const USUAL: [Self; 4] =
        [Self::slices(4, 8), Self::slices(2, 6), Self::slices(1, 3), Self::slices(0, 2)];

    /// Slices that start this many elements after a multiple of 256 bytes.
    pub const fn slices(b: usize, c: usize) -> Self {
        Self { b: Spot::Slice(b), c: Spot::Slice(c) }
    }

    /// Whether B and C, of elements of `bytes` bytes, start at multiples of 16 bytes.
    pub(crate) fn is_aligned(&self, bytes: usize) -> bool {
        [self.b, self.c].into_iter().all(|spot| match spot {
            Spot::Whole => true,
            Spot::Slice(offset) => (offset * bytes).is_multiple_of(16),
        })
    }
}

/// An operand on a device, with the guards around it.
#[derive(Debug)]
pub(crate) struct Guarded<T: Number> {
    buffer: Buffer<T>,
    own: Range<usize>,
}

impl<T: Number> Guarded<T> {
    pub(crate) fn new(device: &Device, contents: &[T], spot: Spot) -> Result<Self> {
        let Spot::Slice(offset) = spot else {
            return Ok(Self { buffer: device.upload(contents)?, own: 0..contents.len() });
        };
        let start = GUARD + offset;
        let own = start..start + contents.len();
        let mut whole = vec![T::CANARY; own.end + GUARD];
        whole[own.clone()].copy_from_slice(contents);
        Ok(Self { buffer: device.upload(&whole)?, own })
    }

    pub(crate) fn slice(&self) -> Result<Slice<'_, T>> {
        Ok(self.buffer.slice(self.own.clone())?)
    }

    pub(crate) fn slice_mut(&mut self) -> Result<SliceMut<'_, T>> {
        Ok(self.buffer.slice_mut(self.own.clone())?)
    }

    /// The operand's elements, if the guards are as they were.
    pub(crate) fn read(&self, what: &str, stream: &Stream) -> Result<Vec<T>> {
        let mut whole = self.buffer.download(stream)?;
        let guards = (0..self.own.start).chain(self.own.end..whole.len());
        for at in guards {
            let distance = at as i64 - self.own.start as i64;
            ensure!(
                whole[at].bits() == T::CANARY.bits(),
                "{what}: memory outside it was written, {distance} elements from its start (it has {}): {:e}",
                self.own.len(),
                whole[at].wide()
            );
        }
        whole.truncate(self.own.end);
        whole.drain(..self.own.start);
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_are_around_and_checked() {
        let device = Device::simulator();
        let stream = device.stream().unwrap();
        let mut guarded = Guarded::new(&device, &[1.0f32, 2.0], Spot::Slice(3)).unwrap();
        assert_eq!(guarded.slice().unwrap().address() % 256, 12);
        assert_eq!(guarded.read("C", &stream).unwrap(), [1.0, 2.0]);

        let beside = guarded.own.end;
        guarded.buffer.slice_mut(beside..=beside).unwrap().upload(&[0.0]).unwrap();
        let error = guarded.read("C", &stream).unwrap_err().to_string();
        assert!(error.starts_with("C: memory outside") && error.contains(" 2 elements from"), "{error}");
    }
}
