//! Loads, stores and atomics: one instruction of the width that the type asks for.
use core::arch::{asm, global_asm};
use core::mem::transmute_copy;

use crate::{AtomicBits, AtomicKind, AtomicOp, Scalar};

// The block's dynamic shared memory, laid out by each kernel's config. Swizzled panels of products are the strictest in
// where they begin.
global_asm!(".extern .shared .align 1024 .b8 lacuna_shared[];");

/// The shared-window address of a byte offset.
#[inline(always)]
pub(super) fn shared_address(offset: u32) -> u32 {
    let base: u32;
    // SAFETY: takes the address of a module variable.
    unsafe { asm!("mov.u32 {0}, lacuna_shared;", out(reg32) base, options(pure, nomem, nostack)) };
    base.wrapping_add(offset)
}

/// The address, for the whole cluster, of what lies at `address` in the shared memory of its block `block`.
#[inline(always)]
pub(super) fn cluster_address(address: u32, block: u32) -> u32 {
    let mapped: u32;
    // SAFETY: computes an address.
    unsafe {
        asm!("mapa.shared::cluster.u32 {0}, {1}, {2};", out(reg32) mapped, in(reg32) address, in(reg32) block,
            options(pure, nomem, nostack));
    }
    mapped
}

/// Writes the load functions: name, instruction, kind of its address, what the compiler may assume.
macro_rules! loads {
    ($($visible:vis $name:ident: $op:literal, $address:ty, $reg:ident, [$($opt:ident),*];)*) => {$(
        #[doc = concat!("`", $op, "` of 1 to 16 bytes, from an address of that space.")]
        ///
        /// # Safety
        /// See [`Gpu`](crate::Gpu), for the bytes at the address.
        #[inline(always)]
        $visible unsafe fn $name<T: Scalar, const N: usize>(from: $address) -> [T; N] {
            const { assert!(matches!(size_of::<[T; N]>(), 1 | 2 | 4 | 8 | 16), "1, 2, 4, 8 or 16 bytes") }
            // SAFETY: the caller keeps the contract of `Gpu`; the copies are of equal size, and every bit
            // pattern of a `Scalar` is valid.
            unsafe {
                match size_of::<[T; N]>() {
                    1 => {
                        let x: u16;
                        asm!(concat!($op, ".u8 {0}, [{1}];"), out(reg16) x, in($reg) from, options(nostack $(, $opt)*));
                        transmute_copy(&(x as u8))
                    }
                    2 => {
                        let x: u16;
                        asm!(concat!($op, ".u16 {0}, [{1}];"), out(reg16) x, in($reg) from, options(nostack $(, $opt)*));
                        transmute_copy(&x)
                    }
                    4 => {
                        let x: u32;
                        asm!(concat!($op, ".u32 {0}, [{1}];"), out(reg32) x, in($reg) from, options(nostack $(, $opt)*));
                        transmute_copy(&x)
                    }
                    8 => {
                        let (x, y): (u32, u32);
                        asm!(concat!($op, ".v2.u32 {{{0},{1}}}, [{2}];"), out(reg32) x, out(reg32) y,
                            in($reg) from, options(nostack $(, $opt)*));
                        transmute_copy(&[x, y])
                    }
                    _ => {
                        let (x, y, z, w): (u32, u32, u32, u32);
                        asm!(concat!($op, ".v4.u32 {{{0},{1},{2},{3}}}, [{4}];"), out(reg32) x, out(reg32) y,
                            out(reg32) z, out(reg32) w, in($reg) from, options(nostack $(, $opt)*));
                        transmute_copy(&[x, y, z, w])
                    }
                }
            }
        }
    )*};
}
loads! {
    pub(super) load: "ld.global", u64, reg64, [readonly];
    pub(super) load_readonly: "ld.global.nc", u64, reg64, [pure, nomem];
    pub(super) load_streaming: "ld.global.nc.L1::no_allocate", u64, reg64, [pure, nomem];
    pub shared_load: "ld.shared", u32, reg32, [readonly];
}

/// Writes the store functions: name, instruction, kind of its address.
macro_rules! stores {
    ($($visible:vis $name:ident: $op:literal, $address:ty, $reg:ident;)*) => {$(
        #[doc = concat!("`", $op, "` of 1 to 16 bytes, to an address of that space.")]
        ///
        /// # Safety
        /// See [`Gpu`](crate::Gpu), for the bytes at the address.
        #[inline(always)]
        $visible unsafe fn $name<T: Scalar, const N: usize>(to: $address, value: [T; N]) {
            const { assert!(matches!(size_of::<[T; N]>(), 1 | 2 | 4 | 8 | 16), "1, 2, 4, 8 or 16 bytes") }
            // SAFETY: the caller keeps the contract of `Gpu`; the copies are of equal size.
            unsafe {
                match size_of::<[T; N]>() {
                    1 => {
                        let x: u8 = transmute_copy(&value);
                        asm!(concat!($op, ".u8 [{1}], {0};"), in(reg16) x as u16, in($reg) to, options(nostack));
                    }
                    2 => {
                        let x: u16 = transmute_copy(&value);
                        asm!(concat!($op, ".u16 [{1}], {0};"), in(reg16) x, in($reg) to, options(nostack));
                    }
                    4 => {
                        let x: u32 = transmute_copy(&value);
                        asm!(concat!($op, ".u32 [{1}], {0};"), in(reg32) x, in($reg) to, options(nostack));
                    }
                    8 => {
                        let [x, y]: [u32; 2] = transmute_copy(&value);
                        asm!(concat!($op, ".v2.u32 [{2}], {{{0},{1}}};"), in(reg32) x, in(reg32) y,
                            in($reg) to, options(nostack));
                    }
                    _ => {
                        let [x, y, z, w]: [u32; 4] = transmute_copy(&value);
                        asm!(concat!($op, ".v4.u32 [{4}], {{{0},{1},{2},{3}}};"), in(reg32) x, in(reg32) y,
                            in(reg32) z, in(reg32) w, in($reg) to, options(nostack));
                    }
                }
            }
        }
    )*};
}
stores! {
    pub(super) store: "st.global", u64, reg64;
    pub(super) store_streaming: "st.global.cs", u64, reg64;
    pub shared_store: "st.shared", u32, reg32;
    pub(super) cluster_store: "st.shared::cluster", u32, reg32;
}

/// Starts a copy of `N` elements to a shared-window address.
///
/// # Safety
/// See [`Gpu::copy_async`](crate::Gpu::copy_async).
#[inline(always)]
pub unsafe fn copy_async<T: Scalar, const N: usize>(to: u32, from: u64) {
    const { assert!(matches!(size_of::<[T; N]>(), 4 | 8 | 16), "4, 8 or 16 bytes") }
    // SAFETY: the caller keeps the contract of `Gpu`.
    unsafe {
        match size_of::<[T; N]>() {
            4 => {
                asm!("cp.async.ca.shared.global [{0}], [{1}], 4;", in(reg32) to, in(reg64) from, options(nostack))
            }
            8 => {
                asm!("cp.async.ca.shared.global [{0}], [{1}], 8;", in(reg32) to, in(reg64) from, options(nostack))
            }
            _ => {
                asm!("cp.async.cg.shared.global [{0}], [{1}], 16;", in(reg32) to, in(reg64) from, options(nostack))
            }
        }
    }
}

/// As [`copy_async`], or starts writing zeros.
///
/// # Safety
/// See [`Gpu::copy_async_or_zero`](crate::Gpu::copy_async_or_zero).
#[inline(always)]
pub unsafe fn copy_async_or_zero<T: Scalar, const N: usize>(to: u32, from: u64, valid: bool) {
    const { assert!(matches!(size_of::<[T; N]>(), 4 | 8 | 16), "4, 8 or 16 bytes") }
    // Bytes to read; what is left of the width becomes zero.
    let bytes = if valid { size_of::<[T; N]>() as u32 } else { 0 };
    // SAFETY: the caller keeps the contract of `Gpu`.
    unsafe {
        match size_of::<[T; N]>() {
            4 => asm!("cp.async.ca.shared.global [{0}], [{1}], 4, {2};", in(reg32) to, in(reg64) from,
                in(reg32) bytes, options(nostack)),
            8 => asm!("cp.async.ca.shared.global [{0}], [{1}], 8, {2};", in(reg32) to, in(reg64) from,
                in(reg32) bytes, options(nostack)),
            _ => asm!("cp.async.cg.shared.global [{0}], [{1}], 16, {2};", in(reg32) to, in(reg64) from,
                in(reg32) bytes, options(nostack)),
        }
    }
}

/// Writes an atomic on one address space.
macro_rules! atomics {
    ($($name:ident: $space:literal, $address:ty, $reg:ident;)*) => {$(
        #[inline(always)]
        pub(super) unsafe fn $name<T: AtomicBits>(op: AtomicOp, to: $address, value: T) -> T {
            macro_rules! narrow {
                ($suffix:literal) => {{
                    let old: u32;
                    asm!(concat!("atom.", $space, ".", $suffix, " {0}, [{1}], {2};"), out(reg32) old,
                        in($reg) to, in(reg32) transmute_copy::<T, u32>(&value), options(nostack));
                    transmute_copy(&old)
                }};
            }
            macro_rules! wide {
                ($suffix:literal) => {{
                    let old: u64;
                    asm!(concat!("atom.", $space, ".", $suffix, " {0}, [{1}], {2};"), out(reg64) old,
                        in($reg) to, in(reg64) transmute_copy::<T, u64>(&value), options(nostack));
                    transmute_copy(&old)
                }};
            }
            // SAFETY: the caller keeps the contract of `Gpu`; `KIND` tells the type's size.
            unsafe {
                match (op, T::KIND) {
                    (AtomicOp::Add, AtomicKind::U32 | AtomicKind::I32) => narrow!("add.u32"),
                    (AtomicOp::Add, AtomicKind::F32) => narrow!("add.f32"),
                    (AtomicOp::Add, AtomicKind::U64) => wide!("add.u64"),
                    (AtomicOp::Max, AtomicKind::U32) => narrow!("max.u32"),
                    (AtomicOp::Max, AtomicKind::I32) => narrow!("max.s32"),
                    (AtomicOp::Max, AtomicKind::U64) => wide!("max.u64"),
                    (AtomicOp::Max, AtomicKind::F32) => unreachable!(),
                    (AtomicOp::Or, AtomicKind::U32 | AtomicKind::I32 | AtomicKind::F32) => narrow!("or.b32"),
                    (AtomicOp::Or, AtomicKind::U64) => wide!("or.b64"),
                }
            }
        }
    )*};
}
atomics! {
    atomic: "global", u64, reg64;
    shared_atomic: "shared", u32, reg32;
}
