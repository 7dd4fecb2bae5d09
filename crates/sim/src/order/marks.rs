//! What the blocks of a launch did to a buffer: enough to tell afterwards which of them raced.
//!
//! Marks only ever grow, and by operations whose order does not matter, so the verdict is the same however the blocks
//! were spread over the host's threads. Tables appear when first needed; one that the host has no memory for stays empty,
//! and the launch fails.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::memory::zeros::{Zero, zeros};
use crate::order::race::Access;
use crate::report::site::SiteId;

/// The table, made with `count` cells (1 or more) when it is first needed; empty if the host has no memory for it.
#[inline]
fn table<T: Zero>(table: &OnceLock<Box<[T]>>, count: u64) -> &[T] {
    table.get_or_init(|| zeros(count as usize).unwrap_or_default())
}

/// Whether the host had no memory for the table.
fn is_starved<T>(table: &OnceLock<Box<[T]>>) -> bool {
    table.get().is_some_and(|cells| cells.is_empty())
}

/// Cells for every 4 bytes, and for every byte where accesses of less than 4 bytes occur.
#[derive(Debug)]
struct Resolution<T> {
    granules: OnceLock<Box<[T]>>,
    bytes: OnceLock<Box<[T]>>,
}

impl<T> Default for Resolution<T> {
    fn default() -> Self {
        Self { granules: OnceLock::new(), bytes: OnceLock::new() }
    }
}

impl<T> Resolution<T> {
    /// The cells of an aligned access to a buffer of `len` bytes; none without memory.
    #[inline]
    fn cells(&self, len: u64, offset: u64, bytes: u32) -> &[T]
    where
        T: Zero,
    {
        let (cells, first, count) = if bytes >= 4 {
            (table(&self.granules, len.div_ceil(4)), offset >> 2, bytes >> 2)
        } else {
            (table(&self.bytes, len), offset, bytes)
        };
        cells.get(first as usize..first as usize + count as usize).unwrap_or_default()
    }

    fn is_starved(&self) -> bool {
        is_starved(&self.granules) || is_starved(&self.bytes)
    }

    /// The cells that speak about one byte.
    fn at(&self, byte: u64) -> impl Iterator<Item = &T> {
        let granule = self.granules.get().and_then(|cells| cells.get((byte >> 2) as usize));
        granule.into_iter().chain(self.bytes.get().and_then(|cells| cells.get(byte as usize)))
    }
}

/// A block by its linear index, a line of its own, and the phase of its hand-overs: of a write, the one that it is part
/// of; of a read that was handed what it reads, the writer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Party {
    pub(crate) block: u32,
    pub(crate) site: SiteId,
    pub(crate) phase: u8,
}

/// The first and the last block that made one kind of access.
#[derive(Debug, Default)]
struct Extremes {
    last: Resolution<AtomicU64>,
    first: Resolution<AtomicU64>,
}

/// Bits of a mark below the block: phase and line.
const LINE_BITS: u32 = 24;
const PARTY_BITS: u32 = 32;

/// Raises the cell to what stands in `value` from bit `from` on; of equals, the first stays.
#[inline]
fn raise(cell: &AtomicU64, value: u64, from: u32) {
    let mut seen = cell.load(Relaxed);
    while seen >> from < value >> from {
        match cell.compare_exchange_weak(seen, value, Relaxed, Relaxed) {
            Ok(_) => return,
            Err(now) => seen = now,
        }
    }
}

impl Extremes {
    /// Of a block's lines the first stays: the first at all, or from `LINE_BITS`, of its last phase.
    fn mark(&self, len: u64, offset: u64, bytes: u32, party: Party, from: u32) {
        // One-based, so that zero means nobody.
        let block = party.block + 1;
        let line = u64::from(party.phase) << LINE_BITS | u64::from(party.site);
        let up = u64::from(block) << PARTY_BITS | line;
        let down = u64::from(!block) << PARTY_BITS | line;
        for cell in self.last.cells(len, offset, bytes) {
            raise(cell, up, from);
        }
        for cell in self.first.cells(len, offset, bytes) {
            raise(cell, down, from);
        }
    }

    /// First and last block that accessed this byte.
    fn at(&self, byte: u64) -> Option<(Party, Party)> {
        let highest = |side: &Resolution<AtomicU64>| {
            side.at(byte)
                .map(|cell| cell.load(Relaxed))
                .filter(|&value| value != 0)
                .max_by_key(|value| value >> 32)
        };
        let last = highest(&self.last)?;
        let first = highest(&self.first)?;
        let party = |block: u32, value: u64| {
            let (phase, site) = ((value >> LINE_BITS) as u8, value as SiteId & ((1 << LINE_BITS) - 1));
            Party { block: block - 1, site, phase }
        };
        Some((party(!((first >> 32) as u32), first), party((last >> 32) as u32, last)))
    }

    fn has_bytes(&self) -> bool {
        self.last.bytes.get().is_some()
    }
}

/// Lines of read-only loads beyond this many share the last bit of a mark.
pub(crate) const READONLY_BITS: u32 = 32;

/// A verdict on one byte or granule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Two blocks that raced; the first wrote.
    Race(Party, Party),
    /// A block that wrote what lines with these read-only bits read.
    ReadonlyWritten(Party, u32),
}

/// The marks on one buffer.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    readonly: Resolution<AtomicU32>,
    written: Extremes,
    read: Extremes,
    /// Reads that were handed what they read.
    handed: Extremes,
    atomic: Extremes,
    /// Bits for each 32-byte sector, 64 to the word.
    sectors_read: OnceLock<Box<[AtomicU64]>>,
    sectors_written: OnceLock<Box<[AtomicU64]>>,
}

/// Bytes of a sector: what the caches move.
pub(crate) const SECTOR: u64 = 32;
/// Bytes that one word of sector bits covers.
pub(crate) const SECTOR_PAGE: u64 = SECTOR * 64;

impl Marks {
    /// A read-only load by the line with this bit.
    #[inline]
    pub(crate) fn readonly(&self, len: u64, offset: u64, bytes: u32, bit: u32) {
        for cell in self.readonly.cells(len, offset, bytes) {
            if cell.load(Relaxed) & bit == 0 {
                cell.fetch_or(bit, Relaxed);
            }
        }
    }

    pub(crate) fn access(&self, len: u64, offset: u64, bytes: u32, access: Access, party: Party) {
        let (extremes, from) = match access {
            Access::Read => (&self.read, PARTY_BITS),
            Access::Write => (&self.written, LINE_BITS),
            Access::Atomic => (&self.atomic, PARTY_BITS),
        };
        extremes.mark(len, offset, bytes, party, from);
    }

    /// A read of what another block has handed over in the phase that `party` names.
    pub(crate) fn handed(&self, len: u64, offset: u64, bytes: u32, party: Party) {
        self.handed.mark(len, offset, bytes, party, PARTY_BITS);
    }

    /// The block that alone has written these bytes, and all of them in one phase.
    pub(crate) fn writer(&self, offset: u64, bytes: u32) -> Option<Party> {
        let mut writers = (offset..offset + u64::from(bytes)).map(|byte| {
            let (first, last) = self.written.at(byte)?;
            ((first.block, first.phase) == (last.block, last.phase)).then_some(first)
        });
        let first = writers.next()??;
        let is_same = |other: Party| (other.block, other.phase) == (first.block, first.phase);
        writers.all(|other| other.is_some_and(is_same)).then_some(first)
    }

    /// The sectors of page `page` of a buffer of `len` bytes that a block has touched.
    pub(crate) fn sectors(&self, len: u64, page: u64, read: u64, written: u64) {
        for (sectors, bits) in [(&self.sectors_read, read), (&self.sectors_written, written)] {
            if bits != 0 {
                let cells = table(sectors, len.div_ceil(SECTOR_PAGE));
                if let Some(word) = cells.get(page as usize) {
                    word.fetch_or(bits, Relaxed);
                }
            }
        }
    }

    /// Whether marks are missing because the host had no memory for them.
    pub(crate) fn is_starved(&self) -> bool {
        let extremes = [&self.written, &self.read, &self.handed, &self.atomic];
        self.readonly.is_starved()
            || extremes.into_iter().any(|extremes| extremes.last.is_starved() || extremes.first.is_starved())
            || is_starved(&self.sectors_read)
            || is_starved(&self.sectors_written)
    }

    /// Distinct sectors read and written.
    pub(crate) fn distinct_sectors(&self) -> (u64, u64) {
        let count = |table: &OnceLock<Box<[AtomicU64]>>| {
            let words = table.get().map_or(&[][..], |words| words);
            words.iter().map(|word| u64::from(word.load(Relaxed).count_ones())).sum()
        };
        (count(&self.sectors_read), count(&self.sectors_written))
    }

    /// Judges every place that was written: calls `report(offset, bytes, verdict)`.
    pub(crate) fn judge(&self, len: u64, mut report: impl FnMut(u64, u32, Verdict)) {
        let Some(words) = self.sectors_written.get() else { return };
        let apart = self.readonly.bytes.get().is_some()
            || [&self.written, &self.read, &self.handed, &self.atomic]
                .iter()
                .any(|extremes| extremes.has_bytes());
        let step = if apart { 1 } else { 4 };
        for (page, word) in words.iter().enumerate() {
            let bits = word.load(Relaxed);
            for sector in (0..64).filter(|sector| bits >> sector & 1 != 0) {
                let start = page as u64 * SECTOR_PAGE + sector * SECTOR;
                for byte in (start..(start + SECTOR).min(len)).step_by(step as usize) {
                    self.judge_byte(byte, |verdict| report(byte, step, verdict));
                }
            }
        }
    }

    fn judge_byte(&self, byte: u64, mut report: impl FnMut(Verdict)) {
        let written = self.written.at(byte);
        let atomic = self.atomic.at(byte);
        let Some(writers) = written.or(atomic) else { return };
        let bits = self.readonly.at(byte).fold(0, |bits, cell| bits | cell.load(Relaxed));
        if bits != 0 {
            report(Verdict::ReadonlyWritten(writers.0, bits));
        }
        let rival = written.and_then(|writers| rival_of(writers, writers));
        let rival = rival.or_else(|| rival_of(written?, atomic?));
        let rival = rival.or_else(|| rival_of(writers, self.read.at(byte)?));
        if let Some((a, b)) = rival.or_else(|| self.overwritten(writers.1, byte)) {
            report(Verdict::Race(a, b));
        }
    }
    /// The last writer, and a block that was handed what it wrote in an earlier phase. Each read was judged when it was
    /// made; this finds the write that came too late.
    fn overwritten(&self, writer: Party, byte: u64) -> Option<(Party, Party)> {
        let (first, last) = self.handed.at(byte)?;
        [first, last].into_iter().find(|reader| reader.phase != writer.phase).map(|reader| (writer, reader))
    }
}

/// Two parties of different blocks, one from each range of blocks.
fn rival_of(writers: (Party, Party), others: (Party, Party)) -> Option<(Party, Party)> {
    let pairs = [(writers.0, others.1), (writers.1, others.0), (writers.0, others.0)];
    pairs.into_iter().find(|(a, b)| a.block != b.block)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: u64 = 64;

    fn verdicts(marks: &Marks) -> Vec<(u64, Verdict)> {
        let mut all = Vec::new();
        marks.sectors(LEN, 0, 0, u64::MAX);
        marks.judge(LEN, |at, _, verdict| all.push((at, verdict)));
        all
    }
    fn party(block: u32) -> Party {
        Party { block, site: 10 + block, phase: 0 }
    }

    #[test]
    fn one_block_alone_never_races_with_itself() {
        let marks = Marks::default();
        for access in [Access::Write, Access::Read, Access::Atomic] {
            marks.access(LEN, 0, 16, access, party(3));
        }
        assert_eq!(verdicts(&marks), []);
    }

    #[test]
    fn any_order_of_blocks_gives_the_same_pair() {
        for order in [[1, 5, 3], [5, 3, 1], [3, 1, 5]] {
            let marks = Marks::default();
            order.into_iter().for_each(|block| marks.access(LEN, 8, 4, Access::Write, party(block)));
            assert_eq!(verdicts(&marks), [(8, Verdict::Race(party(1), party(5)))]);
        }
    }

    #[test]
    fn atomics_race_with_plain_accesses_of_other_blocks() {
        let marks = Marks::default();
        marks.access(LEN, 0, 4, Access::Atomic, party(0));
        marks.access(LEN, 0, 4, Access::Atomic, party(1));
        assert_eq!(verdicts(&marks), []);
        marks.access(LEN, 0, 4, Access::Read, party(1));
        assert_eq!(verdicts(&marks), [(0, Verdict::Race(party(0), party(1)))]);
    }

    #[test]
    fn a_table_that_the_host_cannot_hold_is_noticed() {
        let marks = Marks::default();
        marks.access(LEN, 0, 4, Access::Write, party(0));
        assert!(!marks.is_starved());
        marks.readonly(1 << 60, 1 << 50, 4, 1);
        assert!(marks.is_starved());
        let marks = Marks::default();
        marks.sectors(u64::MAX, 0, 0, 1);
        assert!(marks.is_starved() && marks.distinct_sectors() == (0, 0));
    }

    #[test]
    fn neighbouring_bytes_are_apart() {
        let marks = Marks::default();
        marks.access(LEN, 0, 2, Access::Write, party(0));
        marks.access(LEN, 2, 2, Access::Write, party(1));
        assert_eq!(verdicts(&marks), []);
        marks.readonly(LEN, 0, 4, 1);
        assert_eq!(verdicts(&marks).len(), 4);
    }
}
