//! LLVM's intrinsics for what Rust has no name for.

unsafe extern "C" {
    #[link_name = "llvm.nvvm.read.ptx.sreg.laneid"]
    pub(super) fn lane_id() -> u32;

    #[link_name = "llvm.nvvm.barrier.cta.sync.aligned.all"]
    pub(super) fn barrier(barrier: u32);
    #[link_name = "llvm.nvvm.barrier.cta.red.or.aligned.all"]
    pub(super) fn barrier_or(barrier: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.barrier.cta.red.popc.aligned.all"]
    pub(super) fn barrier_count(barrier: u32, predicate: bool) -> u32;
    #[link_name = "llvm.nvvm.barrier.cta.sync.aligned.count"]
    pub(super) fn barrier_sync(barrier: u32, threads: u32);
    #[link_name = "llvm.nvvm.barrier.cta.arrive.aligned.count"]
    pub(super) fn barrier_arrive(barrier: u32, threads: u32);
    #[link_name = "llvm.nvvm.barrier.cluster.arrive.aligned"]
    pub(super) fn cluster_arrive();
    #[link_name = "llvm.nvvm.barrier.cluster.arrive.relaxed.aligned"]
    pub(super) fn cluster_arrive_relaxed();
    #[link_name = "llvm.nvvm.barrier.cluster.wait.aligned"]
    pub(super) fn cluster_wait();
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    pub(super) fn barrier_warp(mask: u32);
    #[link_name = "llvm.nvvm.membar.gl"]
    pub(super) fn membar_gl();

    #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
    pub(super) fn shuffle_idx(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.down.i32"]
    pub(super) fn shuffle_down(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.up.i32"]
    pub(super) fn shuffle_up(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
    pub(super) fn shuffle_xor(mask: u32, value: u32, lanes: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.vote.all.sync"]
    pub(super) fn vote_all(mask: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.vote.any.sync"]
    pub(super) fn vote_any(mask: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.vote.ballot.sync"]
    pub(super) fn vote_ballot(mask: u32, predicate: bool) -> u32;

    #[link_name = "llvm.fma.f32"]
    pub(super) fn fma(a: f32, b: f32, c: f32) -> f32;
}
