//! The entry points of the PTX module, one for each line of the list.
use core::arch::asm;

use lacuna_gpu::{Gpu, Ptx};

use crate::Kernel;

/// Functions without names of their own, in constants without names: what they are called in the PTX is all that counts.
macro_rules! entry_points {
    ($($op:ident { $($(#[$attribute:meta])* { $($name:expr => $kernel:ty;)+ })+ })+) => {$($(
        $(#[$attribute])*
        const _: () = {$(
            const _: () = {
                #[unsafe(export_name = $name)]
                pub unsafe extern "ptx-kernel" fn entry(args: <$kernel as Kernel>::Args) {
                    #[cfg(lacuna_sm = "90")]
                    if <$kernel as Kernel>::LAUNCHES_DEPENDENTS {
                        Ptx::launch_dependents();
                    }
                    if !<$kernel as Kernel>::EARLY_PROLOGUE {
                        Ptx.grid_dependency_wait();
                    }
                    if <$kernel as Kernel>::HOLDS_SHARED_ADDRESS {
                        Ptx::hold_shared_address();
                    }
                    let args = if <$kernel as Kernel>::HAS_MAP {
                        let place: u64;
                        // SAFETY: takes the generic address of the parameter, by the name that LLVM gives it.
                        unsafe {
                            asm!(concat!("mov.u64 {0}, ", $name, "_param_0;"), "cvta.param.u64 {0}, {0};", out(reg64) place,
                                options(pure, nomem, nostack));
                        }
                        <$kernel as Kernel>::with_map_at(args, place)
                    } else {
                        args
                    };
                    // SAFETY: whoever launches keeps the kernel's contract, as `Kernel::run` states it.
                    unsafe { <$kernel as Kernel>::run(Ptx, args) }
                }
            };
        )+};
    )+)+};
}
crate::for_each_kernel!(entry_points);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    Ptx::trap()
}
