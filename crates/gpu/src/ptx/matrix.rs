//! Tensor cores. A warp must come to these together; the assembly is volatile, so that it is not moved into a branch.
use core::arch::asm;

/// Writes a product: name, instruction, words of A.
macro_rules! products {
    ($($name:ident: $op:literal;)*) => {$(
        /// `A·B + C` on a warp's tile.
        #[inline(always)]
        pub(super) fn $name(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
            let [mut d0, mut d1, mut d2, mut d3] = c;
            // SAFETY: arithmetic; the trait's contract puts the whole warp here.
            unsafe {
                asm!(concat!($op, " {{{0},{1},{2},{3}}}, {{{4},{5},{6},{7}}}, {{{8},{9}}}, {{{0},{1},{2},{3}}};"),
                    inout(reg32) d0, inout(reg32) d1, inout(reg32) d2, inout(reg32) d3,
                    in(reg32) a[0], in(reg32) a[1], in(reg32) a[2], in(reg32) a[3],
                    in(reg32) b[0], in(reg32) b[1], options(nomem, nostack));
            }
            [d0, d1, d2, d3]
        }
    )*};
}
products! {
    mma_tf32: "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32";
    mma_f16: "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";
    mma_bf16: "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32";
}

/// Writes a load of four matrices: name, instruction.
macro_rules! loads {
    ($($name:ident: $op:literal;)*) => {$(
        /// Loads four 8×8 matrices; the address is a shared-window address.
        ///
        /// # Safety
        /// See [`Gpu::shared_load_matrices`](crate::Gpu::shared_load_matrices).
        #[inline(always)]
        pub unsafe fn $name(from: u32) -> [u32; 4] {
            let (x, y, z, w);
            // SAFETY: the caller keeps the contract of `Gpu`.
            unsafe {
                asm!(concat!($op, " {{{0},{1},{2},{3}}}, [{4}];"), out(reg32) x, out(reg32) y, out(reg32) z,
                    out(reg32) w, in(reg32) from, options(nostack, readonly));
            }
            [x, y, z, w]
        }
    )*};
}
loads! {
    load_matrices: "ldmatrix.sync.aligned.m8n8.x4.shared.b16";
    load_transposed_matrices: "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16";
}
