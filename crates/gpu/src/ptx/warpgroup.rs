//! A warpgroup's products on tensor cores, which read A and B from shared memory and run on their own.
//!
//! Sums are operands of each step, the wait included, so that the compiler keeps them where they are and does not look at
//! them before.
use super::memory;
use crate::CoreMatrices;

/// Describes a matrix of panels to the tensor cores: the address of its first row, how far apart panels are, and groups of
/// eight rows, in units of 16 bytes; and the swizzle (1 for rows of 128 bytes, 2 for 64). Of the address 18 bits count: those
/// above are, in a cluster, the block's number.
#[inline(always)]
const fn descriptor(address: u32, panel: u32, row: u32) -> u64 {
    let swizzle = if row == 128 { 1 } else { 2 };
    let constant = (panel as u64 >> 4) << 16 | (row as u64 * 8 >> 4) << 32 | swizzle << 62;
    (address >> 4 & 0x3fff) as u64 | constant
}

/// Describes a matrix of core matrices.
#[inline(always)]
fn cores(matrix: CoreMatrices) -> u64 {
    let distances = (matrix.leading as u64 >> 4) << 16 | (matrix.stride as u64 >> 4) << 32;
    (memory::shared_address(matrix.first.offset()) >> 4 & 0x3fff) as u64 | distances
}

/// Gives `sums` as the array of `M = L` numbers that they are.
///
/// # Safety
/// `M` is `L`.
#[inline(always)]
unsafe fn same<const L: usize, const M: usize>(sums: &mut [f32; L]) -> &mut [f32; M] {
    // SAFETY: it is the same type.
    unsafe { &mut *core::ptr::from_mut(sums).cast() }
}

/// Calls a function of the module for as many numbers as `L` says, with `sums` as the array that it takes.
macro_rules! of_size {
    ($l:ident, $sums:ident, $function:ident $(::<$pending:ident>)?, $($argument:expr),*) => {{
        const { assert!(matches!($l, 16 | 32 | 64), "N is 32, 64 or 128") }
        // SAFETY: the caller keeps the contract of `Gpu`; the arrays are of the size that L says.
        unsafe {
            match $l {
                16 => n32::$function$(::<$pending>)?(same($sums), $($argument),*),
                32 => n64::$function$(::<$pending>)?(same($sums), $($argument),*),
                _ => n128::$function$(::<$pending>)?(same($sums), $($argument),*),
            }
        }
    }};
}

/// Writes a product: name, that from core matrices, that with B column by column, and that with A in registers.
macro_rules! products {
    ($($name:ident, $cores_name:ident, $columns_name:ident, $registers_name:ident: $inner:ident, $by_columns:ident, $of_registers:ident;)*) => {$(
        /// Starts `sums += A·B`; addresses are shared-window addresses.
        ///
        /// # Safety
        /// See `Hopper::warpgroup_mma_f16`.
        #[inline(always)]
        pub(super) unsafe fn $name<const L: usize, const PANEL: u32>(sums: &mut [f32; L], a: u32, b: u32) {
            // A has one panel, whose distance to the next does not matter.
            let (a, b) = (descriptor(a, 16, 128), descriptor(b, PANEL, if L < 32 { 64 } else { 128 }));
            of_size!(L, sums, $inner, a, b);
        }

        /// Starts `sums += A·B`.
        ///
        /// # Safety
        /// See `Hopper::warpgroup_mma_f16_cores`.
        #[inline(always)]
        pub(super) unsafe fn $cores_name<const L: usize>(
            sums: &mut [f32; L],
            a: CoreMatrices,
            b: CoreMatrices,
        ) {
            let (a, b) = (cores(a), cores(b));
            of_size!(L, sums, $by_columns, a, b);
        }

        /// Starts `sums += A·B`; addresses are shared-window addresses.
        ///
        /// # Safety
        /// See `Hopper::warpgroup_mma_f16_columns`.
        #[inline(always)]
        pub(super) unsafe fn $columns_name<const L: usize>(sums: &mut [f32; L], a: u32, b: u32) {
            // Each has one panel, whose distance to the next does not matter.
            let (a, b) = (descriptor(a, 16, 128), descriptor(b, 16, 128));
            of_size!(L, sums, $by_columns, a, b);
        }

        /// Starts `sums += A·B`; B's address is a shared-window address.
        ///
        /// # Safety
        /// See `Hopper::warpgroup_mma_f16_registers`.
        #[inline(always)]
        pub(super) unsafe fn $registers_name<const L: usize, const PANEL: u32>(
            sums: &mut [f32; L],
            a: [u32; 4],
            b: u32,
        ) {
            let b = descriptor(b, PANEL, if L < 32 { 64 } else { 128 });
            of_size!(L, sums, $of_registers, a, b);
        }
    )*};
}
products! {
    mma_f16, mma_f16_cores, mma_f16_columns, mma_f16_registers: f16, f16_by_columns, f16_registers;
    mma_bf16, mma_bf16_cores, mma_bf16_columns, mma_bf16_registers: bf16, bf16_by_columns, bf16_registers;
}

/// Starts `sums += A·B`; B's address is a shared-window address.
///
/// # Safety
/// See `Hopper::warpgroup_mma_tf32_registers`.
#[inline(always)]
pub(super) unsafe fn mma_tf32_registers<const L: usize>(sums: &mut [f32; L], a: [f32; 4], b: u32) {
    // B has one panel, whose distance to the next does not matter.
    let (a, b) = (a.map(f32::to_bits), descriptor(b, 16, 128));
    of_size!(L, sums, tf32_registers, a, b);
}

/// Waits until at most `PENDING` groups of products are under way.
#[inline(always)]
pub(super) fn wait<const PENDING: u32, const L: usize>(sums: &mut [f32; L]) {
    of_size!(L, sums, wait::<PENDING>,);
}

/// Writes a product: name, type, whether B lies row by row, and what `sized` knows.
macro_rules! product {
    ($name:ident, $type:literal, $rows:literal, $l:literal, $n:literal, $d:literal, $a:literal, $b:literal, [$($i:literal)*]) => {
        #[inline(always)]
        pub(super) unsafe fn $name(d: &mut [f32; $l], a: u64, b: u64) {
            // SAFETY: the caller keeps the contract of `Gpu`.
            unsafe {
                asm!(concat!("wgmma.mma_async.sync.aligned.m64n", $n, "k16.f32.", $type, ".", $type, " ", $d, ", ", $a, ", ", $b, ", 1, 1, 1, 0, ", $rows, ";"),
                    $(inout(reg32) d[$i],)* in(reg64) a, in(reg64) b, options(nostack));
            }
        }
    };
}

/// The same with A in registers: also what follows N in the instruction's name, and whether B lies row by row, if that is said.
macro_rules! register_product {
    ($name:ident, $kind:literal, $rows:literal, $l:literal, $n:literal, $d:literal, $a:literal, $b:literal, [$($i:literal)*]) => {
        #[inline(always)]
        pub(super) unsafe fn $name(d: &mut [f32; $l], a: [u32; 4], b: u64) {
            // SAFETY: the caller keeps the contract of `Gpu`.
            unsafe {
                asm!(concat!("wgmma.mma_async.sync.aligned.m64n", $n, $kind, " ", $d, ", ", $a, ", ", $b, ", 1, 1, 1", $rows, ";"),
                    $(inout(reg32) d[$i],)* in(reg32) a[0], in(reg32) a[1], in(reg32) a[2], in(reg32) a[3], in(reg64) b,
                    options(nostack));
            }
        }
    };
}

/// Writes the products and the wait for one number of sums: module, their number, N, their places, the places after them, and those of
/// A in registers and what is after it.
macro_rules! sized {
    ($name:ident, $l:literal, $n:literal, $d:literal, $a:literal, $b:literal, $four:literal, $fifth:literal, [$($i:literal)*]) => {
        mod $name {
            use core::arch::asm;
            product!(f16, "f16", 1, $l, $n, $d, $a, $b, [$($i)*]);
            product!(bf16, "bf16", 1, $l, $n, $d, $a, $b, [$($i)*]);
            product!(f16_by_columns, "f16", 0, $l, $n, $d, $a, $b, [$($i)*]);
            product!(bf16_by_columns, "bf16", 0, $l, $n, $d, $a, $b, [$($i)*]);
            register_product!(f16_registers, "k16.f32.f16.f16", ", 1", $l, $n, $d, $four, $fifth, [$($i)*]);
            register_product!(bf16_registers, "k16.f32.bf16.bf16", ", 1", $l, $n, $d, $four, $fifth, [$($i)*]);
            register_product!(tf32_registers, "k8.f32.tf32.tf32", "", $l, $n, $d, $four, $fifth, [$($i)*]);
            #[inline(always)]
            pub(super) fn wait<const PENDING: u32>(d: &mut [f32; $l]) {
                // SAFETY: the trait's contract puts the whole warpgroup here.
                unsafe {
                    asm!(concat!("wgmma.wait_group.sync.aligned {", $l, "}; // ", $d),
                        $(inout(reg32) d[$i],)* const PENDING, options(nostack));
                }
            }
        }
    };
}
sized!(n32, 16, 32, "{{{0},{1},{2},{3},{4},{5},{6},{7},{8},{9},{10},{11},{12},{13},{14},{15}}}", "{16}", "{17}", "{{{16},{17},{18},{19}}}", "{20}", [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]);
sized!(n64, 32, 64, "{{{0},{1},{2},{3},{4},{5},{6},{7},{8},{9},{10},{11},{12},{13},{14},{15},{16},{17},{18},{19},{20},{21},{22},{23},{24},{25},{26},{27},{28},{29},{30},{31}}}", "{32}", "{33}", "{{{32},{33},{34},{35}}}", "{36}", [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31]);
sized!(n128, 64, 128, "{{{0},{1},{2},{3},{4},{5},{6},{7},{8},{9},{10},{11},{12},{13},{14},{15},{16},{17},{18},{19},{20},{21},{22},{23},{24},{25},{26},{27},{28},{29},{30},{31},{32},{33},{34},{35},{36},{37},{38},{39},{40},{41},{42},{43},{44},{45},{46},{47},{48},{49},{50},{51},{52},{53},{54},{55},{56},{57},{58},{59},{60},{61},{62},{63}}}", "{64}", "{65}", "{{{64},{65},{66},{67}}}", "{68}", [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63]);
