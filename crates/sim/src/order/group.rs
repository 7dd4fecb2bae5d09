//! Threads that made one kind of access to one place, of which none comes after another.
//!
//! A group of one warp knows its lanes and their clock. Until a warp comes to a named barrier nothing orders warps inside
//! an epoch, so a group of several warps needs no detail: any later access of a rival kind races. After that it keeps the
//! clocks of each warp, apart from the group, because it is rare.
use crate::memory::hash::AddressMap;
use crate::order::clock::{Moment, Seen};
use crate::order::race::Who;
use crate::report::site::SiteId;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Group {
    epoch: u32,
    /// A bit for each warp.
    warps: u32,
    /// A bit for each lane, while there is one warp.
    lanes: u32,
    /// The clock of all these lanes, [`APART`], or [`EARLY`].
    clock: u32,
    pub(crate) site: SiteId,
}

/// The clocks stand in [`Details`].
const APART: u32 = u32::MAX;
/// Several warps, before any of them came to a named barrier in this epoch. Clocks start from 1.
const EARLY: u32 = 0;

/// The clocks of groups, by granule.
#[derive(Debug, Default)]
pub(crate) struct Details {
    /// Of one warp: each lane's clock.
    lanes: AddressMap<Seen>,
    /// Of several warps: of each the last clocks of its lanes, zero for a lane without an access.
    warps: AddressMap<Vec<(u32, Seen)>>,
}

impl Details {
    pub(crate) fn clear(&mut self) {
        self.lanes.clear();
        self.warps.clear();
    }

    /// Gives what is known of `key` to the three keys after it.
    pub(crate) fn spread(&mut self, key: u64) {
        if let Some(&clocks) = self.lanes.get(&key) {
            self.lanes.extend((1..4).map(|byte| (key | byte, clocks)));
        }
        if let Some(clocks) = self.warps.get(&key).cloned() {
            self.warps.extend((1..4).map(|byte| (key | byte, clocks.clone())));
        }
    }
}

impl Group {
    fn single(now: &Moment, site: SiteId) -> Self {
        Self { epoch: now.epoch, warps: 1 << now.warp, lanes: 1 << now.lane, clock: now.clock, site }
    }

    /// Whether some access of the group does not come before the present one.
    #[inline]
    pub(crate) fn is_unordered(&self, who: &Who<'_>, key: u64, details: &Details) -> bool {
        let Who { now, seen, .. } = *who;
        if self.epoch != now.epoch || self.warps == 0 {
            return false;
        }
        if self.warps != 1 << now.warp {
            return self.is_unordered_across(who, key, details);
        }
        let others = self.lanes & !(1 << now.lane);
        others != 0 && self.has_unseen(others, seen, key, details)
    }

    fn has_unseen(&self, others: u32, seen: &Seen, key: u64, details: &Details) -> bool {
        let clocks = if self.clock == APART { details.lanes.get(&key) } else { None };
        (0..32).filter(|lane| others >> lane & 1 != 0).any(|lane| {
            let clock = clocks.map_or(self.clock, |clocks| clocks[lane]);
            clock > seen[lane]
        })
    }

    /// As [`is_unordered`](Self::is_unordered), for a group in which there are other warps.
    fn is_unordered_across(&self, who: &Who<'_>, key: u64, details: &Details) -> bool {
        let Who { now, seen, known: Some(known), .. } = *who else { return true };
        if self.clock == EARLY {
            // Whoever comes after another warp's has waited at a named barrier, and so comes after his own warp's too.
            return bits(self.warps & !(1 << now.warp)).any(|warp| known[warp] == 0);
        }
        if self.warps.is_power_of_two() {
            return self.last(key, details) > known[self.warps.trailing_zeros() as usize];
        }
        let is_unordered = |(warp, clocks): &(u32, Seen)| {
            let own = *warp == now.warp;
            clocks.iter().enumerate().any(|(lane, &clock)| {
                if own {
                    lane != now.lane as usize && clock > seen[lane]
                } else {
                    clock > known[*warp as usize]
                }
            })
        };
        details.warps.get(&key).is_none_or(|warps| warps.iter().any(is_unordered))
    }

    /// The last clock of a group of one warp.
    fn last(&self, key: u64, details: &Details) -> u32 {
        self.clocks(key, details).into_iter().max().unwrap_or(APART)
    }

    /// The clocks of a group of one warp; zero for lanes without an access.
    fn clocks(&self, key: u64, details: &Details) -> Seen {
        let apart = if self.clock == APART { details.lanes.get(&key) } else { None };
        std::array::from_fn(|lane| {
            let clock = apart.map_or(self.clock, |clocks| clocks[lane]);
            if self.lanes >> lane & 1 != 0 { clock } else { 0 }
        })
    }

    /// Adds the present access.
    #[inline]
    pub(crate) fn join(&mut self, who: &Who<'_>, key: u64, details: &mut Details) {
        let Who { now, seen, known, site, .. } = *who;
        if self.epoch != now.epoch || self.warps == 0 {
            *self = Self::single(now, site);
        } else if self.warps != 1 << now.warp {
            if known.is_some() {
                self.join_across(now, key, details);
            } else {
                self.clock = EARLY;
            }
            self.warps |= 1 << now.warp;
        } else if self.clock == now.clock {
            self.lanes |= 1 << now.lane;
        } else if !self.has_unseen(self.lanes & !(1 << now.lane), seen, key, details) {
            *self = Self::single(now, site);
        } else {
            let mut clocks = match details.lanes.get(&key) {
                Some(clocks) if self.clock == APART => *clocks,
                _ => [self.clock; 32],
            };
            clocks[now.lane as usize] = now.clock;
            details.lanes.insert(key, clocks);
            self.clock = APART;
            self.lanes |= 1 << now.lane;
        }
    }

    /// Adds the present access to the clocks of a group in which there are other warps.
    fn join_across(&mut self, now: &Moment, key: u64, details: &mut Details) {
        if self.warps.is_power_of_two() {
            let clocks = self.clocks(key, details);
            details.warps.insert(key, vec![(self.warps.trailing_zeros(), clocks)]);
        } else if self.clock == EARLY {
            // Before a warp's first clock at a named barrier of this epoch, so any that is known comes after it.
            details.warps.insert(key, bits(self.warps).map(|warp| (warp as u32, [1; 32])).collect());
        }
        self.clock = APART;
        let warps = details.warps.entry(key).or_default();
        match warps.iter_mut().find(|(warp, _)| *warp == now.warp) {
            Some((_, clocks)) => clocks[now.lane as usize] = now.clock,
            None => {
                let mut clocks = [0; 32];
                clocks[now.lane as usize] = now.clock;
                warps.push((now.warp, clocks));
            }
        }
    }
}

/// The bits of a mask, lowest first.
fn bits(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |bit| mask >> bit & 1 != 0)
}
