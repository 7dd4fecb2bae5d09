//! Races within a block, by happens-before.
//!
//! Each 4-byte granule of memory remembers its last plain write, and the atomics and plain reads since. Only accesses of
//! the present epoch can race.
use crate::clock::{Known, Moment, Seen};
use crate::group::{Details, Group};
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
        let Who { now, seen, known, .. } = *who;
        let Moment { epoch, warp, lane, clock } = self.at;
        epoch == now.epoch
            && if warp == now.warp {
                lane != now.lane && clock > seen[lane as usize]
            } else {
                known.is_none_or(|known| clock > known[warp as usize])
            }
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
        let Who { now, site, .. } = *who;
        let (meets_readers, meets_atomics) = (access != Access::Read, access != Access::Atomic);
        let rival = if self.write.is_unordered(who) {
            Some(self.write.site)
        } else if meets_atomics && self.atomics.is_unordered(who, key, &tables.atomics) {
            Some(self.atomics.site)
        } else if meets_readers && self.readers.is_unordered(who, key, &tables.readers) {
            Some(self.readers.site)
        } else {
            None
        };
        match access {
            Access::Read => self.readers.join(who, key, &mut tables.readers),
            Access::Atomic => self.atomics.join(who, key, &mut tables.atomics),
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
    pub(crate) known: Option<&'a Known>,
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
                table.spread(index << 2);
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
            let who = Who {
                now: &now,
                seen: self.clocks.seen(thread),
                known: self.clocks.known(thread),
                site: thread,
            };
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
