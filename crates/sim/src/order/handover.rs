//! Results that blocks hand to each other.
//!
//! A block writes, fences, and tells so by an atomic. A block whose atomic on the same place comes later may read what
//! was written, after a fence or a barrier of its own. Which atomic came later is what this run has shown. A block's
//! plain writes are handed over all at once: an atomic counts when every one of them is behind a fence, the telling
//! thread's or the writer's.
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::execution::context::Context;
use crate::memory::hash::AddressMap;
use crate::order::clock::{Clocks, Moment, Seen};

/// A block has handed over what it wrote up to a phase.
#[derive(Clone, Copy, Debug)]
struct Release {
    block: u32,
    phase: u8,
}

/// The hand-overs of a launch, by the address of the atomic, in the order of the atomics.
#[derive(Debug, Default)]
pub(crate) struct Announcements {
    /// Whether any thread has fenced: before that nothing is handed over.
    used: AtomicBool,
    cells: Mutex<AddressMap<Vec<Release>>>,
}

impl Announcements {
    fn lock(&self) -> MutexGuard<'_, AddressMap<Vec<Release>>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread of the launch fences.
    pub(crate) fn fence(&self) {
        self.used.store(true, SeqCst);
    }

    fn is_used(&self) -> bool {
        self.used.load(SeqCst)
    }
}

/// A thread's fence, and what came before it.
#[derive(Debug)]
struct Fence {
    at: Moment,
    seen: Seen,
}

/// A thread's last plain write since the block's last hand-over; in no epoch if there is none.
#[derive(Clone, Copy, Debug, Default)]
struct LastWrite {
    at: Moment,
    /// Whether the same thread has fenced since.
    fenced: bool,
}

/// An atomic of this block that found hand-overs of others.
#[derive(Debug)]
struct Acquire {
    thread: u32,
    at: Moment,
    /// Whether the same thread has fenced since.
    fenced: bool,
    cell: u64,
    /// How many hand-overs came before it.
    count: usize,
    /// The last phase handed over by each block; made when first needed.
    phases: Option<AddressMap<u8>>,
}

/// The running block's part in hand-overs.
#[derive(Debug, Default)]
pub(crate) struct Handover {
    /// Hand-overs so far that had something to hand over. The last number stands for all beyond: never handed over.
    phase: u8,
    writes: Vec<LastWrite>,
    /// The last fence of each thread.
    fences: AddressMap<Fence>,
    acquired: Vec<Acquire>,
}

/// Whether a moment comes before one at which `seen` is known.
fn precedes(earlier: &Moment, now: &Moment, seen: &Seen) -> bool {
    earlier.epoch < now.epoch
        || earlier.warp == now.warp
            && (earlier.lane == now.lane || earlier.clock <= seen[earlier.lane as usize])
}

impl Handover {
    pub(crate) fn start_block(&mut self, threads: usize) {
        self.phase = 0;
        self.writes.clear();
        self.writes.resize(threads, LastWrite::default());
        self.fences.clear();
        self.acquired.clear();
    }

    /// Plain writes made now are handed over with this phase.
    pub(crate) fn phase(&self) -> u8 {
        self.phase
    }

    pub(crate) fn write(&mut self, thread: u32, now: Moment) {
        self.writes[thread as usize] = LastWrite { at: now, fenced: false };
    }

    /// A thread's fence has been counted.
    pub(crate) fn fence(&mut self, thread: u32, clocks: &Clocks) {
        let fence = Fence { at: clocks.now(thread), seen: *clocks.seen(thread) };
        self.fences.insert(thread.into(), fence);
        self.writes[thread as usize].fenced = true;
        self.acquired
            .iter_mut()
            .filter(|acquire| acquire.thread == thread)
            .for_each(|acquire| acquire.fenced = true);
    }

    /// What an atomic of `thread` hands over: everything up to this phase.
    fn release(&mut self, thread: u32, clocks: &Clocks) -> Option<u8> {
        if self.fences.is_empty() {
            return None;
        }
        let mine = self.fences.get(&thread.into());
        let is_behind = |(writer, write): (usize, &LastWrite)| {
            let (now, seen) = (clocks.now(thread), clocks.seen(thread));
            if write.fenced
                && self.fences.get(&(writer as u64)).is_some_and(|own| precedes(&own.at, &now, seen))
            {
                return true;
            }
            writer != thread as usize && mine.is_some_and(|mine| precedes(&write.at, &mine.at, &mine.seen))
        };
        let mut writes = self.writes.iter().enumerate().filter(|(_, write)| write.at.epoch != 0).peekable();
        if writes.peek().is_none() {
            return self.phase.checked_sub(1);
        }
        if self.phase == u8::MAX || !writes.all(is_behind) {
            return None;
        }
        self.writes.fill(LastWrite::default());
        self.phase += 1;
        Some(self.phase - 1)
    }

    /// Whether the block has found any hand-over.
    pub(crate) fn has_acquired(&self) -> bool {
        !self.acquired.is_empty()
    }

    /// Whether `thread` comes after the hand-over of what `block` wrote in `phase`.
    pub(crate) fn is_after(
        &mut self,
        (block, phase): (u32, u8),
        thread: u32,
        clocks: &Clocks,
        announcements: &Announcements,
    ) -> bool {
        let (now, seen) = (clocks.now(thread), clocks.seen(thread));
        self.acquired.iter_mut().any(|acquire| {
            let by_itself = acquire.thread == thread;
            // The thread of the atomic needs a fence or a barrier too: its loads may otherwise run ahead. Arriving at a
            // named barrier moves its clock, and does not do.
            let passed = acquire.at.epoch < now.epoch || acquire.at.clock <= seen[acquire.at.lane as usize];
            if by_itself && !acquire.fenced && !passed || !precedes(&acquire.at, &now, seen) {
                return false;
            }
            let phases = acquire.phases.get_or_insert_with(|| {
                let mut phases = AddressMap::<u8>::default();
                let cells = announcements.lock();
                for release in cells.get(&acquire.cell).into_iter().flatten().take(acquire.count) {
                    let last = phases.entry(release.block.into()).or_default();
                    *last = (*last).max(release.phase);
                }
                phases
            });
            phases.get(&block.into()).is_some_and(|&last| phase <= last)
        })
    }

    /// Runs an atomic on the place `cell`, and notes what it hands over and what is handed to it.
    pub(crate) fn exchange<R>(
        &mut self,
        context: &Context<'_>,
        thread: u32,
        cell: u64,
        atomic: impl FnOnce() -> R,
    ) -> R {
        let Context { clocks, .. } = context;
        let announcements = &context.launch.announcements;
        // The lock keeps the order of hand-overs that of the atomics.
        let cells = announcements.is_used().then(|| announcements.lock());
        let old = atomic();
        let cells = cells.or_else(|| announcements.is_used().then(|| announcements.lock()));
        let Some(mut cells) = cells else { return old };
        let releases = cells.entry(cell).or_default();
        let count = releases.len();
        let known =
            |acquire: &Acquire| (acquire.thread, acquire.cell, acquire.count) == (thread, cell, count);
        if count > 0 && !self.acquired.iter().any(known) {
            let at = clocks.now(thread);
            let acquire = Acquire { thread, at, fenced: false, cell, count, phases: None };
            self.acquired.push(acquire);
        }
        if let Some(phase) = self.release(thread, clocks) {
            releases.push(Release { block: context.block as u32, phase });
        }
        old
    }
}
