//! The pipeline of stages: who waits for whom.
//!
//! Stage `s` has barrier `1 + s`, *full*, at which its consumers wait and its producers arrive when their copies have
//! landed, and `1 + STAGES + s`, *empty*, the other way round.
use core::marker::PhantomData;

use lacuna_gpu::Gpu;

/// The stages of a kernel, and who fills them.
pub trait Stages: Copy + 'static {
    /// Chunks of a step along K: what a stage holds.
    const CHUNKS: u32;
    /// Groups of producer warps, which take stages in turn.
    const GROUPS: u32;
    /// Warps of a group.
    const WARPS: u32;
    /// Stages of shared memory.
    const STAGES: u32;
}

/// [`Stages`] of these numbers.
#[derive(Clone, Copy, Debug)]
pub struct StagesOf<const CHUNKS: u32, const GROUPS: u32, const WARPS: u32, const STAGES: u32>;

impl<const CHUNKS: u32, const GROUPS: u32, const WARPS: u32, const STAGES: u32> Stages
    for StagesOf<CHUNKS, GROUPS, WARPS, STAGES>
{
    const CHUNKS: u32 = CHUNKS;
    const GROUPS: u32 = GROUPS;
    const WARPS: u32 = WARPS;
    const STAGES: u32 = STAGES;
}

/// One side's place in the pipeline.
pub struct Pipeline<S> {
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
    of: PhantomData<S>,
}

impl<S: Stages> Pipeline<S> {
    #[inline(always)]
    pub(in crate::spmm) fn new(steps: u32, threads: u32) -> Self {
        Self {
            stage: 0,
            step: 0,
            steps,
            threads,
            ahead: S::STAGES - 2,
            stride: 1,
            proxy: false,
            of: PhantomData,
        }
    }

    /// The same for group `group` of the producers. With more than one, none leaves copies under way: the others' steps are time
    /// enough.
    ///
    /// A stage is always the same group's: nothing orders two groups at one *empty* barrier, and the later could take the place
    /// of the earlier, and of its step.
    #[inline(always)]
    pub(in crate::spmm) fn of_group(self, group: u32) -> Self {
        const {
            assert!(
                S::STAGES >= 2 && S::STAGES <= 7,
                "one stage is filled while one is read; there are 15 barriers"
            )
        }
        const { assert!(S::STAGES.is_multiple_of(S::GROUPS), "a stage is one group's") }
        let ahead = if S::GROUPS == 1 { self.ahead } else { 0 };
        Self { stage: group, step: group, ahead, stride: S::GROUPS, ..self }
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
        let used = if self.steps < S::STAGES { self.steps } else { S::STAGES };
        (self.stage..used).step_by(self.stride as usize)
    }

    /// Whether the stage is filled for the first time.
    #[inline(always)]
    pub(in crate::spmm) fn is_first(&self) -> bool {
        self.step < S::STAGES
    }

    /// How often its stage has been filled before.
    #[inline(always)]
    pub(in crate::spmm) fn turn(&self) -> u32 {
        self.step / S::STAGES
    }

    #[inline(always)]
    fn advance(&mut self) {
        let stage = self.stage + self.stride;
        self.stage = if stage >= S::STAGES { stage - S::STAGES } else { stage };
        self.step += self.stride;
    }

    /// A producer waits until the stage may be written.
    #[inline(always)]
    pub(in crate::spmm) fn wait_empty<G: Gpu>(&self, gpu: G) {
        if !self.is_first() {
            gpu.barrier_sync(1 + S::STAGES + self.stage, self.threads);
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
            let landed =
                if self.stage >= self.ahead { self.stage } else { self.stage + S::STAGES } - self.ahead;
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
            let landed = if self.stage >= left { self.stage } else { self.stage + S::STAGES } - left;
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

    /// As [`next`](Self::next), for tiles of `f32`: of three stages, the first is named as the one after the last. The compiler
    /// may not find that out, and some tiles then take a register more. Those of 16-bit values take four fewer the other way.
    #[inline(always)]
    pub(in crate::spmm) fn next_or_first<G: Gpu>(&mut self, gpu: G) {
        let stage = self.stage;
        if S::STAGES == 3 {
            self.stage = if stage > S::STAGES - 2 { 0 } else { stage + 1 };
            self.step += 1;
        } else {
            self.advance();
        }
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
        if self.step + S::STAGES <= self.steps {
            gpu.barrier_arrive(1 + S::STAGES + stage, self.threads);
        }
    }
}
