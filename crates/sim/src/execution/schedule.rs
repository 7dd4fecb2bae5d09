//! Which threads of a block can run, and what the others wait for.
use crate::report::site::SiteId;
use crate::synchronisation::call::{BarrierCall, WarpCall};
use crate::synchronisation::named::NamedCall;

/// What a thread is at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum State {
    Ready,
    Warp(WarpCall),
    Barrier(BarrierCall),
    /// Its warp has come to a named barrier, and others have not.
    Named(NamedCall, SiteId),
    /// Its warp waits at the cluster's barrier.
    Cluster(SiteId),
    Exited,
}

/// The states of a block's threads.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    states: Vec<State>,
    results: Vec<u32>,
    live: Vec<u32>,
    ready: Vec<u32>,
}

impl Schedule {
    pub(crate) fn start(&mut self, threads: usize) {
        self.states.clear();
        self.states.resize(threads, State::Ready);
        self.results.clear();
        self.results.resize(threads, 0);
        self.live.clear();
        self.live.extend((0..threads.div_ceil(32)).map(|warp| match threads - warp * 32 {
            lanes @ 0..32 => (1 << lanes) - 1,
            _ => u32::MAX,
        }));
        self.ready.clone_from(&self.live);
    }

    pub(crate) fn warps(&self) -> usize {
        self.live.len()
    }

    /// Lanes of a warp that have not exited.
    #[inline]
    pub(crate) fn live(&self, warp: usize) -> u32 {
        self.live[warp]
    }

    /// Lanes of a warp that can run.
    pub(crate) fn ready(&self, warp: usize) -> u32 {
        self.ready[warp]
    }

    /// Whether any thread can run.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.iter().any(|&ready| ready != 0)
    }

    /// Whether any thread waits for other blocks of its cluster.
    pub(crate) fn waits_for_cluster(&self) -> bool {
        self.states.iter().any(|state| matches!(state, State::Cluster(_)))
    }

    pub(crate) fn states(&self) -> &[State] {
        &self.states
    }

    /// The warp operation at which a lane waits.
    pub(crate) fn warp_call(&self, warp: usize, lane: u32) -> Option<WarpCall> {
        match self.states.get(warp * 32 + lane as usize) {
            Some(&State::Warp(call)) => Some(call),
            _ => None,
        }
    }

    /// The lanes of `mask` that wait at the same warp operation as `call`.
    pub(crate) fn meeting(&self, warp: usize, mask: u32, call: &WarpCall) -> u32 {
        let states = self.states[warp * 32..].iter().take(32).enumerate();
        states.fold(0, |bits, (lane, state)| match state {
            State::Warp(other) if mask >> lane & 1 != 0 && other.meets(call) => bits | 1 << lane,
            _ => bits,
        })
    }

    /// The lanes of a warp that wait at what `is_it` accepts.
    pub(crate) fn waiting(&self, warp: usize, is_it: impl Fn(&State) -> bool) -> u32 {
        let waits = |lane: &u32| self.states.get(warp * 32 + *lane as usize).is_some_and(&is_it);
        lanes(u32::MAX).filter(waits).fold(0, |bits, lane| bits | 1 << lane)
    }

    /// What a thread's last operation gave.
    pub(crate) fn result(&self, thread: u32) -> u32 {
        self.results[thread as usize]
    }

    /// A thread starts to wait.
    pub(crate) fn wait(&mut self, thread: u32, state: State) {
        self.states[thread as usize] = state;
        self.ready[thread as usize / 32] &= !(1 << (thread % 32));
    }

    /// A thread's wait is over.
    pub(crate) fn wake(&mut self, thread: usize, result: u32) {
        self.states[thread] = State::Ready;
        self.results[thread] = result;
        self.ready[thread / 32] |= 1 << (thread % 32);
    }

    /// The waits of these lanes of a warp are over; they give nothing.
    pub(crate) fn wake_lanes(&mut self, warp: usize, mask: u32) {
        lanes(mask).for_each(|lane| self.wake(warp * 32 + lane as usize, 0));
    }

    pub(crate) fn exit(&mut self, thread: u32) {
        self.wait(thread, State::Exited);
        self.live[thread as usize / 32] &= !(1 << (thread % 32));
    }
}

/// The lanes of a mask, lowest first.
pub(crate) fn lanes(mask: u32) -> Lanes {
    Lanes(mask)
}

/// The lanes that are left of a mask.
#[derive(Clone)]
pub(crate) struct Lanes(u32);

impl Iterator for Lanes {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let lane = self.0.trailing_zeros();
        self.0 &= self.0.wrapping_sub(1);
        (lane < u32::BITS).then_some(lane)
    }
}
