//! A kernel whose barriers must survive the compiler.
#![no_std]
#![feature(abi_ptx)]

use lacuna_gpu::{GlobalMut, Gpu, Ptx};

/// A barrier of the block and one of the warp, each between two branches on the same condition: the shape that jump
/// threading turns into two barriers.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn canary(out: u64, split: u32) {
    let out = GlobalMut::<u32>::from_address(out);
    let thread = Ptx.thread_idx_x();
    let lower = thread < split;
    let (from, to) = if lower { (out.add(32), out) } else { (out, out.add(32)) };
    // SAFETY: nobody launches it.
    unsafe {
        if lower {
            Ptx.store(to.add(thread as usize), [thread]);
        }
        Ptx.sync_threads();
        if lower {
            let [x] = Ptx.load::<u32, 1>(from.add(thread as usize));
            Ptx.store(to.add(thread as usize), [x + 1]);
        } else {
            Ptx.store(to.add(thread as usize), [7]);
        }
        Ptx.sync_warp(u32::MAX);
        if lower {
            let [x] = Ptx.load::<u32, 1>(from.add(thread as usize));
            Ptx.store(to.add(thread as usize + 64), [x]);
        }
    }
}

/// A second entry, that old targets leave out.
#[cfg(lacuna_sm = "80")]
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn only_new(out: u64) {
    // SAFETY: nobody launches it.
    unsafe { Ptx.store(GlobalMut::from_address(out), [1_u32]) }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    Ptx::trap()
}
