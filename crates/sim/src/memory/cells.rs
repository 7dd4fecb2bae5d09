//! The shared memory of the block that a worker is running, and what is known of each four bytes.
use crate::memory::bits::{Words, low_bits};
use crate::order::clock::{Moment, Passed};
use crate::order::proxy::{Proxy, Wrote};
use crate::order::race::{Access, Granule, Races, Who, granules};
use crate::report::site::SiteId;

/// Four bytes, and what is known of them.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    /// The block that this is about; anything older counts as fresh.
    block: u64,
    races: Granule,
    /// A bit for each byte that was written.
    written: u8,
    /// The copy in flight that will fill it: thread and line.
    flight: Option<(u32, SiteId)>,
    /// The last writes of its two halves.
    wrote: [Wrote; 2],
    /// The last barrier of the cluster that comes after a use by the block itself, and that use's line.
    used: (u32, SiteId),
    /// The last store by another block, if any.
    stored: Stored,
}

impl Cell {
    /// Records a use by the block itself. A warp that has come to the barrier may be followed by one that has not, whose use
    /// comes before an earlier barrier.
    #[inline]
    fn use_by(&mut self, who: &Who<'_>) {
        let before = who.passed.came + 1;
        if before >= self.used.0 {
            self.used = (before, who.site);
        }
    }
}

/// A store by another block of the cluster.
#[derive(Clone, Copy, Debug, Default)]
struct Stored {
    /// The barrier of the cluster that comes after it; 0 without a store.
    before: u32,
    by: Storer,
    site: SiteId,
}

/// A thread of a cluster: its block there, and its index in that.
pub(crate) type Storer = (u32, u32);

/// What is wrong with an access that is in bounds and aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    pub(crate) uninitialised: bool,
    /// The line of the unordered access.
    pub(crate) race: Option<SiteId>,
    /// The line of the copy in flight.
    pub(crate) flight: Option<SiteId>,
    /// The line of a write that a product cannot be sure to see.
    pub(crate) unfenced: Option<SiteId>,
    /// The line of another block's access, which no barrier of the cluster orders with this.
    pub(crate) cluster: Option<SiteId>,
}

#[derive(Debug, Default)]
pub(crate) struct Cells {
    block: u64,
    words: Vec<u64>,
    cells: Vec<Cell>,
    races: Races,
    proxy: Proxy,
    bytes: u32,
}

impl Cells {
    /// Starts a block with `bytes` of memory, none of it written.
    pub(crate) fn start_block(&mut self, bytes: u32) {
        self.block += 1;
        self.bytes = bytes;
        // Never less than before: what stays is not made again.
        let words = self.words.len().max(bytes.div_ceil(8) as usize);
        self.words.resize(words, 0);
        self.cells.resize(2 * words, Cell::default());
        self.races.clear();
        self.proxy.start_block();
    }

    pub(crate) fn len(&self) -> u32 {
        self.bytes
    }

    /// Records an access and gives its faults.
    #[inline]
    pub(crate) fn visit(&mut self, offset: u32, bytes: u32, access: Access, who: &Who<'_>) -> Faults {
        let mut faults = Faults::default();
        let wrote = if access == Access::Read { Wrote::default() } else { self.proxy.write(who) };
        for (index, mask) in granules(u64::from(offset), bytes) {
            self.refresh(index);
            let cell = &mut self.cells[index as usize];
            if let Some((_, site)) = cell.flight {
                faults.flight = Some(site);
            }
            if cell.stored.before > who.passed.waited {
                faults.cluster = Some(cell.stored.site);
            }
            cell.use_by(who);
            if access != Access::Write && cell.written & mask != mask {
                faults.uninitialised = true;
            }
            if access != Access::Read {
                cell.written |= mask;
                for (half, last) in cell.wrote.iter_mut().enumerate() {
                    if mask >> (2 * half) & 0b11 != 0 {
                        *last = wrote;
                    }
                }
            }
            let rival = self.races.visit(&mut cell.races, index, mask, access, who);
            faults.race = faults.race.or(rival);
        }
        if faults.flight.is_some() {
            // A place that a copy is filling is neither unwritten nor raced for: the missing wait is the fault.
            Faults { flight: faults.flight, ..Faults::default() }
        } else {
            faults
        }
    }

    /// Records a store by another block, and gives the line of an access that no barrier of the cluster orders with it. Words of
    /// four bytes are told apart, and no less.
    pub(crate) fn receive(
        &mut self,
        offset: u32,
        bytes: u32,
        (by, passed, site): (Storer, Passed, SiteId),
        value: Words,
    ) -> Option<SiteId> {
        let mut rival = None;
        for (index, mask) in granules(u64::from(offset), bytes) {
            self.refresh(index);
            let wrote = self.proxy.foreign_write(site);
            let cell = &mut self.cells[index as usize];
            if cell.used.0 > passed.waited {
                rival = Some(cell.used.1);
            } else if cell.stored.before > passed.waited && cell.stored.by != by {
                rival = Some(cell.stored.site);
            }
            cell.stored = Stored { before: passed.came + 1, by, site };
            cell.written |= mask;
            cell.wrote = [wrote; 2];
        }
        self.store(offset, bytes, value);
        rival
    }

    /// Makes a cell that an earlier block left one of this block.
    #[inline]
    fn refresh(&mut self, index: u64) {
        let cell = &mut self.cells[index as usize];
        if cell.block != self.block {
            *cell = Cell { block: self.block, ..Cell::default() };
            // What the last block left must not be seen, whatever fault lets a read through.
            let shift = (index & 1) * 32;
            self.words[(index >> 1) as usize] &= !(low_bits(32) << shift);
        }
    }

    /// A thread makes what it has written visible to products.
    pub(crate) fn fence_proxy(&mut self, thread: u32, now: Moment) {
        self.proxy.fence(thread, now);
    }

    /// The time on the clock of writes.
    pub(crate) fn time(&self) -> u64 {
        self.proxy.time()
    }

    /// The faults of a product that starts to read the 16 bytes at `offset`, aligned and in bounds. Nothing is recorded:
    /// the read ends when the product does.
    pub(crate) fn inspect(&mut self, offset: u32, who: &Who<'_>) -> Faults {
        let mut faults = Faults::default();
        let mut judged = Wrote::default();
        for (index, mask) in granules(u64::from(offset), 16) {
            self.refresh(index);
            let cell = &self.cells[index as usize];
            faults.flight = faults.flight.or(cell.flight.map(|(_, site)| site));
            if cell.stored.before > who.passed.waited {
                faults.cluster = Some(cell.stored.site);
            }
            faults.uninitialised |= cell.written != mask;
            faults.race = faults.race.or(self.races.rival_of_read(&cell.races, index, who));
            for wrote in cell.wrote {
                if wrote != judged && self.proxy.is_unfenced(&wrote, who) {
                    faults.unfenced = Some(wrote.site);
                }
                judged = wrote;
            }
        }
        match faults {
            Faults { flight: Some(_), .. } => Faults { flight: faults.flight, ..Faults::default() },
            // A fence cannot help where nothing orders the write.
            Faults { race: Some(_), .. } => Faults { unfenced: None, ..faults },
            _ => faults,
        }
    }

    /// The line of a write to the 16 bytes at `offset`, aligned and in bounds, that no fence of its thread makes visible to the
    /// tensor cores and bulk copies.
    pub(crate) fn unfenced(&mut self, offset: u32, who: &Who<'_>) -> Option<SiteId> {
        let mut found = None;
        for (index, _) in granules(u64::from(offset), 16) {
            self.refresh(index);
            let wrote = self.cells[index as usize].wrote;
            let first = wrote.into_iter().find(|wrote| self.proxy.is_unfenced(wrote, who));
            found = found.or(first.map(|wrote| wrote.site));
        }
        found
    }

    /// Records that a product has read the 16 bytes at `offset`, which it inspected at time `since`, and does so no more.
    /// Gives a write that came in between.
    pub(crate) fn retire(&mut self, offset: u32, since: u64, who: &Who<'_>) -> Option<Wrote> {
        let mut late = None;
        for (index, mask) in granules(u64::from(offset), 16) {
            // Of A the product's warp has inspected its own rows only.
            self.refresh(index);
            let cell = &mut self.cells[index as usize];
            late = late.or(cell.wrote.into_iter().find(|wrote| wrote.time > since));
            cell.use_by(who);
            self.races.visit(&mut cell.races, index, mask, Access::Read, who);
        }
        late
    }

    /// Marks the target of a copy that thread `thread` has started.
    pub(crate) fn set_flight(&mut self, offset: u32, bytes: u32, thread: u32, site: SiteId) {
        for (index, _) in granules(u64::from(offset), bytes) {
            self.cells[index as usize].flight = Some((thread, site));
        }
    }

    /// The copy of thread `thread` has landed.
    pub(crate) fn clear_flight(&mut self, offset: u32, bytes: u32, thread: u32) {
        for (index, _) in granules(u64::from(offset), bytes) {
            let cell = &mut self.cells[index as usize];
            if cell.flight.is_some_and(|(owner, _)| owner == thread) {
                cell.flight = None;
            }
        }
    }

    /// An aligned load of 1 to 16 bytes, in bounds.
    #[inline]
    pub(crate) fn load(&self, offset: u32, bytes: u32) -> Words {
        let first = (offset >> 3) as usize;
        match bytes {
            16 => [self.words[first], self.words[first + 1]],
            _ => [(self.words[first] >> ((offset & 7) * 8)) & low_bits(bytes * 8), 0],
        }
    }

    /// An aligned store of 1 to 16 bytes, in bounds.
    #[inline]
    pub(crate) fn store(&mut self, offset: u32, bytes: u32, value: Words) {
        let first = (offset >> 3) as usize;
        if bytes == 16 {
            self.words[first..first + 2].copy_from_slice(&value);
        } else {
            let (shift, mask) = ((offset & 7) * 8, low_bits(bytes * 8));
            self.words[first] = (self.words[first] & !(mask << shift)) | ((value[0] & mask) << shift);
        }
    }
}
