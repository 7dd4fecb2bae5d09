//! The pipeline of stages: who waits for whom.
//!
//! Stage `s` has barrier `1 + s`, *full*, at which its consumers wait and its producers arrive when their copies have
//! landed, and `1 + STAGES + s`, *empty*, the other way round.
use lacuna_gpu::Gpu;

/// One side's place in the pipeline.
pub struct Pipeline<const STAGES: u32> {
    /// The stage it is at.
    pub stage: u32,
    step: u32,
    steps: u32,
    /// Threads that use a stage, the consumers and one group: all of them come to each of its barriers.
    threads: u32,
    /// Stages whose copies a producer leaves under way.
    ahead: u32,
    /// Steps from one of this side's to its next.
    stride: u32,
    /// Whether tensor cores read stages by themselves, past the threads' own view of them.
    proxy: bool,
}

impl<const STAGES: u32> Pipeline<STAGES> {
    #[inline(always)]
    pub(in crate::spmm) fn new(steps: u32, threads: u32) -> Self {
        Self { stage: 0, step: 0, steps, threads, ahead: STAGES - 2, stride: 1, proxy: false }
    }

    /// The same for group `group` of `GROUPS` of producers, which take steps in turn. With more than one, none leaves copies
    /// under way: the others' steps are time enough.
    ///
    /// A stage is always the same group's: nothing orders two groups at one *empty* barrier, and the later could take the place
    /// of the earlier, and of its step.
    #[inline(always)]
    pub(in crate::spmm) fn of_group<const GROUPS: u32>(self, group: u32) -> Self {
        const { assert!(STAGES >= 3 && STAGES <= 7, "two stages are in use at least; there are 15 barriers") }
        const { assert!(STAGES.is_multiple_of(GROUPS), "a stage is one group's") }
        let ahead = if GROUPS == 1 { self.ahead } else { 0 };
        Self { stage: group, step: group, ahead, stride: GROUPS, ..self }
    }

    /// The same for stages that tensor cores read by themselves.
    #[inline(always)]
    pub(in crate::spmm) fn for_tensor_cores(self) -> Self {
        Self { proxy: true, ..self }
    }

    #[inline(always)]
    pub(in crate::spmm) fn is_done(&self) -> bool {
        self.step >= self.steps
    }

    /// The stages that this side will use, in their order: for what can be done to them before the first step.
    #[inline(always)]
    pub(in crate::spmm) fn stages(&self) -> impl Iterator<Item = u32> {
        let used = if self.steps < STAGES { self.steps } else { STAGES };
        (self.stage..used).step_by(self.stride as usize)
    }

    /// Whether the stage is filled for the first time.
    #[inline(always)]
    pub(in crate::spmm) fn is_first(&self) -> bool {
        self.step < STAGES
    }

    #[inline(always)]
    fn advance(&mut self) {
        let stage = self.stage + self.stride;
        self.stage = if stage >= STAGES { stage - STAGES } else { stage };
        self.step += self.stride;
    }

    /// A producer waits until the stage may be written.
    #[inline(always)]
    pub(in crate::spmm) fn wait_empty<G: Gpu>(&self, gpu: G) {
        if !self.is_first() {
            gpu.barrier_sync(1 + STAGES + self.stage, self.threads);
        }
    }

    /// A producer has started all copies of the stage. The one `ahead` before has landed now: it is full.
    #[inline(always)]
    pub(in crate::spmm) fn started<G: Gpu>(&mut self, gpu: G) {
        gpu.copy_async_commit();
        if self.step >= self.ahead {
            match self.ahead {
                0 => gpu.copy_async_wait::<0>(),
                1 => gpu.copy_async_wait::<1>(),
                2 => gpu.copy_async_wait::<2>(),
                3 => gpu.copy_async_wait::<3>(),
                4 => gpu.copy_async_wait::<4>(),
                _ => gpu.copy_async_wait::<5>(),
            }
            let landed = if self.stage >= self.ahead { self.stage } else { self.stage + STAGES } - self.ahead;
            self.publish(gpu);
            gpu.barrier_arrive(1 + landed, self.threads);
        }
        self.advance();
    }

    /// A producer has no more to start: what is under way lands.
    #[inline(always)]
    pub(in crate::spmm) fn drain<G: Gpu>(&self, gpu: G) {
        gpu.copy_async_wait::<0>();
        self.publish(gpu);
        let mut left = if self.steps < self.ahead { self.steps } else { self.ahead };
        while left > 0 {
            let landed = if self.stage >= left { self.stage } else { self.stage + STAGES } - left;
            gpu.barrier_arrive(1 + landed, self.threads);
            left -= 1;
        }
    }

    #[inline(always)]
    fn publish<G: Gpu>(&self, gpu: G) {
        if self.proxy {
            gpu.fence_async_proxy();
        }
    }

    /// A consumer waits until the stage may be read.
    #[inline(always)]
    pub(in crate::spmm) fn wait_full<G: Gpu>(&self, gpu: G) {
        gpu.barrier_sync(1 + self.stage, self.threads);
    }

    /// A consumer goes on to the next stage, once it is full. After the last step it stays where it is.
    #[inline(always)]
    pub(in crate::spmm) fn next<G: Gpu>(&mut self, gpu: G) {
        let stage = self.stage;
        self.advance();
        self.wait_or_stay(gpu, stage);
    }

    /// As [`next`](Self::next), with the first stage named as the one after the last: with three stages the compiler may not find
    /// that out, and tiles of `f32` then take a register more. Tiles of 16-bit values take four fewer the other way.
    #[inline(always)]
    pub(in crate::spmm) fn next_or_first<G: Gpu>(&mut self, gpu: G) {
        let stage = self.stage;
        self.stage = if stage > STAGES - 2 { 0 } else { stage + 1 };
        self.step += 1;
        self.wait_or_stay(gpu, stage);
    }

    #[inline(always)]
    fn wait_or_stay<G: Gpu>(&mut self, gpu: G, stage: u32) {
        if self.is_done() {
            self.stage = stage;
        } else {
            self.wait_full(gpu);
        }
    }

    /// A consumer has read all of its stage, and goes on to the next, which need not be full.
    #[inline(always)]
    pub(in crate::spmm) fn leave<G: Gpu>(&mut self, gpu: G) {
        let stage = self.stage;
        self.advance();
        self.release(gpu, stage);
    }

    /// A consumer, gone on to the next stage, has read all of `stage`, the one before.
    #[inline(always)]
    pub(in crate::spmm) fn release<G: Gpu>(&self, gpu: G, stage: u32) {
        // A stage that is never filled again has nobody waiting.
        if self.step + STAGES <= self.steps {
            gpu.barrier_arrive(1 + STAGES + stage, self.threads);
        }
    }
}
