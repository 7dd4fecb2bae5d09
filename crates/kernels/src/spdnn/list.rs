//! The entry points of sparse-DNN inference.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! spdnn {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            // [outputs of a group at most, tiles of 32 rows that a warp has at once, warps of a block].
            groups [f32 b32 f32_f16 b32_f16] { [16 4 4] [16 1 4] [4 4 4] [4 1 4] [1 4 4] [1 1 4] }
            // [warps of a block], of 16 outputs and two tiles each.
            #[cfg(lacuna_sm = "80")]
            group_tiles [f32 b32 f32_f16 b32_f16] { [4] }
            // [warps of a block].
            #[cfg(lacuna_sm = "80")]
            group_mma [f32_bf16 b32_bf16] { [4] }
            // [warps of a block], which keeps 16 rows in shared memory.
            #[cfg(lacuna_sm = "80")]
            fused [f32_bf16 b32_bf16] { [16] }
            baseline [f32] { {} }
            // [rows at once, inputs of a stage]: the paper's.
            staged [f32] { [12 512] }
            compact [any] { {} }
            expand_bits [any] { {} }
            scatter [any] { [tiled true] [rows false] }
            arrange [any] { {} }
            scores [any] { [tiled true] [rows false] }
        }
    };

    // A word of bits stands for 32 rows; `_f16` and `_bf16` are the type of the weights, where that is not `f32`.
    ($part:ident groups [] $input:ident [$outputs:literal $tiles:literal $warps:literal]) => {
        $crate::entry_part! { $part
            ["spdnn_", stringify!($input), "_groups_r", $outputs, "_t", $tiles, "_w", $warps]
            $crate::spdnn::InputGroups<
                $crate::list::value_of::$input, $crate::list::weights_of::$input, $outputs, $tiles, $warps
            >
        }
    };
    ($part:ident group_tiles [] $input:ident [$warps:literal]) => {
        $crate::entry_part! { $part
            ["spdnn_", stringify!($input), "_group_tiles_r16_t2_w", $warps]
            $crate::spdnn::GroupTiles<$crate::list::value_of::$input, $crate::list::weights_of::$input, $warps>
        }
    };
    ($part:ident group_mma [] $input:ident [$warps:literal]) => {
        $crate::entry_part! { $part
            ["spdnn_", stringify!($input), "_group_mma_w", $warps]
            $crate::spdnn::GroupMma<$crate::list::value_of::$input, $warps>
        }
    };
    ($part:ident fused [] $input:ident [$warps:literal]) => {
        $crate::entry_part! { $part
            ["spdnn_", stringify!($input), "_fused_w", $warps]
            $crate::spdnn::FusedLayers<$crate::list::value_of::$input, $warps>
        }
    };
    ($part:ident baseline [] $input:ident {}) => {
        $crate::entry_part! { $part ["spdnn_", stringify!($input), "_baseline"] $crate::spdnn::Baseline }
    };
    ($part:ident staged [] $input:ident [$rows:literal $inputs:literal]) => {
        $crate::entry_part! { $part
            ["spdnn_", stringify!($input), "_staged_b", $rows, "_s", $inputs]
            $crate::spdnn::StagedEll<$rows, $inputs>
        }
    };
    ($part:ident compact [] any {}) => {
        $crate::entry_part! { $part ["spdnn_compact"] $crate::spdnn::Compact }
    };
    ($part:ident expand_bits [] any {}) => {
        $crate::entry_part! { $part ["spdnn_expand_bits"] $crate::spdnn::ExpandBits }
    };
    ($part:ident arrange [] any {}) => {
        $crate::entry_part! { $part ["spdnn_arrange"] $crate::spdnn::ArrangeRows }
    };
    ($part:ident scores [] any [$layout:ident $tiled:literal]) => {
        $crate::entry_part! { $part ["spdnn_scores_", stringify!($layout)] $crate::spdnn::Scores<$tiled> }
    };
    ($part:ident scatter [] any [$layout:ident $tiled:literal]) => {
        $crate::entry_part! { $part
            ["spdnn_scatter_", stringify!($layout)]
            $crate::spdnn::ScatterValues<$tiled>
        }
    };
}
