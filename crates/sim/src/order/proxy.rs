//! The tensor cores' own way into shared memory.
//!
//! Products of a warpgroup read shared memory past the way of all other accesses. Of what a thread has written they see
//! for certain only what comes before a `fence_async_proxy` of that thread that comes before them. So each place remembers
//! when it was last written, and each thread when it fenced, on a clock that counts the writes and fences of the block.
use crate::order::clock::Moment;
use crate::order::race::Who;
use crate::report::site::SiteId;

/// A write to shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wrote {
    /// From 1; zero for none.
    pub(crate) time: u64,
    pub(crate) thread: u32,
    pub(crate) site: SiteId,
}

/// The clock, and the fences of a block.
#[derive(Debug, Default)]
pub(crate) struct Proxy {
    time: u64,
    /// Of each thread, in the order of time.
    fences: Vec<Vec<(u64, Moment)>>,
}

impl Proxy {
    pub(crate) fn start_block(&mut self) {
        self.time = 0;
        self.fences.iter_mut().for_each(Vec::clear);
    }

    pub(crate) fn time(&self) -> u64 {
        self.time
    }

    /// The present write.
    #[inline]
    pub(crate) fn write(&mut self, who: &Who<'_>) -> Wrote {
        self.time += 1;
        Wrote { time: self.time, thread: who.now.thread(), site: who.site }
    }

    /// A write by another block, which no fence of this one makes visible.
    pub(crate) fn foreign_write(&mut self, site: SiteId) -> Wrote {
        self.time += 1;
        Wrote { time: self.time, thread: u32::MAX, site }
    }

    pub(crate) fn fence(&mut self, thread: u32, now: Moment) {
        self.time += 1;
        let thread = thread as usize;
        if self.fences.len() <= thread {
            self.fences.resize_with(thread + 1, Vec::new);
        }
        self.fences[thread].push((self.time, now));
    }

    /// Whether no fence of the writing thread lies between the write and the present access.
    pub(crate) fn is_unfenced(&self, wrote: &Wrote, who: &Who<'_>) -> bool {
        let fences = self.fences.get(wrote.thread as usize).map_or(&[][..], Vec::as_slice);
        let first = fences.partition_point(|&(time, _)| time < wrote.time);
        wrote.time != 0 && fences.get(first).is_none_or(|(_, at)| !who.comes_after(at))
    }
}
