//! Kernels that between them use every method of `Gpu`, and whose results can be told beforehand.
//!
//! Every entry takes the address of its output and that of its input. Bodies are generic over `Gpu`, as kernels
//! are; the list below makes the device's entries of them.
#![no_std]
#![feature(abi_ptx)]

mod arithmetic;
mod atomics;
mod copies;
mod matrices;
mod results;
mod threads;
mod warpgroups;
mod warps;

use lacuna_gpu::{GlobalMut, GlobalPtr, Ptx};

macro_rules! entries {
    ($($(#[$meta:meta])* $name:ident: $body:expr;)*) => {$(
        $(#[$meta])*
        #[unsafe(no_mangle)]
        pub unsafe extern "ptx-kernel" fn $name(out: u64, input: u64) {
            // SAFETY: passed on to the launch.
            unsafe { $body(Ptx, GlobalMut::from_address(out), GlobalPtr::from_address(input)) }
        }
    )*};
}
entries! {
    indices: threads::indices;
    barriers: threads::barriers;
    named_barriers: threads::named_barriers;
    fence: threads::fence;
    #[cfg(lacuna_sm = "90")]
    wait: threads::wait;
    #[cfg(lacuna_sm = "90")]
    cluster: threads::cluster;
    shuffles: warps::shuffles;
    votes: warps::votes;
    copies_global: copies::all::<copies::Global, Ptx>;
    copies_readonly: copies::all::<copies::ReadOnly, Ptx>;
    copies_streaming: copies::all::<copies::Streaming, Ptx>;
    copies_shared: copies::all::<copies::Shared, Ptx>;
    #[cfg(lacuna_sm = "80")]
    copies_brought: copies::all::<copies::Brought, Ptx>;
    #[cfg(lacuna_sm = "80")]
    copies_async: copies::asynchronous;
    #[cfg(lacuna_sm = "80")]
    copies_async_or_zero: copies::asynchronous_or_zero;
    #[cfg(lacuna_sm = "90")]
    copies_bulk: copies::bulk;
    #[cfg(lacuna_sm = "80")]
    products: matrices::products;
    #[cfg(lacuna_sm = "80")]
    matrices: matrices::loads;
    #[cfg(lacuna_sm = "90")]
    products_f16_32: warpgroups::products::<16, false, Ptx>;
    #[cfg(lacuna_sm = "90")]
    products_f16_64: warpgroups::products::<32, false, Ptx>;
    #[cfg(lacuna_sm = "90")]
    products_f16_128: warpgroups::products::<64, false, Ptx>;
    #[cfg(lacuna_sm = "90")]
    products_bf16_32: warpgroups::products::<16, true, Ptx>;
    #[cfg(lacuna_sm = "90")]
    products_bf16_64: warpgroups::products::<32, true, Ptx>;
    #[cfg(lacuna_sm = "90")]
    products_bf16_128: warpgroups::products::<64, true, Ptx>;
    #[cfg(lacuna_sm = "90")]
    products_f16_cores_64: warpgroups::products_of_cores::<32, false, Ptx>;
    #[cfg(lacuna_sm = "90")]
    products_bf16_cores_32: warpgroups::products_of_cores::<16, true, Ptx>;
    #[cfg(lacuna_sm = "90")]
    products_bf16_cores_64: warpgroups::products_of_cores::<32, true, Ptx>;
    #[cfg(lacuna_sm = "90")]
    products_bf16_cores_128: warpgroups::products_of_cores::<64, true, Ptx>;
    #[cfg(lacuna_sm = "90")]
    registers: warpgroups::registers;
    #[cfg(lacuna_sm = "90")]
    products_f16_columns_64: warpgroups::products_of_columns::<32, false, Ptx>;
    #[cfg(lacuna_sm = "90")]
    products_bf16_columns_128: warpgroups::products_of_columns::<64, true, Ptx>;
    #[cfg(lacuna_sm = "90")]
    products_f16_registers_32: warpgroups::products_of_registers::<16, false, Ptx>;
    #[cfg(lacuna_sm = "90")]
    products_f16_registers_64: warpgroups::products_of_registers::<32, false, Ptx>;
    #[cfg(lacuna_sm = "90")]
    products_bf16_registers_128: warpgroups::products_of_registers::<64, true, Ptx>;
    #[cfg(lacuna_sm = "90")]
    products_tf32_registers_32: warpgroups::products_of_singles::<16, Ptx>;
    #[cfg(lacuna_sm = "90")]
    products_tf32_registers_128: warpgroups::products_of_singles::<64, Ptx>;
    atomics_global: atomics::global;
    atomics_shared: atomics::all::<atomics::Shared, Ptx>;
    arithmetic: arithmetic::all;
    #[cfg(lacuna_sm = "80")]
    packed: arithmetic::packed;
    #[cfg(lacuna_sm = "80")]
    greatest: arithmetic::greatest;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    Ptx::trap()
}
