//! The list of entry points. Everything that must know them all is made from it.

/// Calls `$callback!` with the whole list: `operation { name: kernel; … } …`.
///
/// The name is the entry point's in the PTX; the kernel is a type that implements
/// [`Kernel`](crate::Kernel). Attributes before a name are the PTX entry point's: `#[cfg(lacuna_sm = "80")]` keeps it out
/// of older targets, as its kernel's `MIN_SM` says. An operation is a module of this crate that defines `Tile`.
#[macro_export]
macro_rules! for_each_kernel {
    ($($callback:ident)::+) => {
        $($callback)::+! {
            attention {
                // Type of values, of indices (where not u32), elements a lane, lanes, vectors a lane, keys: see attention/rows.rs.
                attention_f32_v4_l8_c1: $crate::attention::Rows<f32, u32, 4, 8, 1, 8>;
                attention_f32_v4_l8_c2: $crate::attention::Rows<f32, u32, 4, 8, 2, 8>;
                attention_f32_v4_l16_c2: $crate::attention::Rows<f32, u32, 4, 16, 2, 4>;
                attention_f32_v4_l32_c2: $crate::attention::Rows<f32, u32, 4, 32, 2, 4>;
                attention_f32_v1_l32_c1: $crate::attention::Rows<f32, u32, 1, 32, 1, 8>;
                attention_f32_v1_l32_c2: $crate::attention::Rows<f32, u32, 1, 32, 2, 8>;
                attention_f32_v1_l32_c8: $crate::attention::Rows<f32, u32, 1, 32, 8, 4>;
                attention_f16_v8_l4_c1: $crate::attention::Rows<$crate::F16, u32, 8, 4, 1, 4>;
                attention_f16_v8_l8_c1: $crate::attention::Rows<$crate::F16, u32, 8, 8, 1, 4>;
                attention_f16_v8_l8_c2: $crate::attention::Rows<$crate::F16, u32, 8, 8, 2, 2>;
                attention_f16_v8_l16_c2: $crate::attention::Rows<$crate::F16, u32, 8, 16, 2, 2>;
                attention_f16_v1_l32_c1: $crate::attention::Rows<$crate::F16, u32, 1, 32, 1, 8>;
                attention_f16_v1_l32_c2: $crate::attention::Rows<$crate::F16, u32, 1, 32, 2, 8>;
                attention_f16_v1_l32_c8: $crate::attention::Rows<$crate::F16, u32, 1, 32, 8, 4>;
                attention_bf16_v8_l4_c1: $crate::attention::Rows<$crate::Bf16, u32, 8, 4, 1, 4>;
                attention_bf16_v8_l8_c1: $crate::attention::Rows<$crate::Bf16, u32, 8, 8, 1, 4>;
                attention_bf16_v8_l8_c2: $crate::attention::Rows<$crate::Bf16, u32, 8, 8, 2, 2>;
                attention_bf16_v8_l16_c2: $crate::attention::Rows<$crate::Bf16, u32, 8, 16, 2, 2>;
                attention_bf16_v1_l32_c1: $crate::attention::Rows<$crate::Bf16, u32, 1, 32, 1, 8>;
                attention_bf16_v1_l32_c2: $crate::attention::Rows<$crate::Bf16, u32, 1, 32, 2, 8>;
                attention_bf16_v1_l32_c8: $crate::attention::Rows<$crate::Bf16, u32, 1, 32, 8, 4>;
                attention_f32_u16_v4_l8_c1: $crate::attention::Rows<f32, u16, 4, 8, 1, 8>;
                attention_f32_u16_v4_l8_c2: $crate::attention::Rows<f32, u16, 4, 8, 2, 8>;
                attention_f32_u16_v4_l16_c2: $crate::attention::Rows<f32, u16, 4, 16, 2, 4>;
                attention_f32_u16_v4_l32_c2: $crate::attention::Rows<f32, u16, 4, 32, 2, 4>;
                attention_f32_u16_v1_l32_c1: $crate::attention::Rows<f32, u16, 1, 32, 1, 8>;
                attention_f32_u16_v1_l32_c2: $crate::attention::Rows<f32, u16, 1, 32, 2, 8>;
                attention_f32_u16_v1_l32_c8: $crate::attention::Rows<f32, u16, 1, 32, 8, 4>;
                attention_f16_u16_v8_l4_c1: $crate::attention::Rows<$crate::F16, u16, 8, 4, 1, 4>;
                attention_f16_u16_v8_l8_c1: $crate::attention::Rows<$crate::F16, u16, 8, 8, 1, 4>;
                attention_f16_u16_v8_l8_c2: $crate::attention::Rows<$crate::F16, u16, 8, 8, 2, 2>;
                attention_f16_u16_v8_l16_c2: $crate::attention::Rows<$crate::F16, u16, 8, 16, 2, 2>;
                attention_f16_u16_v1_l32_c1: $crate::attention::Rows<$crate::F16, u16, 1, 32, 1, 8>;
                attention_f16_u16_v1_l32_c2: $crate::attention::Rows<$crate::F16, u16, 1, 32, 2, 8>;
                attention_f16_u16_v1_l32_c8: $crate::attention::Rows<$crate::F16, u16, 1, 32, 8, 4>;
                attention_bf16_u16_v8_l4_c1: $crate::attention::Rows<$crate::Bf16, u16, 8, 4, 1, 4>;
                attention_bf16_u16_v8_l8_c1: $crate::attention::Rows<$crate::Bf16, u16, 8, 8, 1, 4>;
                attention_bf16_u16_v8_l8_c2: $crate::attention::Rows<$crate::Bf16, u16, 8, 8, 2, 2>;
                attention_bf16_u16_v8_l16_c2: $crate::attention::Rows<$crate::Bf16, u16, 8, 16, 2, 2>;
                attention_bf16_u16_v1_l32_c1: $crate::attention::Rows<$crate::Bf16, u16, 1, 32, 1, 8>;
                attention_bf16_u16_v1_l32_c2: $crate::attention::Rows<$crate::Bf16, u16, 1, 32, 2, 8>;
                attention_bf16_u16_v1_l32_c8: $crate::attention::Rows<$crate::Bf16, u16, 1, 32, 8, 4>;

                // The same for quads of queries; keys for pairs, and warps of a block: see attention/quads.rs.
                attention_f32_quads_v4_l8_c1: $crate::attention::Quads<f32, 4, 8, 1, 4, 8, 16>;
                attention_f32_quads_v4_l8_c2: $crate::attention::Quads<f32, 4, 8, 2, 2, 4, 12>;
                attention_f32_quads_v4_l16_c2: $crate::attention::Quads<f32, 4, 16, 2, 2, 4, 8>;
                attention_f16_quads_v8_l4_c1: $crate::attention::Quads<$crate::F16, 8, 4, 1, 2, 4, 12>;
                attention_f16_quads_v8_l8_c1: $crate::attention::Quads<$crate::F16, 8, 8, 1, 2, 4, 12>;
                attention_f16_quads_v8_l8_c2: $crate::attention::Quads<$crate::F16, 8, 8, 2, 1, 2, 8>;
                attention_bf16_quads_v8_l4_c1: $crate::attention::Quads<$crate::Bf16, 8, 4, 1, 2, 4, 12>;
                attention_bf16_quads_v8_l8_c1: $crate::attention::Quads<$crate::Bf16, 8, 8, 1, 1, 2, 12>;
                attention_bf16_quads_v8_l8_c2: $crate::attention::Quads<$crate::Bf16, 8, 8, 2, 1, 2, 8>;
            }
            spmm {
                // Type of values, of indices (where not u32), columns a lane, lanes, teams, warps: see spmm/config.rs; and what
                // else, see spmm/form.rs.
                spmm_f32_v4_l32_s1_w8: $crate::spmm::RowSplit<f32, u32, 4, 32, 1, 8>;
                spmm_f32_v4_l32_s1_w32: $crate::spmm::RowSplit<f32, u32, 4, 32, 1, 32>;
                spmm_f32_v4_l16_s1_w8: $crate::spmm::RowSplit<f32, u32, 4, 16, 1, 8>;
                spmm_f32_v4_l16_s2_w8: $crate::spmm::RowSplit<f32, u32, 4, 16, 2, 8>;
                spmm_f32_v4_l8_s1_w8: $crate::spmm::RowSplit<f32, u32, 4, 8, 1, 8>;
                spmm_f32_v4_l8_s2_w8: $crate::spmm::RowSplit<f32, u32, 4, 8, 2, 8>;
                spmm_f32_v4_l8_s4_w8: $crate::spmm::RowSplit<f32, u32, 4, 8, 4, 8>;
                spmm_f32_v4_l4_s2_w8: $crate::spmm::RowSplit<f32, u32, 4, 4, 2, 8>;
                spmm_f32_v4_l4_s4_w8: $crate::spmm::RowSplit<f32, u32, 4, 4, 4, 8>;
                spmm_f32_v4_l4_s8_w8: $crate::spmm::RowSplit<f32, u32, 4, 4, 8, 8>;
                spmm_f32_v4_l2_s16_w8: $crate::spmm::RowSplit<f32, u32, 4, 2, 16, 8>;
                spmm_f32_v4_l1_s32_w8: $crate::spmm::RowSplit<f32, u32, 4, 1, 32, 8>;
                spmm_f32_v2_l32_s1_w8: $crate::spmm::RowSplit<f32, u32, 2, 32, 1, 8>;
                spmm_f32_v2_l16_s1_w8: $crate::spmm::RowSplit<f32, u32, 2, 16, 1, 8>;
                spmm_f32_v2_l8_s4_w8: $crate::spmm::RowSplit<f32, u32, 2, 8, 4, 8>;
                spmm_f32_v2_l4_s8_w8: $crate::spmm::RowSplit<f32, u32, 2, 4, 8, 8>;
                spmm_f32_v2_l1_s32_w8: $crate::spmm::RowSplit<f32, u32, 2, 1, 32, 8>;
                spmm_f32_v1_l32_s1_w8: $crate::spmm::RowSplit<f32, u32, 1, 32, 1, 8>;
                spmm_f32_v1_l16_s1_w8: $crate::spmm::RowSplit<f32, u32, 1, 16, 1, 8>;
                spmm_f32_v1_l16_s2_w8: $crate::spmm::RowSplit<f32, u32, 1, 16, 2, 8>;
                spmm_f32_v1_l8_s4_w8: $crate::spmm::RowSplit<f32, u32, 1, 8, 4, 8>;
                spmm_f32_v1_l8_s1_w8: $crate::spmm::RowSplit<f32, u32, 1, 8, 1, 8>;
                spmm_f32_v1_l4_s8_w8: $crate::spmm::RowSplit<f32, u32, 1, 4, 8, 8>;
                spmm_f32_v1_l2_s16_w8: $crate::spmm::RowSplit<f32, u32, 1, 2, 16, 8>;
                spmm_f32_v1_l1_s32_w8: $crate::spmm::RowSplit<f32, u32, 1, 1, 32, 8>;
                spmm_f32_v1_l1_s8_w8: $crate::spmm::RowSplit<f32, u32, 1, 1, 8, 8>;

                // Blocks that stay.
                spmm_f32_v4_l32_s1_w32_persistent: $crate::spmm::RowSplit<f32, u32, 4, 32, 1, 32, $crate::spmm::Persistent>;
                spmm_f32_v4_l32_s1_w24_persistent: $crate::spmm::RowSplit<f32, u32, 4, 32, 1, 24, $crate::spmm::Persistent>;
                spmm_f32_v4_l16_s1_w32_persistent: $crate::spmm::RowSplit<f32, u32, 4, 16, 1, 32, $crate::spmm::Persistent>;
                spmm_f32_v4_l16_s2_w32_persistent: $crate::spmm::RowSplit<f32, u32, 4, 16, 2, 32, $crate::spmm::Persistent>;
                spmm_f32_v4_l8_s1_w32_persistent: $crate::spmm::RowSplit<f32, u32, 4, 8, 1, 32, $crate::spmm::Persistent>;
                spmm_f32_v4_l8_s1_w24_persistent: $crate::spmm::RowSplit<f32, u32, 4, 8, 1, 24, $crate::spmm::Persistent>;
                spmm_f32_v4_l8_s2_w32_persistent: $crate::spmm::RowSplit<f32, u32, 4, 8, 2, 32, $crate::spmm::Persistent>;
                spmm_f32_v4_l8_s4_w32_persistent: $crate::spmm::RowSplit<f32, u32, 4, 8, 4, 32, $crate::spmm::Persistent>;
                spmm_f32_v4_l8_s4_w32_mixed: $crate::spmm::RowSplit<f32, u32, 4, 8, 4, 32, $crate::spmm::Mixed>;
                spmm_f32_v4_l16_s2_w32_mixed: $crate::spmm::RowSplit<f32, u32, 4, 16, 2, 32, $crate::spmm::Mixed>;

                // For A with more than 65,535 columns.
                spmm_f32_v4_l32_s1_w8_wide: $crate::spmm::RowSplit<f32, u32, 4, 32, 1, 8, $crate::spmm::Wide>;
                spmm_f32_v4_l16_s1_w8_wide: $crate::spmm::RowSplit<f32, u32, 4, 16, 1, 8, $crate::spmm::Wide>;
                spmm_f32_v4_l8_s1_w8_wide: $crate::spmm::RowSplit<f32, u32, 4, 8, 1, 8, $crate::spmm::Wide>;
                spmm_f32_v4_l8_s4_w8_wide: $crate::spmm::RowSplit<f32, u32, 4, 8, 4, 8, $crate::spmm::Wide>;
                spmm_f32_v2_l16_s1_w8_wide: $crate::spmm::RowSplit<f32, u32, 2, 16, 1, 8, $crate::spmm::Wide>;
                spmm_f32_v1_l32_s1_w8_wide: $crate::spmm::RowSplit<f32, u32, 1, 32, 1, 8, $crate::spmm::Wide>;
                spmm_f32_v1_l8_s4_w8_wide: $crate::spmm::RowSplit<f32, u32, 1, 8, 4, 8, $crate::spmm::Wide>;
                spmm_f32_v1_l1_s32_w8_wide: $crate::spmm::RowSplit<f32, u32, 1, 1, 32, 8, $crate::spmm::Wide>;

                // Other than the kernels of these shapes in one idea, for measurements.
                spmm_f32_v4_l32_s1_w8_noresidue: $crate::spmm::RowSplit<f32, u32, 4, 32, 1, 8, $crate::spmm::NoResidue>;
                spmm_f32_v4_l8_s4_w8_noresidue: $crate::spmm::RowSplit<f32, u32, 4, 8, 4, 8, $crate::spmm::NoResidue>;
                spmm_f32_v4_l32_s1_w8_prescaled: $crate::spmm::RowSplit<f32, u32, 4, 32, 1, 8, $crate::spmm::PreScaled>;
                spmm_f32_v4_l8_s4_w8_prescaled: $crate::spmm::RowSplit<f32, u32, 4, 8, 4, 8, $crate::spmm::PreScaled>;

                spmm_f16_v8_l32_s1_w8: $crate::spmm::RowSplit<$crate::F16, u32, 8, 32, 1, 8>;
                spmm_f16_v8_l16_s1_w8: $crate::spmm::RowSplit<$crate::F16, u32, 8, 16, 1, 8>;
                spmm_f16_v8_l16_s1_w32: $crate::spmm::RowSplit<$crate::F16, u32, 8, 16, 1, 32>;
                spmm_f16_v8_l16_s2_w8: $crate::spmm::RowSplit<$crate::F16, u32, 8, 16, 2, 8>;
                spmm_f16_v8_l8_s4_w8: $crate::spmm::RowSplit<$crate::F16, u32, 8, 8, 4, 8>;
                spmm_f16_v8_l4_s8_w8: $crate::spmm::RowSplit<$crate::F16, u32, 8, 4, 8, 8>;
                spmm_f16_v4_l8_s4_w8: $crate::spmm::RowSplit<$crate::F16, u32, 4, 8, 4, 8>;
                spmm_f16_v2_l16_s2_w8: $crate::spmm::RowSplit<$crate::F16, u32, 2, 16, 2, 8>;
                spmm_f16_v1_l32_s1_w8: $crate::spmm::RowSplit<$crate::F16, u32, 1, 32, 1, 8>;
                spmm_f16_v1_l8_s4_w8: $crate::spmm::RowSplit<$crate::F16, u32, 1, 8, 4, 8>;
                spmm_f16_v1_l1_s32_w8: $crate::spmm::RowSplit<$crate::F16, u32, 1, 1, 32, 8>;
                spmm_f16_v8_l16_s1_w8_wide: $crate::spmm::RowSplit<$crate::F16, u32, 8, 16, 1, 8, $crate::spmm::Wide>;
                spmm_f16_v8_l8_s4_w8_wide: $crate::spmm::RowSplit<$crate::F16, u32, 8, 8, 4, 8, $crate::spmm::Wide>;
                spmm_f16_v2_l16_s2_w8_wide: $crate::spmm::RowSplit<$crate::F16, u32, 2, 16, 2, 8, $crate::spmm::Wide>;
                spmm_f16_v1_l32_s1_w8_wide: $crate::spmm::RowSplit<$crate::F16, u32, 1, 32, 1, 8, $crate::spmm::Wide>;
                spmm_f16_v1_l1_s32_w8_wide: $crate::spmm::RowSplit<$crate::F16, u32, 1, 1, 32, 8, $crate::spmm::Wide>;

                spmm_bf16_v8_l32_s1_w8: $crate::spmm::RowSplit<$crate::Bf16, u32, 8, 32, 1, 8>;
                spmm_bf16_v8_l16_s1_w8: $crate::spmm::RowSplit<$crate::Bf16, u32, 8, 16, 1, 8>;
                spmm_bf16_v8_l16_s1_w32: $crate::spmm::RowSplit<$crate::Bf16, u32, 8, 16, 1, 32>;
                spmm_bf16_v8_l16_s2_w8: $crate::spmm::RowSplit<$crate::Bf16, u32, 8, 16, 2, 8>;
                spmm_bf16_v8_l8_s4_w8: $crate::spmm::RowSplit<$crate::Bf16, u32, 8, 8, 4, 8>;
                spmm_bf16_v8_l4_s8_w8: $crate::spmm::RowSplit<$crate::Bf16, u32, 8, 4, 8, 8>;
                spmm_bf16_v4_l8_s4_w8: $crate::spmm::RowSplit<$crate::Bf16, u32, 4, 8, 4, 8>;
                spmm_bf16_v2_l16_s2_w8: $crate::spmm::RowSplit<$crate::Bf16, u32, 2, 16, 2, 8>;
                spmm_bf16_v1_l32_s1_w8: $crate::spmm::RowSplit<$crate::Bf16, u32, 1, 32, 1, 8>;
                spmm_bf16_v1_l8_s4_w8: $crate::spmm::RowSplit<$crate::Bf16, u32, 1, 8, 4, 8>;
                spmm_bf16_v1_l1_s32_w8: $crate::spmm::RowSplit<$crate::Bf16, u32, 1, 1, 32, 8>;
                spmm_bf16_v8_l16_s1_w8_wide: $crate::spmm::RowSplit<$crate::Bf16, u32, 8, 16, 1, 8, $crate::spmm::Wide>;
                spmm_bf16_v8_l8_s4_w8_wide: $crate::spmm::RowSplit<$crate::Bf16, u32, 8, 8, 4, 8, $crate::spmm::Wide>;
                spmm_bf16_v2_l16_s2_w8_wide: $crate::spmm::RowSplit<$crate::Bf16, u32, 2, 16, 2, 8, $crate::spmm::Wide>;
                spmm_bf16_v1_l32_s1_w8_wide: $crate::spmm::RowSplit<$crate::Bf16, u32, 1, 32, 1, 8, $crate::spmm::Wide>;
                spmm_bf16_v1_l1_s32_w8_wide: $crate::spmm::RowSplit<$crate::Bf16, u32, 1, 1, 32, 8, $crate::spmm::Wide>;

                spmm_f32_u16_v4_l32_s1_w8: $crate::spmm::RowSplit<f32, u16, 4, 32, 1, 8>;
                spmm_f32_u16_v4_l32_s1_w32: $crate::spmm::RowSplit<f32, u16, 4, 32, 1, 32>;
                spmm_f32_u16_v4_l16_s1_w8: $crate::spmm::RowSplit<f32, u16, 4, 16, 1, 8>;
                spmm_f32_u16_v4_l8_s1_w8: $crate::spmm::RowSplit<f32, u16, 4, 8, 1, 8>;
                spmm_f32_u16_v4_l8_s4_w8: $crate::spmm::RowSplit<f32, u16, 4, 8, 4, 8>;
                spmm_f32_u16_v4_l4_s8_w8: $crate::spmm::RowSplit<f32, u16, 4, 4, 8, 8>;
                spmm_f32_u16_v2_l16_s1_w8: $crate::spmm::RowSplit<f32, u16, 2, 16, 1, 8>;
                spmm_f32_u16_v1_l32_s1_w8: $crate::spmm::RowSplit<f32, u16, 1, 32, 1, 8>;
                spmm_f32_u16_v1_l8_s4_w8: $crate::spmm::RowSplit<f32, u16, 1, 8, 4, 8>;
                spmm_f32_u16_v1_l1_s32_w8: $crate::spmm::RowSplit<f32, u16, 1, 1, 32, 8>;
                spmm_f32_u16_v4_l32_s1_w32_persistent: $crate::spmm::RowSplit<f32, u16, 4, 32, 1, 32, $crate::spmm::Persistent>;
                spmm_f32_u16_v4_l16_s2_w32_persistent: $crate::spmm::RowSplit<f32, u16, 4, 16, 2, 32, $crate::spmm::Persistent>;
                spmm_f32_u16_v4_l8_s4_w32_mixed: $crate::spmm::RowSplit<f32, u16, 4, 8, 4, 32, $crate::spmm::Mixed>;
                spmm_f32_u16_v4_l16_s2_w32_mixed: $crate::spmm::RowSplit<f32, u16, 4, 16, 2, 32, $crate::spmm::Mixed>;
                spmm_f32_u16_v4_l8_s1_w32_persistent: $crate::spmm::RowSplit<f32, u16, 4, 8, 1, 32, $crate::spmm::Persistent>;

                spmm_f16_u16_v8_l32_s1_w8: $crate::spmm::RowSplit<$crate::F16, u16, 8, 32, 1, 8>;
                spmm_f16_u16_v8_l16_s1_w8: $crate::spmm::RowSplit<$crate::F16, u16, 8, 16, 1, 8>;
                spmm_f16_u16_v8_l16_s1_w32: $crate::spmm::RowSplit<$crate::F16, u16, 8, 16, 1, 32>;
                spmm_f16_u16_v8_l16_s2_w8: $crate::spmm::RowSplit<$crate::F16, u16, 8, 16, 2, 8>;
                spmm_f16_u16_v8_l8_s4_w8: $crate::spmm::RowSplit<$crate::F16, u16, 8, 8, 4, 8>;
                spmm_f16_u16_v8_l4_s8_w8: $crate::spmm::RowSplit<$crate::F16, u16, 8, 4, 8, 8>;
                spmm_f16_u16_v4_l8_s4_w8: $crate::spmm::RowSplit<$crate::F16, u16, 4, 8, 4, 8>;
                spmm_f16_u16_v2_l16_s2_w8: $crate::spmm::RowSplit<$crate::F16, u16, 2, 16, 2, 8>;
                spmm_f16_u16_v1_l32_s1_w8: $crate::spmm::RowSplit<$crate::F16, u16, 1, 32, 1, 8>;
                spmm_f16_u16_v1_l8_s4_w8: $crate::spmm::RowSplit<$crate::F16, u16, 1, 8, 4, 8>;
                spmm_f16_u16_v1_l1_s32_w8: $crate::spmm::RowSplit<$crate::F16, u16, 1, 1, 32, 8>;

                spmm_bf16_u16_v8_l32_s1_w8: $crate::spmm::RowSplit<$crate::Bf16, u16, 8, 32, 1, 8>;
                spmm_bf16_u16_v8_l16_s1_w8: $crate::spmm::RowSplit<$crate::Bf16, u16, 8, 16, 1, 8>;
                spmm_bf16_u16_v8_l16_s1_w32: $crate::spmm::RowSplit<$crate::Bf16, u16, 8, 16, 1, 32>;
                spmm_bf16_u16_v8_l16_s2_w8: $crate::spmm::RowSplit<$crate::Bf16, u16, 8, 16, 2, 8>;
                spmm_bf16_u16_v8_l8_s4_w8: $crate::spmm::RowSplit<$crate::Bf16, u16, 8, 8, 4, 8>;
                spmm_bf16_u16_v8_l4_s8_w8: $crate::spmm::RowSplit<$crate::Bf16, u16, 8, 4, 8, 8>;
                spmm_bf16_u16_v4_l8_s4_w8: $crate::spmm::RowSplit<$crate::Bf16, u16, 4, 8, 4, 8>;
                spmm_bf16_u16_v2_l16_s2_w8: $crate::spmm::RowSplit<$crate::Bf16, u16, 2, 16, 2, 8>;
                spmm_bf16_u16_v1_l32_s1_w8: $crate::spmm::RowSplit<$crate::Bf16, u16, 1, 32, 1, 8>;
                spmm_bf16_u16_v1_l8_s4_w8: $crate::spmm::RowSplit<$crate::Bf16, u16, 1, 8, 4, 8>;
                spmm_bf16_u16_v1_l1_s32_w8: $crate::spmm::RowSplit<$crate::Bf16, u16, 1, 1, 32, 8>;

                // Masks of a pattern, for the tiles below.
                spmm_masks_u32: $crate::spmm::Masks<u32>;
                spmm_masks_u16: $crate::spmm::Masks<u16>;

                // Products, rows and columns of a tile, slices of a step along K: see spmm/tiles/shape.rs.
                #[cfg(lacuna_sm = "80")]
                spmm_f32_split_64x128_k2: $crate::spmm::SingleTiles<$crate::spmm::Split, 8, 2, 1, 4, 2, 1, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_f32_split_32x128_k2: $crate::spmm::SingleTiles<$crate::spmm::Split, 4, 2, 1, 4, 2, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_f32_split_64x64_k2: $crate::spmm::SingleTiles<$crate::spmm::Split, 4, 2, 2, 2, 2, 1, 4, 3>;
                #[cfg(lacuna_sm = "80")]
                spmm_f32_split_32x64_k2: $crate::spmm::SingleTiles<$crate::spmm::Split, 4, 2, 1, 2, 2, 1, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_f32_split_32x64_k4: $crate::spmm::SingleTiles<$crate::spmm::Split, 4, 2, 1, 2, 4, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_f32_split_16x64_k4: $crate::spmm::SingleTiles<$crate::spmm::Split, 2, 2, 1, 2, 4, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_f32_split_64x32_k4: $crate::spmm::SingleTiles<$crate::spmm::Split, 8, 2, 1, 1, 4, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_f32_split_32x32_k8: $crate::spmm::SingleTiles<$crate::spmm::Split, 4, 2, 1, 1, 8, 1, 8, 3>;
                #[cfg(lacuna_sm = "80")]
                spmm_f32_split_32x32_k4: $crate::spmm::SingleTiles<$crate::spmm::Split, 4, 2, 1, 1, 4, 1, 4, 3>;
                #[cfg(lacuna_sm = "80")]
                spmm_f32_split_16x32_k8: $crate::spmm::SingleTiles<$crate::spmm::Split, 2, 2, 1, 1, 8, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_f32_split_16x32_k4: $crate::spmm::SingleTiles<$crate::spmm::Split, 2, 2, 1, 1, 4, 1, 4, 3>;
                #[cfg(lacuna_sm = "80")]
                spmm_f32_split_8x32_k8: $crate::spmm::SingleTiles<$crate::spmm::Split, 1, 2, 1, 1, 8, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_f32_tf32_64x128_k2: $crate::spmm::SingleTiles<$crate::spmm::Tf32, 8, 2, 1, 4, 2, 1, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_f32_tf32_64x64_k2: $crate::spmm::SingleTiles<$crate::spmm::Tf32, 4, 2, 2, 2, 2, 1, 4, 3>;
                #[cfg(lacuna_sm = "80")]
                spmm_f32_tf32_64x32_k4: $crate::spmm::SingleTiles<$crate::spmm::Tf32, 8, 2, 1, 1, 4, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_f32_tf32_32x32_k8: $crate::spmm::SingleTiles<$crate::spmm::Tf32, 4, 2, 1, 1, 8, 1, 8, 3>;
                #[cfg(lacuna_sm = "80")]
                spmm_f32_tf32_16x32_k8: $crate::spmm::SingleTiles<$crate::spmm::Tf32, 2, 2, 1, 1, 8, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_f32_tf32_8x32_k8: $crate::spmm::SingleTiles<$crate::spmm::Tf32, 1, 2, 1, 1, 8, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_f16_tile_64x128_k1: $crate::spmm::HalfTiles<$crate::F16, 4, 4, 2, 2, 1, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_f16_tile_64x64_k1: $crate::spmm::HalfTiles<$crate::F16, 4, 2, 2, 2, 1, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_f16_tile_16x64_k4: $crate::spmm::HalfTiles<$crate::F16, 2, 2, 1, 2, 4, 1, 8, 3>;
                #[cfg(lacuna_sm = "80")]
                spmm_f16_tile_64x32_k2: $crate::spmm::HalfTiles<$crate::F16, 4, 2, 2, 1, 2, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_f16_tile_32x32_k4: $crate::spmm::HalfTiles<$crate::F16, 2, 2, 2, 1, 4, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_f16_tile_16x32_k4: $crate::spmm::HalfTiles<$crate::F16, 2, 2, 1, 1, 4, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_f16_tile_8x32_k4: $crate::spmm::HalfTiles<$crate::F16, 1, 2, 1, 1, 4, 1, 8, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_bf16_tile_64x128_k1: $crate::spmm::HalfTiles<$crate::Bf16, 4, 4, 2, 2, 1, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_bf16_tile_64x64_k1: $crate::spmm::HalfTiles<$crate::Bf16, 4, 2, 2, 2, 1, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_bf16_tile_16x64_k4: $crate::spmm::HalfTiles<$crate::Bf16, 2, 2, 1, 2, 4, 1, 8, 3>;
                #[cfg(lacuna_sm = "80")]
                spmm_bf16_tile_64x32_k2: $crate::spmm::HalfTiles<$crate::Bf16, 4, 2, 2, 1, 2, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_bf16_tile_32x32_k4: $crate::spmm::HalfTiles<$crate::Bf16, 2, 2, 2, 1, 4, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_bf16_tile_16x32_k4: $crate::spmm::HalfTiles<$crate::Bf16, 2, 2, 1, 1, 4, 2, 4, 4>;
                #[cfg(lacuna_sm = "80")]
                spmm_bf16_tile_8x32_k4: $crate::spmm::HalfTiles<$crate::Bf16, 1, 2, 1, 1, 4, 1, 8, 4>;

                // Rows and columns of a tile, the part of a row that is loaded ahead, and blocks that share a tile: see spmm/groups/mod.rs.
                #[cfg(lacuna_sm = "90")]
                spmm_f16_group_64x128_p2: $crate::spmm::GroupTiles<$crate::F16, 64, 2, 2, 4, 4, 4, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_f16_group_64x128_p2_b2: $crate::spmm::GroupTiles<$crate::F16, 64, 2, 2, 3, 4, 3, 2>;
                #[cfg(lacuna_sm = "90")]
                spmm_f16_group_64x128_p4: $crate::spmm::GroupTiles<$crate::F16, 64, 2, 4, 4, 4, 4, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_f16_group_64x128_p4_b2: $crate::spmm::GroupTiles<$crate::F16, 64, 2, 4, 3, 4, 3, 2>;
                #[cfg(lacuna_sm = "90")]
                spmm_f16_group_64x64_p2: $crate::spmm::GroupTiles<$crate::F16, 32, 2, 2, 6, 4, 6, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_f16_group_64x64_p2_b2: $crate::spmm::GroupTiles<$crate::F16, 32, 2, 2, 6, 4, 6, 2>;
                #[cfg(lacuna_sm = "90")]
                spmm_f16_group_64x64_p4: $crate::spmm::GroupTiles<$crate::F16, 32, 4, 4, 3, 8, 3, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_f16_group_64x64_p4_b2: $crate::spmm::GroupTiles<$crate::F16, 32, 4, 4, 3, 8, 3, 2>;
                #[cfg(lacuna_sm = "90")]
                spmm_f16_group_64x32_p2: $crate::spmm::GroupTiles<$crate::F16, 16, 4, 2, 3, 8, 3, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_f16_group_64x32_p2_b2: $crate::spmm::GroupTiles<$crate::F16, 16, 4, 2, 3, 8, 3, 2>;
                #[cfg(lacuna_sm = "90")]
                spmm_f16_group_64x32_p4: $crate::spmm::GroupTiles<$crate::F16, 16, 4, 4, 4, 4, 4, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_f16_group_64x32_p4_b2: $crate::spmm::GroupTiles<$crate::F16, 16, 4, 4, 4, 4, 4, 2>;
                #[cfg(lacuna_sm = "90")]
                spmm_f16_group_64x32_p8: $crate::spmm::GroupTiles<$crate::F16, 16, 4, 8, 4, 4, 4, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_group_64x128_p2: $crate::spmm::GroupTiles<$crate::Bf16, 64, 2, 2, 4, 4, 4, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_group_64x128_p2_b2: $crate::spmm::GroupTiles<$crate::Bf16, 64, 2, 2, 3, 4, 3, 2>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_group_64x128_p4: $crate::spmm::GroupTiles<$crate::Bf16, 64, 2, 4, 4, 4, 4, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_group_64x128_p4_b2: $crate::spmm::GroupTiles<$crate::Bf16, 64, 2, 4, 3, 4, 3, 2>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_group_64x64_p2: $crate::spmm::GroupTiles<$crate::Bf16, 32, 2, 2, 6, 4, 6, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_group_64x64_p2_b2: $crate::spmm::GroupTiles<$crate::Bf16, 32, 2, 2, 6, 4, 6, 2>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_group_64x64_p4: $crate::spmm::GroupTiles<$crate::Bf16, 32, 4, 4, 3, 8, 3, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_group_64x64_p4_b2: $crate::spmm::GroupTiles<$crate::Bf16, 32, 4, 4, 3, 8, 3, 2>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_group_64x32_p2: $crate::spmm::GroupTiles<$crate::Bf16, 16, 4, 2, 3, 8, 3, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_group_64x32_p2_b2: $crate::spmm::GroupTiles<$crate::Bf16, 16, 4, 2, 3, 8, 3, 2>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_group_64x32_p4: $crate::spmm::GroupTiles<$crate::Bf16, 16, 4, 4, 4, 4, 4, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_group_64x32_p4_b2: $crate::spmm::GroupTiles<$crate::Bf16, 16, 4, 4, 4, 4, 4, 2>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_group_64x32_p8: $crate::spmm::GroupTiles<$crate::Bf16, 16, 4, 8, 4, 4, 4, 1>;

                // Rows and columns of a tile, and blocks that share one: see spmm/groups/packed.rs.
                #[cfg(lacuna_sm = "90")]
                spmm_f16_packed_64x128: $crate::spmm::PackedTiles<$crate::F16, 64, 2, 4, 2, 10, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_f16_packed_64x128_b2: $crate::spmm::PackedTiles<$crate::F16, 64, 2, 4, 2, 10, 2>;
                #[cfg(lacuna_sm = "90")]
                spmm_f16_packed_64x64: $crate::spmm::PackedTiles<$crate::F16, 32, 4, 3, 4, 8, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_f16_packed_64x64_b2: $crate::spmm::PackedTiles<$crate::F16, 32, 4, 3, 4, 8, 2>;
                #[cfg(lacuna_sm = "90")]
                spmm_f16_packed_64x32: $crate::spmm::PackedTiles<$crate::F16, 16, 4, 4, 4, 7, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_f16_packed_64x32_b2: $crate::spmm::PackedTiles<$crate::F16, 16, 4, 4, 4, 7, 2>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_packed_64x128: $crate::spmm::PackedTiles<$crate::Bf16, 64, 2, 4, 2, 10, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_packed_64x128_b2: $crate::spmm::PackedTiles<$crate::Bf16, 64, 2, 4, 2, 10, 2>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_packed_64x64: $crate::spmm::PackedTiles<$crate::Bf16, 32, 4, 3, 4, 8, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_packed_64x64_b2: $crate::spmm::PackedTiles<$crate::Bf16, 32, 4, 3, 4, 8, 2>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_packed_64x32: $crate::spmm::PackedTiles<$crate::Bf16, 16, 4, 4, 4, 7, 1>;
                #[cfg(lacuna_sm = "90")]
                spmm_bf16_packed_64x32_b2: $crate::spmm::PackedTiles<$crate::Bf16, 16, 4, 4, 4, 7, 2>;
            }
            softmax {
                // Type of values, lanes a row, warps a block; values of a chunk, chunks of a lane: see softmax/forward.rs.
                softmax_f32_l8_w8: $crate::softmax::Forward<f32, 4, 8, 8, 8>;
                softmax_f32_l32_w8: $crate::softmax::Forward<f32, 4, 32, 8, 8>;
                softmax_f32_l256_w8: $crate::softmax::Forward<f32, 4, 256, 8, 8>;
                softmax_f16_l16_w8: $crate::softmax::Forward<$crate::F16, 8, 16, 8, 2>;
                softmax_f16_l32_w8: $crate::softmax::Forward<$crate::F16, 8, 32, 8, 4>;
                softmax_f16_l256_w8: $crate::softmax::Forward<$crate::F16, 8, 256, 8, 4>;
                softmax_bf16_l16_w8: $crate::softmax::Forward<$crate::Bf16, 8, 16, 8, 2>;
                softmax_bf16_l32_w8: $crate::softmax::Forward<$crate::Bf16, 8, 32, 8, 4>;
                softmax_bf16_l256_w8: $crate::softmax::Forward<$crate::Bf16, 8, 256, 8, 4>;
                softmax_backward_f32_l8_w8: $crate::softmax::Backward<f32, 4, 8, 8, 8>;
                softmax_backward_f32_l32_w8: $crate::softmax::Backward<f32, 4, 32, 8, 8>;
                softmax_backward_f32_l256_w8: $crate::softmax::Backward<f32, 4, 256, 8, 8>;
                softmax_backward_f16_l16_w8: $crate::softmax::Backward<$crate::F16, 8, 16, 8, 2>;
                softmax_backward_f16_l32_w8: $crate::softmax::Backward<$crate::F16, 8, 32, 8, 4>;
                softmax_backward_f16_l256_w8: $crate::softmax::Backward<$crate::F16, 8, 256, 8, 4>;
                softmax_backward_bf16_l16_w8: $crate::softmax::Backward<$crate::Bf16, 8, 16, 8, 2>;
                softmax_backward_bf16_l32_w8: $crate::softmax::Backward<$crate::Bf16, 8, 32, 8, 4>;
                softmax_backward_bf16_l256_w8: $crate::softmax::Backward<$crate::Bf16, 8, 256, 8, 4>;
            }
            topn {
                // Type of values, values of a vector, threads, vectors of a thread, keys: see topn/select.rs.
                topn_f32_t32_v8: $crate::topn::Select<f32, 4, 32, 8, 512>;
                topn_f32_t256_v1: $crate::topn::Select<f32, 4, 256, 1, 1024>;
                topn_f32_t256_v5: $crate::topn::Select<f32, 4, 256, 5, 1024>;
                topn_f32_t256_v10: $crate::topn::Select<f32, 4, 256, 10, 1024>;
                topn_f32_t512_v5: $crate::topn::Select<f32, 4, 512, 5, 2048>;
                topn_f32_t1024_v1: $crate::topn::Select<f32, 4, 1024, 1, 4096>;
                topn_f32_insert: $crate::topn::Insert<f32, 4, 256, 10, 512>;
                topn_f16_t32_v4: $crate::topn::Select<$crate::F16, 8, 32, 4, 512>;
                topn_f16_t256_v1: $crate::topn::Select<$crate::F16, 8, 256, 1, 1024>;
                topn_f16_t256_v3: $crate::topn::Select<$crate::F16, 8, 256, 3, 1024>;
                topn_f16_t256_v5: $crate::topn::Select<$crate::F16, 8, 256, 5, 1024>;
                topn_f16_t512_v3: $crate::topn::Select<$crate::F16, 8, 512, 3, 2048>;
                topn_f16_t512_v1: $crate::topn::Select<$crate::F16, 8, 512, 1, 4096>;
                topn_f16_insert: $crate::topn::Insert<$crate::F16, 8, 256, 5, 512>;
                topn_bf16_t32_v4: $crate::topn::Select<$crate::Bf16, 8, 32, 4, 512>;
                topn_bf16_t256_v1: $crate::topn::Select<$crate::Bf16, 8, 256, 1, 1024>;
                topn_bf16_t256_v3: $crate::topn::Select<$crate::Bf16, 8, 256, 3, 1024>;
                topn_bf16_t256_v5: $crate::topn::Select<$crate::Bf16, 8, 256, 5, 1024>;
                topn_bf16_t512_v3: $crate::topn::Select<$crate::Bf16, 8, 512, 3, 2048>;
                topn_bf16_t512_v1: $crate::topn::Select<$crate::Bf16, 8, 512, 1, 4096>;
                topn_bf16_insert: $crate::topn::Insert<$crate::Bf16, 8, 256, 5, 512>;
                topn_f32_stream_t128_v1: $crate::topn::Stream<f32, 4, 128, 1, 2048>;
                #[cfg(lacuna_sm = "80")]
                topn_f32_stream_t256_v4: $crate::topn::Stream<f32, 4, 256, 4, 2048>;
                #[cfg(lacuna_sm = "80")]
                topn_f32_stream_t512_v4: $crate::topn::Stream<f32, 4, 512, 4, 2048>;
                topn_f16_stream_t128_v1: $crate::topn::Stream<$crate::F16, 8, 128, 1, 2048>;
                #[cfg(lacuna_sm = "80")]
                topn_f16_stream_t256_v2: $crate::topn::Stream<$crate::F16, 8, 256, 2, 2048>;
                #[cfg(lacuna_sm = "80")]
                topn_f16_stream_t512_v2: $crate::topn::Stream<$crate::F16, 8, 512, 2, 2048>;
                topn_bf16_stream_t128_v1: $crate::topn::Stream<$crate::Bf16, 8, 128, 1, 2048>;
                #[cfg(lacuna_sm = "80")]
                topn_bf16_stream_t256_v2: $crate::topn::Stream<$crate::Bf16, 8, 256, 2, 2048>;
                #[cfg(lacuna_sm = "80")]
                topn_bf16_stream_t512_v2: $crate::topn::Stream<$crate::Bf16, 8, 512, 2, 2048>;
                topn_finish: $crate::topn::Finish<512, 8>;
                topn_merge: $crate::topn::Merge;
                topn_beam: $crate::topn::Beam<256, 4096>;
            }
            transpose {
                // The width of indices, or of values in bits and of vectors: see transpose/mod.rs.
                transpose_offsets: $crate::transpose::Offsets;
                transpose_count_u32: $crate::transpose::Count<u32>;
                transpose_count_u16: $crate::transpose::Count<u16>;
                transpose_scan_chunks: $crate::transpose::ScanChunks;
                transpose_scan_columns: $crate::transpose::ScanColumns;
                transpose_scatter_u32: $crate::transpose::Scatter<u32>;
                transpose_scatter_u16: $crate::transpose::Scatter<u16>;
                transpose_gather_b32_v4: $crate::transpose::Gather<u32, 4>;
                transpose_gather_b32_v1: $crate::transpose::Gather<u32, 1>;
                transpose_gather_b16_v4: $crate::transpose::Gather<u16, 4>;
                transpose_gather_b16_v1: $crate::transpose::Gather<u16, 1>;
            }
            nhot {
                // Type of values, of indices (where not u32), elements a load, lanes, loads a lane, teams a bag; warps, rows under
                // way: see nhot/lookup.rs.
                nhot_f32_v4_l8_s1: $crate::nhot::Lookup<f32, u32, 4, 8, 1, 1, 8, 8>;
                nhot_f32_v4_l8_s4: $crate::nhot::Lookup<f32, u32, 4, 8, 1, 4, 8, 8>;
                nhot_f32_v4_l8_s32: $crate::nhot::Lookup<f32, u32, 4, 8, 1, 32, 8, 8>;
                nhot_f32_v4_l16_s1: $crate::nhot::Lookup<f32, u32, 4, 16, 1, 1, 8, 8>;
                nhot_f32_v4_l16_s8: $crate::nhot::Lookup<f32, u32, 4, 16, 1, 8, 4, 8>;
                nhot_f32_v4_l32_s1: $crate::nhot::Lookup<f32, u32, 4, 32, 1, 1, 8, 8>;
                nhot_f32_v4_l32_c2_s1: $crate::nhot::Lookup<f32, u32, 4, 32, 2, 1, 8, 4>;
                nhot_f32_v4_l32_s4: $crate::nhot::Lookup<f32, u32, 4, 32, 1, 4, 4, 8>;
                nhot_f32_v4_l32_s8: $crate::nhot::Lookup<f32, u32, 4, 32, 1, 8, 8, 8>;
                nhot_f32_v2_l32_s1: $crate::nhot::Lookup<f32, u32, 2, 32, 1, 1, 8, 8>;
                nhot_f32_v1_l8_s4: $crate::nhot::Lookup<f32, u32, 1, 8, 1, 4, 8, 8>;
                nhot_f32_v1_l32_s1: $crate::nhot::Lookup<f32, u32, 1, 32, 1, 1, 8, 8>;
                nhot_f32_v1_l32_s8: $crate::nhot::Lookup<f32, u32, 1, 32, 1, 8, 8, 8>;

                nhot_f16_v8_l8_s1: $crate::nhot::Lookup<$crate::F16, u32, 8, 8, 1, 1, 8, 8>;
                nhot_f16_v8_l8_s32: $crate::nhot::Lookup<$crate::F16, u32, 8, 8, 1, 32, 8, 8>;
                nhot_f16_v8_l16_s1: $crate::nhot::Lookup<$crate::F16, u32, 8, 16, 1, 1, 8, 8>;
                nhot_f16_v8_l16_s8: $crate::nhot::Lookup<$crate::F16, u32, 8, 16, 1, 8, 4, 8>;
                nhot_f16_v8_l32_s1: $crate::nhot::Lookup<$crate::F16, u32, 8, 32, 1, 1, 8, 8>;
                nhot_f16_v8_l32_s4: $crate::nhot::Lookup<$crate::F16, u32, 8, 32, 1, 4, 4, 8>;
                nhot_f16_v8_l32_s8: $crate::nhot::Lookup<$crate::F16, u32, 8, 32, 1, 8, 8, 8>;
                nhot_f16_v4_l32_s1: $crate::nhot::Lookup<$crate::F16, u32, 4, 32, 1, 1, 8, 8>;
                nhot_f16_v2_l32_s1: $crate::nhot::Lookup<$crate::F16, u32, 2, 32, 1, 1, 8, 8>;
                nhot_f16_v1_l32_s1: $crate::nhot::Lookup<$crate::F16, u32, 1, 32, 1, 1, 8, 8>;
                nhot_f16_v1_l32_s8: $crate::nhot::Lookup<$crate::F16, u32, 1, 32, 1, 8, 8, 8>;

                nhot_bf16_v8_l8_s1: $crate::nhot::Lookup<$crate::Bf16, u32, 8, 8, 1, 1, 8, 8>;
                nhot_bf16_v8_l8_s32: $crate::nhot::Lookup<$crate::Bf16, u32, 8, 8, 1, 32, 8, 8>;
                nhot_bf16_v8_l16_s1: $crate::nhot::Lookup<$crate::Bf16, u32, 8, 16, 1, 1, 8, 8>;
                nhot_bf16_v8_l16_s8: $crate::nhot::Lookup<$crate::Bf16, u32, 8, 16, 1, 8, 4, 8>;
                nhot_bf16_v8_l32_s1: $crate::nhot::Lookup<$crate::Bf16, u32, 8, 32, 1, 1, 8, 8>;
                nhot_bf16_v8_l32_s4: $crate::nhot::Lookup<$crate::Bf16, u32, 8, 32, 1, 4, 4, 8>;
                nhot_bf16_v8_l32_s8: $crate::nhot::Lookup<$crate::Bf16, u32, 8, 32, 1, 8, 8, 8>;
                nhot_bf16_v4_l32_s1: $crate::nhot::Lookup<$crate::Bf16, u32, 4, 32, 1, 1, 8, 8>;
                nhot_bf16_v2_l32_s1: $crate::nhot::Lookup<$crate::Bf16, u32, 2, 32, 1, 1, 8, 8>;
                nhot_bf16_v1_l32_s1: $crate::nhot::Lookup<$crate::Bf16, u32, 1, 32, 1, 1, 8, 8>;
                nhot_bf16_v1_l32_s8: $crate::nhot::Lookup<$crate::Bf16, u32, 1, 32, 1, 8, 8, 8>;

                // Tables that 32 bits do not count, or indices that are wide already.
                nhot_f32_u64_v4_l8_s1: $crate::nhot::Lookup<f32, u64, 4, 8, 1, 1, 8, 8>;
                nhot_f32_u64_v4_l32_s1: $crate::nhot::Lookup<f32, u64, 4, 32, 1, 1, 8, 8>;
                nhot_f32_u64_v4_l32_s8: $crate::nhot::Lookup<f32, u64, 4, 32, 1, 8, 8, 8>;
                nhot_f32_u64_v1_l32_s1: $crate::nhot::Lookup<f32, u64, 1, 32, 1, 1, 8, 8>;
                nhot_f16_u64_v8_l16_s1: $crate::nhot::Lookup<$crate::F16, u64, 8, 16, 1, 1, 8, 8>;
                nhot_f16_u64_v8_l32_s8: $crate::nhot::Lookup<$crate::F16, u64, 8, 32, 1, 8, 8, 8>;
                nhot_f16_u64_v1_l32_s1: $crate::nhot::Lookup<$crate::F16, u64, 1, 32, 1, 1, 8, 8>;
                nhot_bf16_u64_v8_l16_s1: $crate::nhot::Lookup<$crate::Bf16, u64, 8, 16, 1, 1, 8, 8>;
                nhot_bf16_u64_v8_l32_s8: $crate::nhot::Lookup<$crate::Bf16, u64, 8, 32, 1, 8, 8, 8>;
                nhot_bf16_u64_v1_l32_s1: $crate::nhot::Lookup<$crate::Bf16, u64, 1, 32, 1, 1, 8, 8>;

                // Gradients of weights: elements a load.
                nhot_weights_f32_v4: $crate::nhot::WeightGradient<f32, u32, 4>;
                nhot_weights_f32_v1: $crate::nhot::WeightGradient<f32, u32, 1>;
                nhot_weights_f32_u64_v4: $crate::nhot::WeightGradient<f32, u64, 4>;
                nhot_weights_f32_u64_v1: $crate::nhot::WeightGradient<f32, u64, 1>;
                nhot_weights_f16_v8: $crate::nhot::WeightGradient<$crate::F16, u32, 8>;
                nhot_weights_f16_v1: $crate::nhot::WeightGradient<$crate::F16, u32, 1>;
                nhot_weights_f16_u64_v8: $crate::nhot::WeightGradient<$crate::F16, u64, 8>;
                nhot_weights_f16_u64_v1: $crate::nhot::WeightGradient<$crate::F16, u64, 1>;
                nhot_weights_bf16_v8: $crate::nhot::WeightGradient<$crate::Bf16, u32, 8>;
                nhot_weights_bf16_v1: $crate::nhot::WeightGradient<$crate::Bf16, u32, 1>;
                nhot_weights_bf16_u64_v8: $crate::nhot::WeightGradient<$crate::Bf16, u64, 8>;
                nhot_weights_bf16_u64_v1: $crate::nhot::WeightGradient<$crate::Bf16, u64, 1>;
            }
            sddmm {
                // Elements a load, loads a lane, nonzeros at once, lanes, warps: see sddmm/config.rs.
                sddmm_f32_v4x4_l8_w8: $crate::sddmm::Nonzeros<f32, u32, 4, 4, 2, 8, 8>;
                sddmm_f32_v4x4_l8_w12: $crate::sddmm::Nonzeros<f32, u32, 4, 4, 2, 8, 12>;
                sddmm_f32_v4x2_l8_w8: $crate::sddmm::Nonzeros<f32, u32, 4, 2, 4, 8, 8>;
                sddmm_f32_v4x2_l8_w12: $crate::sddmm::Nonzeros<f32, u32, 4, 2, 4, 8, 12>;
                sddmm_f32_v4x1_l8_w8: $crate::sddmm::Nonzeros<f32, u32, 4, 1, 4, 8, 8>;
                sddmm_f32_v4x1_l4_w8: $crate::sddmm::Nonzeros<f32, u32, 4, 1, 4, 4, 8>;
                sddmm_f32_v4x2_l16_w8: $crate::sddmm::Nonzeros<f32, u32, 4, 2, 4, 16, 8>;
                sddmm_f32_v4x1_l16_w8: $crate::sddmm::Nonzeros<f32, u32, 4, 1, 4, 16, 8>;
                sddmm_f32_v4x2_l32_w8: $crate::sddmm::Nonzeros<f32, u32, 4, 2, 4, 32, 8>;
                sddmm_f32_v4x1_l32_w8: $crate::sddmm::Nonzeros<f32, u32, 4, 1, 4, 32, 8>;
                sddmm_f32_v2x2_l8_w8: $crate::sddmm::Nonzeros<f32, u32, 2, 2, 4, 8, 8>;
                sddmm_f32_v2x2_l32_w8: $crate::sddmm::Nonzeros<f32, u32, 2, 2, 4, 32, 8>;
                sddmm_f32_v1x4_l8_w8: $crate::sddmm::Nonzeros<f32, u32, 1, 4, 4, 8, 8>;
                sddmm_f32_v1x4_l32_w8: $crate::sddmm::Nonzeros<f32, u32, 1, 4, 4, 32, 8>;

                sddmm_f16_v8x2_l8_w8: $crate::sddmm::Nonzeros<$crate::F16, u32, 8, 2, 2, 8, 8>;
                sddmm_f16_v8x2_l8_w12: $crate::sddmm::Nonzeros<$crate::F16, u32, 8, 2, 2, 8, 12>;
                sddmm_f16_v8x1_l8_w8: $crate::sddmm::Nonzeros<$crate::F16, u32, 8, 1, 4, 8, 8>;
                sddmm_f16_v8x1_l8_w12: $crate::sddmm::Nonzeros<$crate::F16, u32, 8, 1, 4, 8, 12>;
                sddmm_f16_v8x1_l4_w8: $crate::sddmm::Nonzeros<$crate::F16, u32, 8, 1, 4, 4, 8>;
                sddmm_f16_v8x1_l32_w8: $crate::sddmm::Nonzeros<$crate::F16, u32, 8, 1, 4, 32, 8>;
                sddmm_f16_v4x2_l8_w8: $crate::sddmm::Nonzeros<$crate::F16, u32, 4, 2, 4, 8, 8>;
                sddmm_f16_v2x2_l8_w8: $crate::sddmm::Nonzeros<$crate::F16, u32, 2, 2, 4, 8, 8>;
                sddmm_f16_v1x4_l8_w8: $crate::sddmm::Nonzeros<$crate::F16, u32, 1, 4, 4, 8, 8>;
                sddmm_f16_v1x4_l32_w8: $crate::sddmm::Nonzeros<$crate::F16, u32, 1, 4, 4, 32, 8>;

                sddmm_bf16_v8x2_l8_w8: $crate::sddmm::Nonzeros<$crate::Bf16, u32, 8, 2, 2, 8, 8>;
                sddmm_bf16_v8x2_l8_w12: $crate::sddmm::Nonzeros<$crate::Bf16, u32, 8, 2, 2, 8, 12>;
                sddmm_bf16_v8x1_l8_w8: $crate::sddmm::Nonzeros<$crate::Bf16, u32, 8, 1, 4, 8, 8>;
                sddmm_bf16_v8x1_l4_w8: $crate::sddmm::Nonzeros<$crate::Bf16, u32, 8, 1, 4, 4, 8>;
                sddmm_bf16_v8x1_l32_w8: $crate::sddmm::Nonzeros<$crate::Bf16, u32, 8, 1, 4, 32, 8>;
                sddmm_bf16_v4x2_l8_w8: $crate::sddmm::Nonzeros<$crate::Bf16, u32, 4, 2, 4, 8, 8>;
                sddmm_bf16_v2x2_l8_w8: $crate::sddmm::Nonzeros<$crate::Bf16, u32, 2, 2, 4, 8, 8>;
                sddmm_bf16_v1x4_l8_w8: $crate::sddmm::Nonzeros<$crate::Bf16, u32, 1, 4, 4, 8, 8>;
                sddmm_bf16_v1x4_l32_w8: $crate::sddmm::Nonzeros<$crate::Bf16, u32, 1, 4, 4, 32, 8>;

                sddmm_f32_u16_v4x4_l8_w8: $crate::sddmm::Nonzeros<f32, u16, 4, 4, 2, 8, 8>;
                sddmm_f32_u16_v4x4_l8_w12: $crate::sddmm::Nonzeros<f32, u16, 4, 4, 2, 8, 12>;
                sddmm_f32_u16_v4x2_l8_w8: $crate::sddmm::Nonzeros<f32, u16, 4, 2, 4, 8, 8>;
                sddmm_f32_u16_v4x2_l8_w12: $crate::sddmm::Nonzeros<f32, u16, 4, 2, 4, 8, 12>;
                sddmm_f32_u16_v4x1_l8_w8: $crate::sddmm::Nonzeros<f32, u16, 4, 1, 4, 8, 8>;
                sddmm_f32_u16_v4x2_l32_w8: $crate::sddmm::Nonzeros<f32, u16, 4, 2, 4, 32, 8>;
                sddmm_f32_u16_v2x2_l8_w8: $crate::sddmm::Nonzeros<f32, u16, 2, 2, 4, 8, 8>;
                sddmm_f32_u16_v1x4_l8_w8: $crate::sddmm::Nonzeros<f32, u16, 1, 4, 4, 8, 8>;
                sddmm_f32_u16_v1x4_l32_w8: $crate::sddmm::Nonzeros<f32, u16, 1, 4, 4, 32, 8>;

                sddmm_f16_u16_v8x2_l8_w8: $crate::sddmm::Nonzeros<$crate::F16, u16, 8, 2, 2, 8, 8>;
                sddmm_f16_u16_v8x2_l8_w12: $crate::sddmm::Nonzeros<$crate::F16, u16, 8, 2, 2, 8, 12>;
                sddmm_f16_u16_v8x1_l8_w8: $crate::sddmm::Nonzeros<$crate::F16, u16, 8, 1, 4, 8, 8>;
                sddmm_f16_u16_v8x1_l8_w12: $crate::sddmm::Nonzeros<$crate::F16, u16, 8, 1, 4, 8, 12>;
                sddmm_f16_u16_v8x1_l4_w8: $crate::sddmm::Nonzeros<$crate::F16, u16, 8, 1, 4, 4, 8>;
                sddmm_f16_u16_v8x1_l32_w8: $crate::sddmm::Nonzeros<$crate::F16, u16, 8, 1, 4, 32, 8>;
                sddmm_f16_u16_v4x2_l8_w8: $crate::sddmm::Nonzeros<$crate::F16, u16, 4, 2, 4, 8, 8>;
                sddmm_f16_u16_v2x2_l8_w8: $crate::sddmm::Nonzeros<$crate::F16, u16, 2, 2, 4, 8, 8>;
                sddmm_f16_u16_v1x4_l8_w8: $crate::sddmm::Nonzeros<$crate::F16, u16, 1, 4, 4, 8, 8>;
                sddmm_f16_u16_v1x4_l32_w8: $crate::sddmm::Nonzeros<$crate::F16, u16, 1, 4, 4, 32, 8>;

                sddmm_bf16_u16_v8x2_l8_w8: $crate::sddmm::Nonzeros<$crate::Bf16, u16, 8, 2, 2, 8, 8>;
                sddmm_bf16_u16_v8x2_l8_w12: $crate::sddmm::Nonzeros<$crate::Bf16, u16, 8, 2, 2, 8, 12>;
                sddmm_bf16_u16_v8x1_l8_w8: $crate::sddmm::Nonzeros<$crate::Bf16, u16, 8, 1, 4, 8, 8>;
                sddmm_bf16_u16_v8x1_l4_w8: $crate::sddmm::Nonzeros<$crate::Bf16, u16, 8, 1, 4, 4, 8>;
                sddmm_bf16_u16_v8x1_l32_w8: $crate::sddmm::Nonzeros<$crate::Bf16, u16, 8, 1, 4, 32, 8>;
                sddmm_bf16_u16_v4x2_l8_w8: $crate::sddmm::Nonzeros<$crate::Bf16, u16, 4, 2, 4, 8, 8>;
                sddmm_bf16_u16_v2x2_l8_w8: $crate::sddmm::Nonzeros<$crate::Bf16, u16, 2, 2, 4, 8, 8>;
                sddmm_bf16_u16_v1x4_l8_w8: $crate::sddmm::Nonzeros<$crate::Bf16, u16, 1, 4, 4, 8, 8>;
                sddmm_bf16_u16_v1x4_l32_w8: $crate::sddmm::Nonzeros<$crate::Bf16, u16, 1, 4, 4, 32, 8>;

                // The same constants, by panels of columns: see sddmm/panels.rs.
                sddmm_f32_panels_v4x4_l8_w8: $crate::sddmm::Panels<f32, u32, 4, 4, 2, 8, 8>;
                sddmm_f32_panels_v4x2_l8_w8: $crate::sddmm::Panels<f32, u32, 4, 2, 4, 8, 8>;
                sddmm_f32_panels_v4x1_l8_w8: $crate::sddmm::Panels<f32, u32, 4, 1, 4, 8, 8>;
                sddmm_f32_panels_v4x4_l16_w8: $crate::sddmm::Panels<f32, u32, 4, 4, 2, 16, 8>;
                sddmm_f32_panels_v4x2_l16_w8: $crate::sddmm::Panels<f32, u32, 4, 2, 4, 16, 8>;
                sddmm_f32_panels_v4x4_l32_w8: $crate::sddmm::Panels<f32, u32, 4, 4, 2, 32, 8>;
                sddmm_f32_u16_panels_v4x4_l8_w8: $crate::sddmm::Panels<f32, u16, 4, 4, 2, 8, 8>;
                sddmm_f32_u16_panels_v4x2_l8_w8: $crate::sddmm::Panels<f32, u16, 4, 2, 4, 8, 8>;
                sddmm_f32_u16_panels_v4x1_l8_w8: $crate::sddmm::Panels<f32, u16, 4, 1, 4, 8, 8>;
                sddmm_f16_panels_v8x2_l8_w8: $crate::sddmm::Panels<$crate::F16, u32, 8, 2, 2, 8, 8>;
                sddmm_f16_panels_v8x1_l8_w8: $crate::sddmm::Panels<$crate::F16, u32, 8, 1, 4, 8, 8>;
                sddmm_f16_u16_panels_v8x2_l8_w8: $crate::sddmm::Panels<$crate::F16, u16, 8, 2, 2, 8, 8>;
                sddmm_f16_u16_panels_v8x1_l8_w8: $crate::sddmm::Panels<$crate::F16, u16, 8, 1, 4, 8, 8>;
                sddmm_bf16_panels_v8x2_l8_w8: $crate::sddmm::Panels<$crate::Bf16, u32, 8, 2, 2, 8, 8>;
                sddmm_bf16_panels_v8x1_l8_w8: $crate::sddmm::Panels<$crate::Bf16, u32, 8, 1, 4, 8, 8>;
                sddmm_bf16_u16_panels_v8x2_l8_w8: $crate::sddmm::Panels<$crate::Bf16, u16, 8, 2, 2, 8, 8>;
                sddmm_bf16_u16_panels_v8x1_l8_w8: $crate::sddmm::Panels<$crate::Bf16, u16, 8, 1, 4, 8, 8>;
                // Rows and columns of a tile: see sddmm/tiles/mod.rs.
                #[cfg(lacuna_sm = "80")]
                sddmm_f32_split_64x128: $crate::sddmm::Tiles<$crate::sddmm::Single<$crate::spmm::Split>, 8, 1, 4>;
                #[cfg(lacuna_sm = "80")]
                sddmm_f32_split_128x64: $crate::sddmm::Tiles<$crate::sddmm::Single<$crate::spmm::Split>, 8, 2, 2>;
                #[cfg(lacuna_sm = "80")]
                sddmm_f32_split_128x128: $crate::sddmm::Tiles<$crate::sddmm::Single<$crate::spmm::Split>, 8, 2, 4>;
                #[cfg(lacuna_sm = "80")]
                sddmm_f32_split_32x128: $crate::sddmm::Tiles<$crate::sddmm::Single<$crate::spmm::Split>, 4, 1, 4>;
                #[cfg(lacuna_sm = "80")]
                sddmm_f32_split_32x64: $crate::sddmm::Tiles<$crate::sddmm::Single<$crate::spmm::Split>, 4, 1, 2>;
                #[cfg(lacuna_sm = "80")]
                sddmm_f32_tf32_64x128: $crate::sddmm::Tiles<$crate::sddmm::Single<$crate::spmm::Tf32>, 8, 1, 4>;
                #[cfg(lacuna_sm = "80")]
                sddmm_f32_tf32_32x128: $crate::sddmm::Tiles<$crate::sddmm::Single<$crate::spmm::Tf32>, 4, 1, 4>;
                #[cfg(lacuna_sm = "80")]
                sddmm_f16_tile_64x128: $crate::sddmm::Tiles<$crate::sddmm::Half<$crate::F16>, 8, 1, 4>;
                #[cfg(lacuna_sm = "80")]
                sddmm_f16_tile_128x128: $crate::sddmm::Tiles<$crate::sddmm::Half<$crate::F16>, 8, 2, 4>;
                #[cfg(lacuna_sm = "80")]
                sddmm_f16_tile_32x64: $crate::sddmm::Tiles<$crate::sddmm::Half<$crate::F16>, 4, 1, 2>;
                #[cfg(lacuna_sm = "80")]
                sddmm_bf16_tile_64x128: $crate::sddmm::Tiles<$crate::sddmm::Half<$crate::Bf16>, 8, 1, 4>;
                #[cfg(lacuna_sm = "80")]
                sddmm_bf16_tile_128x128: $crate::sddmm::Tiles<$crate::sddmm::Half<$crate::Bf16>, 8, 2, 4>;
                #[cfg(lacuna_sm = "80")]
                sddmm_bf16_tile_32x64: $crate::sddmm::Tiles<$crate::sddmm::Half<$crate::Bf16>, 4, 1, 2>;

                // What the kernels above read beside the operands.
                sddmm_rows: $crate::sddmm::RowIndices;
                sddmm_order_u32: $crate::sddmm::TileOrder<u32>;
                sddmm_order_u16: $crate::sddmm::TileOrder<u16>;
                sddmm_dense_b32: $crate::sddmm::DenseTranspose<u32>;
                sddmm_dense_b16: $crate::sddmm::DenseTranspose<u16>;
            }
        }
    };
}
