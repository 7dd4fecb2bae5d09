//! Threads that made one kind of access to one place, of which none comes after another.
//!
//! A group of one warp whose lanes came together knows these lanes and their clock. Until a warp comes to a named barrier
//! nothing orders warps inside an epoch, so a group of several warps needs no detail: any later access of a rival kind
//! races. Other groups keep the clocks of each warp apart, because they are few.
use crate::order::clock::{Moment, Seen};
use crate::order::race::Who;
use crate::report::site::SiteId;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Group {
    epoch: u32,
    /// A bit for each warp.
    warps: u32,
    /// A bit for each lane of the one warp. With [`APART`], the place of the clocks in [`Details`].
    lanes: u32,
    /// The clock of all these lanes, [`APART`], or [`EARLY`].
    clock: u32,
    pub(crate) site: SiteId,
}

/// The clocks stand in [`Details`].
const APART: u32 = u32::MAX;
/// Several warps, before any of them came to a named barrier in this epoch. Clocks start from 1.
const EARLY: u32 = 0;

/// Lanes of a warp, and their last clocks.
#[derive(Clone, Debug)]
struct WarpClocks {
    warp: u32,
    /// A bit for each lane.
    lanes: u32,
    /// The clock of all these lanes, but for those of `apart`. Mostly a warp's lanes come together.
    clock: u32,
    /// Each lane's clock, zero for one without an access, where they are not alike.
    apart: Option<Box<Seen>>,
}

impl WarpClocks {
    fn alike(warp: u32, lanes: u32, clock: u32) -> Self {
        Self { warp, lanes, clock, apart: None }
    }

    fn add(&mut self, lane: u32, clock: u32) {
        if self.apart.is_none() && self.clock != clock {
            self.apart = Some(Box::new(std::array::from_fn(|lane| self.of(lane))));
        }
        if let Some(apart) = &mut self.apart {
            apart[lane as usize] = clock;
        }
        self.lanes |= 1 << lane;
    }

    /// A lane's clock; zero without an access.
    fn of(&self, lane: usize) -> u32 {
        match &self.apart {
            Some(apart) => apart[lane],
            None if self.lanes >> lane & 1 != 0 => self.clock,
            None => 0,
        }
    }

    /// Whether the present access does not come after all of these.
    #[inline]
    fn is_unordered(&self, who: &Who<'_>) -> bool {
        let Who { now, seen, .. } = *who;
        if self.warp == now.warp {
            return bits(self.lanes & !(1 << now.lane)).any(|lane| self.of(lane) > seen[lane]);
        }
        let last = self.apart.as_ref().map_or(self.clock, |apart| apart.iter().copied().fold(0, u32::max));
        who.known.is_none_or(|known| last > known[self.warp as usize])
    }
}

/// The clocks of groups whose clocks are apart, by their places.
#[derive(Debug, Default)]
pub(crate) struct Details {
    /// Those from `used` on are left from earlier blocks.
    places: Vec<Vec<WarpClocks>>,
    used: usize,
    /// Places below `used` whose group has ended.
    free: Vec<u32>,
}

impl Details {
    /// Forgets everything: there are no groups any more.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        self.free.clear();
    }

    /// An empty place.
    fn take(&mut self) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.used as u32 - 1
        });
        match self.places.get_mut(place as usize) {
            Some(clocks) => clocks.clear(),
            None => self.places.push(Vec::new()),
        }
        place
    }

    /// A group ends.
    #[inline]
    pub(crate) fn end(&mut self, group: &mut Group) {
        if group.clock == APART {
            self.free.push(group.lanes);
        }
        *group = Group::default();
    }

    /// The same group once more, to go its own way.
    pub(crate) fn copy(&mut self, group: Group) -> Group {
        if group.clock != APART {
            return group;
        }
        let place = self.take();
        self.places[place as usize] = self.places[group.lanes as usize].clone();
        Group { lanes: place, ..group }
    }
}

impl Group {
    fn single(now: &Moment, site: SiteId) -> Self {
        Self { epoch: now.epoch, warps: 1 << now.warp, lanes: 1 << now.lane, clock: now.clock, site }
    }

    /// Its lanes, where it is one warp whose lanes came together.
    fn alike(&self) -> WarpClocks {
        WarpClocks::alike(self.warps.trailing_zeros(), self.lanes, self.clock)
    }

    /// Whether some access of the group does not come before the present one.
    #[inline]
    pub(crate) fn is_unordered(&self, who: &Who<'_>, details: &Details) -> bool {
        let Who { now, known, .. } = *who;
        if self.epoch != now.epoch || self.warps == 0 {
            return false;
        }
        match (self.clock, known) {
            (EARLY, None) => true,
            // Whoever comes after another warp's has waited at a named barrier, and so comes after his own warp's too.
            (EARLY, Some(known)) => bits(self.warps & !(1 << now.warp)).any(|warp| known[warp] == 0),
            (APART, _) => details.places[self.lanes as usize].iter().any(|warp| warp.is_unordered(who)),
            _ => self.alike().is_unordered(who),
        }
    }

    /// Adds the present access.
    #[inline]
    pub(crate) fn join(&mut self, who: &Who<'_>, details: &mut Details) {
        let Who { now, known, site, .. } = *who;
        let own = 1 << now.warp;
        if self.epoch != now.epoch || self.warps == 0 {
            details.end(self);
            *self = Self::single(now, site);
        } else if self.warps == own && self.clock == now.clock {
            self.lanes |= 1 << now.lane;
        } else if self.warps == own && !self.is_unordered(who, details) {
            details.end(self);
            *self = Self::single(now, site);
        } else if self.warps != own && known.is_none() {
            let Self { epoch, warps, site, .. } = *self;
            details.end(self);
            *self = Self { epoch, warps: warps | own, lanes: 0, clock: EARLY, site };
        } else {
            self.join_apart(now, details);
        }
    }

    /// Adds the present access to clocks that are apart.
    fn join_apart(&mut self, now: &Moment, details: &mut Details) {
        if self.clock != APART {
            let place = details.take();
            let clocks = &mut details.places[place as usize];
            if self.clock == EARLY {
                // Before a warp's first clock at a named barrier of this epoch, so any that is known comes after it.
                clocks.extend(bits(self.warps).map(|warp| WarpClocks::alike(warp as u32, u32::MAX, 1)));
            } else {
                clocks.push(self.alike());
            }
            (self.lanes, self.clock) = (place, APART);
        }
        self.warps |= 1 << now.warp;
        let clocks = &mut details.places[self.lanes as usize];
        match clocks.iter_mut().find(|of| of.warp == now.warp) {
            Some(of) => of.add(now.lane, now.clock),
            None => clocks.push(WarpClocks::alike(now.warp, 1 << now.lane, now.clock)),
        }
    }
}

/// The bits of a mask, lowest first.
fn bits(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros() as usize;
        (mask != 0).then(|| mask &= mask - 1)?;
        Some(bit)
    })
}
