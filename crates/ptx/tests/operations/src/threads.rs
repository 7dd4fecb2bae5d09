//! Indices, barriers and the fence.
use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, SharedPtr};

use crate::results::Results;

/// Every index and dimension. For any grid and block; a row of results for each thread of the grid.
///
/// # Safety
/// `out` has the rows.
pub unsafe fn indices<G: Gpu>(gpu: G, out: GlobalMut<u32>, _: GlobalPtr<u32>) {
    let thread = (gpu.thread_idx_z() * gpu.block_dim_y() + gpu.thread_idx_y()) * gpu.block_dim_x()
        + gpu.thread_idx_x();
    let block =
        (gpu.block_idx_z() * gpu.grid_dim_y() + gpu.block_idx_y()) * gpu.grid_dim_x() + gpu.block_idx_x();
    let threads = gpu.block_dim_x() * gpu.block_dim_y() * gpu.block_dim_z();
    let mut results = Results::of(gpu, out, block * threads + thread);
    // SAFETY: passed on to the caller.
    unsafe {
        results.put(gpu.thread_idx_x());
        results.put(gpu.thread_idx_y());
        results.put(gpu.thread_idx_z());
        results.put(gpu.block_idx_x());
        results.put(gpu.block_idx_y());
        results.put(gpu.block_idx_z());
        results.put(gpu.block_dim_x());
        results.put(gpu.block_dim_y());
        results.put(gpu.block_dim_z());
        results.put(gpu.grid_dim_x());
        results.put(gpu.grid_dim_y());
        results.put(gpu.grid_dim_z());
        results.put(gpu.lane_id());
    }
}

/// Values that cross a barrier through shared memory, and the predicates that barriers gather. One block of 64
/// threads, a word of input each; 256 bytes of shared memory.
///
/// # Safety
/// The launch and the buffers are as said.
pub unsafe fn barriers<G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<u32>) {
    let thread = gpu.thread_idx_x();
    let shared = SharedPtr::<u32>::from_offset(0);
    let mut results = Results::of(gpu, out, thread);
    // SAFETY: indices are below 64; a barrier stands between accesses of different threads to one word.
    unsafe {
        let [word] = gpu.load_readonly::<u32, 1>(input.add(thread as usize));
        gpu.shared_store(shared.add(thread), [word]);
        gpu.sync_threads();
        let [opposite] = gpu.shared_load::<u32, 1>(shared.add(63 - thread));
        results.put(opposite);

        results.put(u32::from(gpu.sync_threads_or(thread == 37 && word != 0)));
        results.put(u32::from(gpu.sync_threads_or(word == 0)));
        results.put(gpu.sync_threads_count(word & 1 == 1));

        gpu.shared_store(shared.add(thread), [word + 1]);
        gpu.sync_warp(FULL_WARP);
        let [neighbour] = gpu.shared_load::<u32, 1>(shared.add(thread ^ 1));
        results.put(neighbour);
    }
}

/// A value that goes from one warp to another and back. One block of 64 threads, a word of input each for the first 32;
/// 256 bytes of shared memory.
///
/// # Safety
/// The launch and the buffers are as said.
pub unsafe fn named_barriers<G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<u32>) {
    let (thread, lane) = (gpu.thread_idx_x(), gpu.lane_id());
    let (there, back) = (SharedPtr::<u32>::from_offset(0), SharedPtr::<u32>::from_offset(128));
    let mut results = Results::of(gpu, out, thread);
    // SAFETY: indices are below 32; each array is written before the barrier at which its reader waits.
    unsafe {
        if thread < 32 {
            gpu.shared_store(there.add(lane), gpu.load_readonly::<u32, 1>(input.add(lane as usize)));
            gpu.barrier_arrive(1, 64);
            gpu.barrier_sync(2, 64);
            let [word] = gpu.shared_load::<u32, 1>(back.add(31 - lane));
            results.put(word);
        } else {
            gpu.barrier_sync(1, 64);
            let [word] = gpu.shared_load::<u32, 1>(there.add(lane ^ 1));
            gpu.shared_store(back.add(lane), [word + 1]);
            gpu.barrier_arrive(2, 64);
            results.put(word);
        }
    }
}

/// The block that finishes last adds up what all have written: out[0] counts blocks and begins as 0, out[1] gets
/// the sum, and block `i` writes `input[i]` to `out[2 + i]`. Blocks of one thread.
///
/// # Safety
/// `input` has a word a block, `out` two more.
pub unsafe fn fence<G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<u32>) {
    let block = gpu.block_idx_x() as usize;
    // SAFETY: each block writes its own word; the last one reads them after the fence of each.
    unsafe {
        gpu.store(out.add(2 + block), gpu.load_readonly::<u32, 1>(input.add(block)));
        gpu.thread_fence();
        if gpu.atomic_add(out, 1) + 1 == gpu.grid_dim_x() {
            gpu.thread_fence();
            let mut sum = 0;
            for i in 0..gpu.grid_dim_x() as usize {
                let [word] = gpu.load::<u32, 1>(out.add(2 + i));
                sum += word;
            }
            gpu.store(out.add(1), [sum]);
        }
    }
}

/// Copies a word a thread, once the launch before has ended.
///
/// # Safety
/// `input` and `out` have a word a thread.
pub unsafe fn wait<G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<u32>) {
    let thread = gpu.thread_idx_x() as usize;
    gpu.grid_dependency_wait();
    // SAFETY: each thread has its own word.
    unsafe { gpu.store(out.add(thread), gpu.load_readonly::<u32, 1>(input.add(thread))) }
}

/// Words that go to the next block, and what came from the one before. One cluster of two blocks of 32 threads, with 128 bytes of
/// shared memory each; a row of results for each thread.
///
/// # Safety
/// The launch and the buffers are as said.
pub unsafe fn cluster<G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<u32>) {
    let (thread, block) = (gpu.thread_idx_x(), gpu.block_idx_x());
    let place = SharedPtr::<u32>::from_offset(0).add(thread);
    let mut results = Results::of(gpu, out, block * 32 + thread);
    // SAFETY: indices are below 64; each word of shared memory has one thread of the other block, and barriers of the cluster
    // stand before and after its store.
    unsafe {
        gpu.cluster_arrive_relaxed();
        let [word] = gpu.load_readonly::<u32, 1>(input.add((block * 32 + thread) as usize));
        gpu.cluster_wait();
        gpu.cluster_store(block ^ 1, place, [word]);
        gpu.cluster_arrive();
        gpu.cluster_wait();
        let [other] = gpu.shared_load::<u32, 1>(place);
        results.put(other);
    }
}
