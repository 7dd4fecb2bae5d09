//! The bytes of one allocation, and which of them were ever written.
//!
//! Words of 64 bits, all atomic and relaxed: blocks run in parallel, and a kernel's race must give a wrong number,
//! never undefined behaviour of the host. Accesses narrower than a word exchange a part of it.
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use crate::memory::bits::{Words, low_bits};
use crate::memory::zeros::zeros;

#[derive(Debug)]
pub(crate) struct Storage {
    len: u64,
    words: Box<[AtomicU64]>,
    /// A bit for each byte of the word: whether it was written.
    written: Box<[AtomicU8]>,
}

impl Storage {
    /// `len` bytes, none of them written, or nothing where the host has no memory for them.
    pub(crate) fn new(len: u64) -> Option<Self> {
        let words = usize::try_from(len.div_ceil(8)).ok()?;
        Some(Self { len, words: zeros(words)?, written: zeros(words)? })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Bits of the bytes `offset..offset + bytes` (at most 8, inside one word) in their word's mask.
    fn byte_mask(offset: u64, bytes: u32) -> u8 {
        (low_bits(bytes) << (offset & 7)) as u8
    }

    /// Whether all of an aligned access was ever written. `offset` and `bytes` (1 to 16) are in bounds.
    #[inline]
    pub(crate) fn is_written(&self, offset: u64, bytes: u32) -> bool {
        let first = (offset >> 3) as usize;
        if bytes == 16 {
            self.written[first].load(Relaxed) & self.written[first + 1].load(Relaxed) == 0xff
        } else {
            let mask = Self::byte_mask(offset, bytes);
            self.written[first].load(Relaxed) & mask == mask
        }
    }

    fn mark(&self, word: usize, mask: u8) {
        let cell = &self.written[word];
        if cell.load(Relaxed) & mask != mask {
            cell.fetch_or(mask, Relaxed);
        }
    }

    /// An aligned load of 1 to 16 bytes, in bounds.
    #[inline]
    pub(crate) fn load(&self, offset: u64, bytes: u32) -> Words {
        let first = (offset >> 3) as usize;
        let word = self.words[first].load(Relaxed);
        match bytes {
            16 => [word, self.words[first + 1].load(Relaxed)],
            _ => [(word >> ((offset & 7) * 8)) & low_bits(bytes * 8), 0],
        }
    }

    /// An aligned store of 1 to 16 bytes, in bounds.
    #[inline]
    pub(crate) fn store(&self, offset: u64, bytes: u32, value: Words) {
        let first = (offset >> 3) as usize;
        match bytes {
            16 => {
                self.words[first].store(value[0], Relaxed);
                self.words[first + 1].store(value[1], Relaxed);
                self.mark(first, 0xff);
                self.mark(first + 1, 0xff);
            }
            8 => {
                self.words[first].store(value[0], Relaxed);
                self.mark(first, 0xff);
            }
            _ => {
                self.update(offset, bytes, |_| value[0]);
            }
        }
    }

    /// Replaces an aligned value of 1 to 8 bytes by `f` of it, atomically; gives the old one.
    pub(crate) fn update(&self, offset: u64, bytes: u32, f: impl Fn(u64) -> u64) -> u64 {
        let word = (offset >> 3) as usize;
        let shift = (offset & 7) * 8;
        let mask = low_bits(bytes * 8);
        let cell = &self.words[word];
        let mut seen = cell.load(Relaxed);
        loop {
            let old = (seen >> shift) & mask;
            let new = (seen & !(mask << shift)) | ((f(old) & mask) << shift);
            match cell.compare_exchange_weak(seen, new, Relaxed, Relaxed) {
                Ok(_) => {
                    self.mark(word, Self::byte_mask(offset, bytes));
                    return old;
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Calls `f(offset, bytes)` for pieces of a range that are aligned and at most a word long.
    fn pieces(offset: u64, bytes: u64, mut f: impl FnMut(u64, u32)) {
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let room = (8 - (at & 7)).min(end - at);
            // Inside a word: single bytes up to the next whole word, which then goes at once.
            let piece = if room == 8 { 8 } else { 1 };
            f(at, piece as u32);
            at += piece;
        }
    }

    /// Host write; the range is in bounds.
    pub(crate) fn write(&self, offset: u64, from: &[u8]) {
        Self::pieces(offset, from.len() as u64, |at, bytes| {
            let start = (at - offset) as usize;
            let mut word = [0; 8];
            word[..bytes as usize].copy_from_slice(&from[start..start + bytes as usize]);
            self.store(at, bytes, [u64::from_le_bytes(word), 0]);
        });
    }

    /// Host read; the range is in bounds. Bytes never written read as zero.
    pub(crate) fn read(&self, offset: u64, to: &mut [u8]) {
        Self::pieces(offset, to.len() as u64, |at, bytes| {
            let start = (at - offset) as usize;
            let word = self.load(at, bytes)[0].to_le_bytes();
            to[start..start + bytes as usize].copy_from_slice(&word[..bytes as usize]);
        });
    }

    /// Host fill; the range is in bounds.
    pub(crate) fn fill(&self, offset: u64, bytes: u64, value: u8) {
        let word = u64::from_le_bytes([value; 8]);
        Self::pieces(offset, bytes, |at, bytes| self.store(at, bytes, [word, 0]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_ranges_go_in_and_out_unharmed() {
        let storage = Storage::new(37).unwrap();
        let bytes: Vec<u8> = (0..30).collect();
        storage.write(3, &bytes);
        let mut back = vec![0xee; 37];
        storage.read(0, &mut back);
        assert_eq!(&back[3..33], &bytes[..]);
        assert_eq!(&back[..3], &[0; 3]);
        assert!(storage.is_written(16, 16) && storage.is_written(3, 1));
        assert!(!storage.is_written(0, 4) && !storage.is_written(32, 2));
    }

    #[test]
    fn narrow_stores_leave_their_neighbours_alone() {
        let storage = Storage::new(16).unwrap();
        storage.store(0, 16, [u64::MAX, u64::MAX]);
        storage.store(10, 2, [0x1234, 0]);
        assert_eq!(storage.load(8, 8)[0], 0xffff_ffff_1234_ffff);
        assert_eq!(storage.load(10, 2)[0], 0x1234);
        assert_eq!(storage.update(12, 4, |x| x + 1), 0xffff_ffff);
        assert_eq!(storage.load(12, 4)[0], 0);
        assert_eq!(storage.load(8, 4)[0], 0x1234_ffff);
    }

    #[test]
    fn fill_covers_exactly_its_range() {
        let storage = Storage::new(20).unwrap();
        storage.fill(1, 18, 0xab);
        let mut back = [0; 20];
        storage.read(0, &mut back);
        assert_eq!((back[0], back[1], back[18], back[19]), (0, 0xab, 0xab, 0));
    }
}
