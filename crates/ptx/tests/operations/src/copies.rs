//! Loads, stores and asynchronous copies of every width, by every route.
//!
//! One block of 64 threads copies a region of 1 KiB for each type, the thread's elements at the thread's place.
//! Routes through shared memory swap the places of neighbours. Such a launch needs [`BYTES`] of shared memory.
use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, Scalar, SharedPtr, TensorMap};

/// Bytes from one region to the next: 64 threads of 16 bytes.
const REGION: u32 = 1024;

/// A way from input to output.
pub trait Route<G: Gpu> {
    /// Copies what lies `own` bytes from the start; `other` is the same place of the neighbouring thread.
    ///
    /// # Safety
    /// Both places lie in both buffers, and in shared memory.
    unsafe fn copy<T: Scalar, const N: usize>(
        gpu: G,
        out: GlobalMut<u32>,
        input: GlobalPtr<u32>,
        own: u32,
        other: u32,
    );
}

/// `own` or `other` of the output, as a `T`.
#[inline(always)]
fn at<T>(out: GlobalMut<u32>, bytes: u32) -> GlobalMut<T> {
    GlobalMut::from_address(out.add_bytes(bytes.into()).address())
}

/// The same of the input.
#[inline(always)]
fn from<T>(input: GlobalPtr<u32>, bytes: u32) -> GlobalPtr<T> {
    GlobalPtr::from_address(input.add_bytes(bytes.into()).address())
}

macro_rules! routes {
    ($($(#[$doc:meta])* $name:ident: |$gpu:ident, $out:ident, $input:ident, $own:ident, $other:ident| $copy:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl<G: Gpu> Route<G> for $name {
            #[inline(always)]
            unsafe fn copy<T: Scalar, const N: usize>(
                $gpu: G,
                $out: GlobalMut<u32>,
                $input: GlobalPtr<u32>,
                $own: u32,
                $other: u32,
            ) {
                // SAFETY: passed on to the caller.
                unsafe { $copy }
            }
        }
    )*};
}
routes! {
    /// Plain loads, from what the kernel has written itself.
    Global: |gpu, out, input, own, _other| {
        gpu.store(at::<T>(out, own), gpu.load_readonly::<T, N>(from(input, own)));
        let value = gpu.load::<T, N>(at(out, own));
        gpu.store(at::<T>(out, own), value)
    };
    /// The read-only path.
    ReadOnly: |gpu, out, input, own, _other| {
        gpu.store(at::<T>(out, own), gpu.load_readonly::<T, N>(from(input, own)))
    };
    /// The same, of what was brought to L1 before, by way of the thread's place in shared memory.
    Brought: |gpu, out, input, own, _other| {
        gpu.prefetch_l1::<u32>(SharedPtr::from_offset(own & !3), from(input, own & !3));
        gpu.store(at::<T>(out, own), gpu.load_readonly::<T, N>(from(input, own)))
    };
    /// Both streaming hints.
    Streaming: |gpu, out, input, own, _other| {
        gpu.store_streaming(at::<T>(out, own), gpu.load_streaming::<T, N>(from(input, own)))
    };
    /// Through shared memory.
    Shared: |gpu, out, input, own, other| {
        gpu.shared_store(SharedPtr::<T>::from_offset(own), gpu.load_readonly::<T, N>(from(input, own)));
        gpu.sync_threads();
        gpu.store(at::<T>(out, own), gpu.shared_load::<T, N>(SharedPtr::from_offset(other)))
    };
    /// Through shared memory, without passing through registers on the way in.
    Async: |gpu, out, input, own, other| {
        gpu.copy_async::<T, N>(SharedPtr::from_offset(own), from(input, own));
        gpu.copy_async_commit();
        gpu.copy_async_wait::<0>();
        gpu.sync_threads();
        gpu.store(at::<T>(out, own), gpu.shared_load::<T, N>(SharedPtr::from_offset(other)))
    };
    /// The same, with zeros in place of what every third lane would copy.
    AsyncOrZero: |gpu, out, input, own, other| {
        let valid = gpu.lane_id() % 3 != 0;
        gpu.copy_async_or_zero::<T, N>(SharedPtr::from_offset(own), from(input, own), valid);
        gpu.copy_async_commit();
        gpu.copy_async_wait::<0>();
        gpu.sync_threads();
        gpu.store(at::<T>(out, own), gpu.shared_load::<T, N>(SharedPtr::from_offset(other)))
    };
}

macro_rules! copies {
    ($route:ty, $gpu:ident, $out:ident, $input:ident: $($region:literal $t:ty, $n:literal;)*) => {$({
        let (thread, bytes) = ($gpu.thread_idx_x(), size_of::<[$t; $n]>() as u32);
        let start = $region * REGION;
        // SAFETY: the regions lie in the buffers, says the caller.
        unsafe {
            <$route>::copy::<$t, $n>($gpu, $out, $input, start + thread * bytes, start + (thread ^ 1) * bytes)
        }
    })*};
}

/// Every type by one route: 17 regions.
///
/// # Safety
/// The launch is as said; both buffers hold 17 KiB.
pub unsafe fn all<R: Route<G>, G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<u32>) {
    copies! { R, gpu, out, input:
        0 u8, 1; 1 u8, 2; 2 u8, 4; 3 u8, 8;
        4 u16, 1; 5 u16, 2; 6 u16, 4; 7 u16, 8;
        8 u32, 1; 9 u32, 2; 10 u32, 4;
        11 i32, 1;
        12 f32, 1; 13 f32, 2; 14 f32, 4;
        15 u64, 1; 16 u64, 2;
    }
}

/// Asynchronous copies of each width, and two groups under way at once: 9 regions.
///
/// # Safety
/// The launch is as said; both buffers hold 9 KiB.
pub unsafe fn asynchronous<G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<u32>) {
    copies! { Async, gpu, out, input:
        0 u8, 4; 1 u16, 4; 2 u32, 1; 3 f32, 2; 4 f32, 4; 5 u64, 1; 6 u64, 2;
    }
    let place = |region: u32, thread: u32| region * REGION + 16 * thread;
    let (thread, other) = (gpu.thread_idx_x(), gpu.thread_idx_x() ^ 1);
    // SAFETY: the regions lie in the buffers; a wait and a barrier stand before each read.
    unsafe {
        for region in [7, 8] {
            let own = place(region, thread);
            gpu.copy_async::<f32, 4>(SharedPtr::from_offset(own), from(input, own));
            gpu.copy_async_commit();
        }
        gpu.copy_async_wait::<1>();
        gpu.sync_threads();
        let first = gpu.shared_load::<f32, 4>(SharedPtr::from_offset(place(7, other)));
        gpu.store(at(out, place(7, thread)), first);
        gpu.copy_async_wait::<0>();
        gpu.sync_threads();
        let second = gpu.shared_load::<f32, 4>(SharedPtr::from_offset(place(8, other)));
        gpu.store(at(out, place(8, thread)), second);
    }
}

/// Asynchronous copies of each width, some of them of zeros: 3 regions.
///
/// # Safety
/// The launch is as said; both buffers hold 3 KiB.
pub unsafe fn asynchronous_or_zero<G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<u32>) {
    copies! { AsyncOrZero, gpu, out, input:
        0 u16, 2; 1 f32, 2; 2 u64, 2;
    }
}

/// A box of 8 rows of 32 columns, by the map at `input`, to `out`, a word a thread and row of boxes. One warp, with 1032 bytes of shared
/// memory.
///
/// # Safety
/// The launch and the buffers are as said.
pub unsafe fn bulk<G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<u32>) {
    let map = TensorMap::at(input.address());
    let barrier = SharedPtr::from_offset(REGION);
    gpu.bulk_prefetch(&map);
    // SAFETY: the barrier has a place of its own; the box, of 512 bytes, has landed when it is read.
    unsafe {
        gpu.bulk_barrier_init(barrier);
        gpu.bulk_expect(barrier, 512);
        gpu.bulk_copy(SharedPtr::from_offset(0), &map, [0, 8, 0], barrier);
        gpu.bulk_wait(barrier, 0);
        for i in 0..4 {
            let word = i * 32 + gpu.lane_id();
            let value: [u32; 1] = gpu.shared_load(SharedPtr::from_offset(4 * word));
            gpu.store(out.add(word as usize), value);
        }
    }
}
