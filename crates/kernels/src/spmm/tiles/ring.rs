//! The ring of stages: who waits for whom.
//!
//! Stage `s` has barrier `1 + s`, *full*, at which its consumers wait and its producers arrive when their copies have
//! landed, and `1 + STAGES + s`, *empty*, the other way round.
use lacuna_gpu::Gpu;

/// One side's place in the ring.
pub(super) struct Ring<const STAGES: u32> {
    /// The stage it is at.
    pub stage: u32,
    step: u32,
    steps: u32,
    /// Threads of the block: all of them come to each barrier.
    threads: u32,
}

impl<const STAGES: u32> Ring<STAGES> {
    /// Stages whose copies a producer leaves under way.
    const AHEAD: u32 = STAGES - 2;

    #[inline(always)]
    pub(super) fn new(steps: u32, threads: u32) -> Self {
        Self { stage: 0, step: 0, steps, threads }
    }

    #[inline(always)]
    pub(super) fn is_done(&self) -> bool {
        self.step >= self.steps
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.stage = if self.stage + 1 == STAGES { 0 } else { self.stage + 1 };
        self.step += 1;
    }

    /// A producer waits until the stage may be written.
    #[inline(always)]
    pub(super) fn wait_empty<G: Gpu>(&self, gpu: G) {
        if self.step >= STAGES {
            gpu.barrier_sync(1 + STAGES + self.stage, self.threads);
        }
    }

    /// A producer has started all copies of the stage. The one [`AHEAD`](Self::AHEAD) before has landed now: it is full.
    #[inline(always)]
    pub(super) fn started<G: Gpu>(&mut self, gpu: G) {
        gpu.copy_async_commit();
        if self.step >= Self::AHEAD {
            match Self::AHEAD {
                1 => gpu.copy_async_wait::<1>(),
                2 => gpu.copy_async_wait::<2>(),
                3 => gpu.copy_async_wait::<3>(),
                4 => gpu.copy_async_wait::<4>(),
                _ => gpu.copy_async_wait::<5>(),
            }
            let landed =
                if self.stage >= Self::AHEAD { self.stage } else { self.stage + STAGES } - Self::AHEAD;
            gpu.barrier_arrive(1 + landed, self.threads);
        }
        self.advance();
    }

    /// A producer has no more to start: what is under way lands.
    #[inline(always)]
    pub(super) fn drain<G: Gpu>(&self, gpu: G) {
        gpu.copy_async_wait::<0>();
        let mut left = if self.steps < Self::AHEAD { self.steps } else { Self::AHEAD };
        while left > 0 {
            let landed = if self.stage >= left { self.stage } else { self.stage + STAGES } - left;
            gpu.barrier_arrive(1 + landed, self.threads);
            left -= 1;
        }
    }

    /// A consumer waits until the stage may be read.
    #[inline(always)]
    pub(super) fn wait_full<G: Gpu>(&self, gpu: G) {
        gpu.barrier_sync(1 + self.stage, self.threads);
    }

    /// A consumer goes on to the next stage, once it is full. After the last step it stays where it is.
    #[inline(always)]
    pub(super) fn next<G: Gpu>(&mut self, gpu: G) {
        let stage = self.stage;
        self.advance();
        if self.is_done() {
            self.stage = stage;
        } else {
            self.wait_full(gpu);
        }
    }

    /// A consumer, gone on to the next stage, has read all of `stage`, the one before.
    #[inline(always)]
    pub(super) fn release<G: Gpu>(&self, gpu: G, stage: u32) {
        // A stage that is never filled again has nobody waiting.
        if self.step + STAGES <= self.steps {
            gpu.barrier_arrive(1 + STAGES + stage, self.threads);
        }
    }
}
