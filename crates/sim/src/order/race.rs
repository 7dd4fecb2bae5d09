//! Races within a block, by happens-before.
//!
//! Each 4-byte granule of memory remembers its last plain write, and the atomics and plain reads since. Only accesses of
//! the present epoch can race.
use crate::memory::hash::AddressMap;
use crate::order::clock::{Known, Moment, Passed, Seen};
use crate::order::group::{Details, Group};
use crate::report::site::SiteId;

/// How an access touches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    /// Read and write at once, unordered with other atomics by right.
    Atomic,
}

/// A plain write.
#[derive(Clone, Copy, Debug, Default)]
struct Write {
    at: Moment,
    site: SiteId,
}

impl Write {
    /// Whether the write does not come before the present access.
    #[inline]
    fn is_unordered(&self, who: &Who<'_>) -> bool {
        !who.comes_after(&self.at)
    }
}

/// The accesses to four bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Granule {
    /// The last plain write.
    write: Write,
    /// Atomics since then.
    atomics: Group,
    /// Plain reads since then.
    readers: Group,
    /// The epoch in which the bytes went separate ways; their states stand in [`Races`].
    split: u32,
}

impl Granule {
    /// Records an access. Only a plain write forgets the others: it has met them all, so whoever comes after it either
    /// comes after them too, or after a race that was found.
    #[inline]
    fn visit(&mut self, who: &Who<'_>, access: Access, details: &mut Details) -> Option<SiteId> {
        let Who { now, site, .. } = *who;
        let rival = self.rival(who, access, details);
        match access {
            Access::Read => self.readers.join(who, details),
            Access::Atomic => self.atomics.join(who, details),
            Access::Write => {
                self.write = Write { at: *now, site };
                details.end(&mut self.atomics);
                details.end(&mut self.readers);
            }
        }
        rival
    }

    /// The same once more, for a byte of it.
    fn copy(&self, details: &mut Details) -> Self {
        Self { atomics: details.copy(self.atomics), readers: details.copy(self.readers), ..*self }
    }

    /// The line of an earlier access that an access would race with.
    #[inline]
    fn rival(&self, who: &Who<'_>, access: Access, details: &Details) -> Option<SiteId> {
        let (meets_readers, meets_atomics) = (access != Access::Read, access != Access::Atomic);
        if self.write.is_unordered(who) {
            Some(self.write.site)
        } else if meets_atomics && self.atomics.is_unordered(who, details) {
            Some(self.atomics.site)
        } else if meets_readers && self.readers.is_unordered(who, details) {
            Some(self.readers.site)
        } else {
            None
        }
    }
}

/// The thread that makes an access, and from where.
#[derive(Clone, Copy)]
pub(crate) struct Who<'a> {
    pub(crate) now: &'a Moment,
    pub(crate) seen: &'a Seen,
    pub(crate) known: Option<&'a Known>,
    pub(crate) passed: Passed,
    pub(crate) site: SiteId,
}

impl Who<'_> {
    /// Whether the present access comes after what a thread did at this moment.
    #[inline]
    pub(crate) fn comes_after(&self, at: &Moment) -> bool {
        let Who { now, seen, known, .. } = *self;
        let Moment { epoch, warp, lane, clock } = *at;
        epoch != now.epoch
            || if warp == now.warp {
                lane == now.lane || clock <= seen[lane as usize]
            } else {
                known.is_some_and(|known| clock <= known[warp as usize])
            }
    }
}

/// What the granules of one memory keep outside themselves, because it is rare.
#[derive(Debug, Default)]
pub(crate) struct Races {
    details: Details,
    /// States of the single bytes of granules that are accessed in parts.
    bytes: AddressMap<[Granule; 4]>,
}

impl Races {
    /// Forgets everything: a new block starts.
    pub(crate) fn clear(&mut self) {
        self.details.clear();
        self.bytes.clear();
    }

    /// Records an access to the bytes `mask` of a granule. Gives the line of an earlier access that races with it.
    ///
    /// `index` numbers the granule within its memory.
    #[inline]
    pub(crate) fn visit(
        &mut self,
        granule: &mut Granule,
        index: u64,
        mask: u8,
        access: Access,
        who: &Who<'_>,
    ) -> Option<SiteId> {
        if mask == 0xf && granule.split != who.now.epoch {
            return granule.visit(who, access, &mut self.details);
        }
        if granule.split != who.now.epoch {
            granule.split = who.now.epoch;
            let bytes = std::array::from_fn(|_| granule.copy(&mut self.details));
            self.bytes.insert(index, bytes);
        }
        let bytes = self.bytes.entry(index).or_default();
        let mut rival = None;
        for (_, state) in (0..).zip(bytes).filter(|(byte, _)| mask >> byte & 1 != 0) {
            let seen = state.visit(who, access, &mut self.details);
            rival = rival.or(seen);
        }
        rival
    }

    /// The line of an earlier access that a read of a whole granule would race with; nothing is recorded.
    #[inline]
    pub(crate) fn rival_of_read(&self, granule: &Granule, index: u64, who: &Who<'_>) -> Option<SiteId> {
        let rival = |state: &Granule| state.rival(who, Access::Read, &self.details);
        match self.bytes.get(&index) {
            Some(bytes) if granule.split == who.now.epoch => bytes.iter().find_map(rival),
            _ => rival(granule),
        }
    }
}

/// The granules of the aligned access at `offset`: index and mask of bytes, each.
#[inline]
pub(crate) fn granules(offset: u64, bytes: u32) -> impl Iterator<Item = (u64, u8)> {
    let mask = if bytes >= 4 { 0xf } else { ((1 << bytes) - 1) << (offset & 3) };
    let first = offset >> 2;
    (first..first + u64::from(bytes.div_ceil(4))).map(move |index| (index, mask))
}

#[cfg(test)]
mod tests;
