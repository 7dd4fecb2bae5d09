//! Atomics of every type, on one cell that all threads share and on one of each thread's own.
//!
//! One block of 64 threads. Each operation has a region of 2 KiB in input and output, in slots of 8 bytes:
//!
//! ```text
//!   slot     0              1 … 64             128 … 191             192 … 255
//!   input    shared cell    own cells          operand of a thread
//!   output   shared cell    own cells          old value: shared     old value: own
//! ```
use lacuna_gpu::{AtomicAdd, AtomicMax, GlobalMut, GlobalPtr, Gpu, Scalar, SharedPtr};

/// Bytes from one region to the next.
const REGION: u32 = 2048;
/// Bytes from one slot to the next.
const SLOT: u32 = 8;

/// The memory that the atomics work on; `at` counts bytes from the start of the output.
pub trait Space<G: Gpu> {
    /// Gives a cell its first value.
    ///
    /// # Safety
    /// As for `Gpu::store`.
    unsafe fn set<T: Scalar>(gpu: G, out: GlobalMut<u32>, at: u32, value: T);
    /// Reads a cell.
    ///
    /// # Safety
    /// As for `Gpu::load`.
    unsafe fn get<T: Scalar>(gpu: G, out: GlobalMut<u32>, at: u32) -> T;
    /// Adds.
    ///
    /// # Safety
    /// As for `Gpu::atomic_add`.
    unsafe fn add<T: AtomicAdd>(gpu: G, out: GlobalMut<u32>, at: u32, value: T) -> T;
    /// Raises.
    ///
    /// # Safety
    /// As for `Gpu::atomic_max`.
    unsafe fn max<T: AtomicMax>(gpu: G, out: GlobalMut<u32>, at: u32, value: T) -> T;
}

/// A place of the output, as a `T`.
#[inline(always)]
fn place<T>(out: GlobalMut<u32>, at: u32) -> GlobalMut<T> {
    GlobalMut::from_address(out.add_bytes(at.into()).address())
}

macro_rules! spaces {
    ($($(#[$doc:meta])* $name:ident: |$out:ident, $at:ident| $place:expr,
        $store:ident, $load:ident, $add:ident, $max:ident;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl<G: Gpu> Space<G> for $name {
            #[inline(always)]
            unsafe fn set<T: Scalar>(gpu: G, $out: GlobalMut<u32>, $at: u32, value: T) {
                // SAFETY: passed on to the caller.
                unsafe { gpu.$store($place, [value]) }
            }
            #[inline(always)]
            unsafe fn get<T: Scalar>(gpu: G, $out: GlobalMut<u32>, $at: u32) -> T {
                // SAFETY: passed on to the caller.
                let [value] = unsafe { gpu.$load::<T, 1>($place) };
                value
            }
            #[inline(always)]
            unsafe fn add<T: AtomicAdd>(gpu: G, $out: GlobalMut<u32>, $at: u32, value: T) -> T {
                // SAFETY: passed on to the caller.
                unsafe { gpu.$add($place, value) }
            }
            #[inline(always)]
            unsafe fn max<T: AtomicMax>(gpu: G, $out: GlobalMut<u32>, $at: u32, value: T) -> T {
                // SAFETY: passed on to the caller.
                unsafe { gpu.$max($place, value) }
            }
        }
    )*};
}
spaces! {
    /// Global memory: the output itself.
    Global: |out, at| place(out, at), store, load, atomic_add, atomic_max;
    /// Shared memory, laid out as the output.
    Shared: |_out, at| SharedPtr::from_offset(at), shared_store, shared_load, shared_atomic_add, shared_atomic_max;
}

impl Global {
    /// Sets bits, as global memory alone can.
    ///
    /// # Safety
    /// As for `Gpu::atomic_or`.
    #[inline(always)]
    unsafe fn or(gpu: impl Gpu, out: GlobalMut<u32>, at: u32, value: u32) -> u32 {
        // SAFETY: passed on to the caller.
        unsafe { gpu.atomic_or(place(out, at), value) }
    }
}

macro_rules! regions {
    ($space:ty, $gpu:ident, $out:ident, $input:ident: $($region:literal $op:ident $t:ty;)*) => {$({
        let thread = $gpu.thread_idx_x();
        let slot = |slot: u32| $region * REGION + slot * SLOT;
        let (one, own) = (slot(0), slot(1 + thread));
        // SAFETY: the regions lie in the buffers, says the caller; barriers stand between atomics and the rest.
        unsafe {
            let given = |at: u32| {
                let [value] = $gpu.load_readonly::<$t, 1>(GlobalPtr::from_address($input.add_bytes(at.into()).address()));
                value
            };
            if thread == 0 {
                <$space>::set::<$t>($gpu, $out, one, given(one));
            }
            <$space>::set::<$t>($gpu, $out, own, given(own));
            $gpu.sync_threads();
            let operand = given(slot(128 + thread));
            let old_one = <$space>::$op($gpu, $out, one, operand);
            let old_own = <$space>::$op($gpu, $out, own, operand);
            $gpu.sync_threads();
            let (now_one, now_own) = (<$space>::get::<$t>($gpu, $out, one), <$space>::get::<$t>($gpu, $out, own));
            $gpu.sync_threads();
            if thread == 0 {
                $gpu.store(place($out, one), [now_one]);
            }
            $gpu.store(place($out, own), [now_own]);
            $gpu.store(place($out, slot(128 + thread)), [old_one]);
            $gpu.store(place($out, slot(192 + thread)), [old_own]);
        }
    })*};
}

/// Every operation that both spaces have, in one of them: 7 regions.
///
/// # Safety
/// The launch is as said; both buffers, and shared memory if that is the space, hold 14 KiB.
pub unsafe fn all<S: Space<G>, G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<u32>) {
    regions! { S, gpu, out, input:
        0 add u32; 1 add i32; 2 add u64; 3 add f32; 4 max u32; 5 max i32; 6 max u64;
    }
}

/// Every operation in global memory: those of both spaces, and one region for what shared memory lacks.
///
/// # Safety
/// The launch is as said; both buffers hold 16 KiB.
pub unsafe fn global<G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<u32>) {
    // SAFETY: passed on to the caller.
    unsafe { all::<Global, G>(gpu, out, input) }
    regions! { Global, gpu, out, input: 7 or u32; }
}
