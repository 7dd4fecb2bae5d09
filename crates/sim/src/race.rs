//! Races within a block, by happens-before.
//!
//! Each 4-byte granule of memory remembers its last plain write, and the atomics and plain reads since. Only accesses of
//! the present epoch can race. Groups of several warps need no detail: nothing orders warps inside an epoch, so any
//! later access of a rival kind races.
use crate::clock::{Moment, Seen};
use crate::hash::AddressMap;
use crate::site::SiteId;

/// How an access touches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    /// Read and write at once, unordered with other atomics by right.
    Atomic,
}

/// Threads of which none comes after another, that made one kind of access in one epoch.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    epoch: u32,
    /// A bit for each warp.
    warps: u32,
    /// A bit for each lane, while there is one warp.
    lanes: u32,
    /// The clock of all these lanes, or [`MIXED`].
    clock: u32,
    site: SiteId,
}

/// The lanes' clocks differ and stand in [`Details`].
const MIXED: u32 = u32::MAX;

/// The clocks of the lanes of mixed groups, by granule.
type Details = AddressMap<Seen>;

impl Group {
    fn single(now: &Moment, site: SiteId) -> Self {
        Self { epoch: now.epoch, warps: 1 << now.warp, lanes: 1 << now.lane, clock: now.clock, site }
    }

    /// Whether some access of the group does not come before the present one.
    #[inline]
    fn is_unordered(&self, now: &Moment, seen: &Seen, key: u64, details: &Details) -> bool {
        if self.epoch != now.epoch || self.warps == 0 {
            return false;
        }
        if self.warps != 1 << now.warp {
            return true;
        }
        let others = self.lanes & !(1 << now.lane);
        others != 0 && self.has_unseen(others, seen, key, details)
    }

    fn has_unseen(&self, others: u32, seen: &Seen, key: u64, details: &Details) -> bool {
        let clocks = if self.clock == MIXED { details.get(&key) } else { None };
        (0..32).filter(|lane| others >> lane & 1 != 0).any(|lane| {
            let clock = clocks.map_or(self.clock, |clocks| clocks[lane]);
            clock > seen[lane]
        })
    }

    /// Adds the present access.
    #[inline]
    fn join(&mut self, now: &Moment, seen: &Seen, site: SiteId, key: u64, details: &mut Details) {
        if self.epoch != now.epoch || self.warps == 0 {
            *self = Self::single(now, site);
        } else if self.warps != 1 << now.warp {
            self.warps |= 1 << now.warp;
        } else if self.clock == now.clock {
            self.lanes |= 1 << now.lane;
        } else if !self.has_unseen(self.lanes & !(1 << now.lane), seen, key, details) {
            *self = Self::single(now, site);
        } else {
            let mut clocks = match details.get(&key) {
                Some(clocks) if self.clock == MIXED => *clocks,
                _ => [self.clock; 32],
            };
            clocks[now.lane as usize] = now.clock;
            details.insert(key, clocks);
            self.clock = MIXED;
            self.lanes |= 1 << now.lane;
        }
    }
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
    fn is_unordered(&self, now: &Moment, seen: &Seen) -> bool {
        let Moment { epoch, warp, lane, clock } = self.at;
        epoch == now.epoch && (warp != now.warp || (lane != now.lane && clock > seen[lane as usize]))
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
    fn visit(&mut self, who: &Who<'_>, access: Access, key: u64, tables: &mut Tables) -> Option<SiteId> {
        let Who { now, seen, site } = *who;
        let (meets_readers, meets_atomics) = (access != Access::Read, access != Access::Atomic);
        let rival = if self.write.is_unordered(now, seen) {
            Some(self.write.site)
        } else if meets_atomics && self.atomics.is_unordered(now, seen, key, &tables.atomics) {
            Some(self.atomics.site)
        } else if meets_readers && self.readers.is_unordered(now, seen, key, &tables.readers) {
            Some(self.readers.site)
        } else {
            None
        };
        match access {
            Access::Read => self.readers.join(now, seen, site, key, &mut tables.readers),
            Access::Atomic => self.atomics.join(now, seen, site, key, &mut tables.atomics),
            Access::Write => {
                self.write = Write { at: *now, site };
                self.atomics = Group::default();
                self.readers = Group::default();
            }
        }
        rival
    }
}

/// The thread that makes an access, and from where.
#[derive(Clone, Copy)]
pub(crate) struct Who<'a> {
    pub(crate) now: &'a Moment,
    pub(crate) seen: &'a Seen,
    pub(crate) site: SiteId,
}

#[derive(Debug, Default)]
struct Tables {
    atomics: Details,
    readers: Details,
}

/// What the granules of one memory keep outside themselves, because it is rare.
#[derive(Debug, Default)]
pub(crate) struct Races {
    tables: Tables,
    /// States of the single bytes of granules that are accessed in parts.
    bytes: AddressMap<[Granule; 4]>,
}

impl Races {
    /// Forgets everything: a new block starts.
    pub(crate) fn clear(&mut self) {
        self.tables.atomics.clear();
        self.tables.readers.clear();
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
            return granule.visit(who, access, index << 2, &mut self.tables);
        }
        if granule.split != who.now.epoch {
            granule.split = who.now.epoch;
            for table in [&mut self.tables.atomics, &mut self.tables.readers] {
                if let Some(&clocks) = table.get(&(index << 2)) {
                    table.extend((1..4).map(|byte| (index << 2 | byte, clocks)));
                }
            }
            self.bytes.insert(index, [*granule; 4]);
        }
        let bytes = self.bytes.entry(index).or_insert([*granule; 4]);
        let mut rival = None;
        for (byte, state) in bytes.iter_mut().enumerate().filter(|(byte, _)| mask >> byte & 1 != 0) {
            let seen = state.visit(who, access, index << 2 | byte as u64, &mut self.tables);
            rival = rival.or(seen);
        }
        rival
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
mod tests {
    use super::*;
    use crate::clock::Clocks;

    /// A block of two warps and one granule.
    struct Bench {
        clocks: Clocks,
        races: Races,
        granule: Granule,
    }

    impl Bench {
        fn new() -> Self {
            let mut clocks = Clocks::default();
            clocks.start(64);
            Self { clocks, races: Races::default(), granule: Granule::default() }
        }
        fn part(&mut self, thread: u32, access: Access, mask: u8) -> bool {
            let now = self.clocks.now(thread);
            let who = Who { now: &now, seen: self.clocks.seen(thread), site: thread };
            self.races.visit(&mut self.granule, 0, mask, access, &who).is_some()
        }
        fn races(&mut self, thread: u32, access: Access) -> bool {
            self.part(thread, access, 0xf)
        }
    }

    #[test]
    fn a_warp_barrier_orders_its_own_lanes_only() {
        let mut bench = Bench::new();
        assert!(!bench.races(0, Access::Write));
        bench.clocks.warp_barrier(0, 0b0011);
        assert!(!bench.races(1, Access::Read));
        assert!(bench.races(2, Access::Read));
        assert!(bench.races(32, Access::Read));
    }

    #[test]
    fn order_is_passed_on() {
        let mut bench = Bench::new();
        bench.races(0, Access::Write);
        bench.clocks.warp_barrier(0, 0b0011);
        bench.clocks.warp_barrier(0, 0b0110);
        assert!(!bench.races(2, Access::Write));
    }

    #[test]
    fn a_block_barrier_orders_all() {
        let mut bench = Bench::new();
        bench.races(0, Access::Write);
        bench.clocks.block_barrier();
        assert!(!bench.races(40, Access::Write));
    }

    #[test]
    fn readers_do_not_race_and_a_writer_races_with_any_of_them() {
        let mut bench = Bench::new();
        assert!(!bench.races(3, Access::Read));
        assert!(!bench.races(4, Access::Read));
        bench.clocks.warp_barrier(0, 0b1001);
        assert!(!bench.races(0, Access::Read));
        assert!(bench.races(3, Access::Write), "lane 4 was not at the barrier");
    }

    #[test]
    fn readers_with_different_clocks_are_all_remembered() {
        let mut bench = Bench::new();
        bench.clocks.warp_barrier(0, 0b0011);
        bench.races(0, Access::Read);
        bench.clocks.warp_barrier(0, 0b1100);
        bench.races(2, Access::Read);
        bench.clocks.warp_barrier(0, 0b1111);
        assert!(!bench.races(3, Access::Write));
    }

    #[test]
    fn atomics_race_with_plain_accesses_only() {
        let mut bench = Bench::new();
        assert!(!bench.races(0, Access::Atomic));
        assert!(!bench.races(40, Access::Atomic));
        assert!(bench.races(1, Access::Read));
        bench.clocks.block_barrier();
        assert!(!bench.races(1, Access::Write));
        assert!(bench.races(2, Access::Atomic));
    }

    #[test]
    fn a_writer_s_own_atomic_does_not_hide_its_write() {
        let mut bench = Bench::new();
        assert!(!bench.races(0, Access::Write));
        assert!(!bench.races(0, Access::Atomic));
        assert!(bench.races(1, Access::Atomic));
        assert!(bench.races(40, Access::Atomic));
    }

    #[test]
    fn an_atomic_does_not_hide_earlier_readers() {
        let mut bench = Bench::new();
        assert!(!bench.races(0, Access::Read));
        assert!(!bench.races(0, Access::Atomic));
        assert!(bench.races(1, Access::Atomic));
    }

    #[test]
    fn atomics_with_different_clocks_are_all_remembered() {
        let mut bench = Bench::new();
        bench.races(0, Access::Atomic);
        bench.clocks.warp_barrier(0, 0b1100);
        bench.races(2, Access::Atomic);
        bench.clocks.warp_barrier(0, 0b0110);
        assert!(bench.races(1, Access::Write), "lane 0 was at neither barrier");
    }

    #[test]
    fn bytes_of_a_granule_are_apart() {
        let mut bench = Bench::new();
        assert!(!bench.part(0, Access::Write, 0b0011));
        assert!(!bench.part(1, Access::Write, 0b1100));
        assert!(bench.part(2, Access::Read, 0b1000));
        assert!(bench.races(0, Access::Read), "half of it is lane 1's");
    }
}
