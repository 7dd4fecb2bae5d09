//! Attention's entry points.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! attention {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            // One query a warp: [elements a lane loads at once, lanes of a row of K or V, vectors a lane, keys loaded at once]
            row [f32 f32_u16] {
                [4 8 1 8] [4 8 2 8] [4 16 2 4] [4 32 2 4]
                [1 32 1 8] [1 32 2 8] [1 32 8 4]

                [modified 4 8 1 8] [modified 4 8 2 8] [modified 4 16 2 4] [modified 4 32 2 4]
                [modified 1 32 1 8] [modified 1 32 2 8] [modified 1 32 8 4]
}
            row [f16 bf16 f16_u16 bf16_u16] {
                [8 4 1 4] [8 8 1 4] [8 8 2 2] [8 16 2 2]
                [1 32 1 8] [1 32 2 8] [1 32 8 4]

                [modified 8 4 1 4] [modified 8 8 1 4] [modified 8 8 2 2] [modified 8 16 2 2]
                [modified 1 32 1 8] [modified 1 32 2 8] [modified 1 32 8 4]
}

            // Tiles of four queries: [likewise, but keys that all four see, then those that only a pair sees, warps]
            query4 [f32] { [4 8 1 4 8 16] [4 8 2 2 4 12] [4 16 2 2 4 8]
 [modified 4 8 1 4 8 16] [modified 4 8 2 2 4 12] [modified 4 16 2 2 4 8]}
            query4 [f16] { [8 4 1 2 4 12] [8 8 1 2 4 12] [8 8 2 1 2 8]
 [modified 8 4 1 2 4 12] [modified 8 8 1 2 4 12] [modified 8 8 2 1 2 8]}
            query4 [bf16] { [8 4 1 2 4 12] [8 8 1 1 2 12] [8 8 2 1 2 8]
 [modified 8 4 1 2 4 12] [modified 8 8 1 1 2 12] [modified 8 8 2 1 2 8]}

            // Mask blocks of CSR, and of a transposed mask.
            find_blocks [u32 u16] { {} }
            write_bitmaps [u32 u16] { {} }
            transpose_bitmaps [any] { {} }

            // By warps: [half the elements of a row, an eighth of a row, a sixteenth, groups of 64 queries, stages]; and likewise with
            // scores that are changed
            #[cfg(lacuna_sm = "80")]
            mma [f16 bf16] {
                [32 8 4 2 3] [32 8 4 1 3] [64 16 8 2 2] [64 16 8 1 2]
                [modified 32 8 4 2 3] [modified 32 8 4 1 3] [modified 64 16 8 2 2] [modified 64 16 8 1 2]
            }

            // The same panel by panel, of `f32` in parts and of long rows: [half the elements of a row, panels of 64 elements, groups
            // of 64 queries, how often four warps copy 16 rows of a panel]
            #[cfg(lacuna_sm = "80")]
            mma_panels [f32] {
                [32 1 2 1] [32 1 1 2] [64 2 2 1] [64 2 1 2] [128 4 1 2]
                [modified 32 1 2 1] [modified 32 1 1 2] [modified 64 2 2 1] [modified 64 2 1 2]
                [modified 128 4 1 2]
            }
            #[cfg(lacuna_sm = "80")]
            mma_panels [f16 bf16] { [128 4 1 2] [modified 128 4 1 2] }

            // Gradients by warps, of Q, and of K and V: [half the elements of a row, a sixteenth of a row, groups of 64 rows, stages]
            #[cfg(lacuna_sm = "80")]
            backward_mma [f16 bf16] {
                [q false 32 4 2 3] [q false 32 4 1 3] [q false 64 8 2 2] [q false 128 16 1 2]
                [kv true 32 4 1 3] [kv true 64 8 1 2] [kv true 128 16 1 2]
                [modified q false 32 4 2 3] [modified q false 32 4 1 3] [modified q false 64 8 2 2]
                [modified q false 128 16 1 2]
                [modified kv true 32 4 1 3] [modified kv true 64 8 1 2] [modified kv true 128 16 1 2]
            }
            #[cfg(lacuna_sm = "80")]
            backward_mma [f32] {
                [q false 32 4 1 2] [q false 64 8 1 1] [kv true 32 4 1 2] [kv true 64 8 1 1]
                [modified q false 32 4 1 2] [modified q false 64 8 1 1] [modified kv true 32 4 1 2]
                [modified kv true 64 8 1 1]
            }

            // By warpgroups: [half the elements of a row, likewise of a part, parts, an eighth of a row,
            // scores of a thread, groups of 64 queries, stages]; and likewise with scores that are changed
            #[cfg(lacuna_sm = "90")]
            wgmma [f32] {
                [32 32 1 8 64 3 2] [32 32 1 8 32 1 2]
                [64 64 1 16 32 2 2] [64 64 1 16 32 1 2]
                [128 64 2 32 32 1 1]
                [modified 32 32 1 8 64 3 2] [modified 32 32 1 8 32 1 2]
                [modified 64 64 1 16 32 2 2] [modified 64 64 1 16 32 1 2]
                [modified 128 64 2 32 32 1 1]
            }
            #[cfg(lacuna_sm = "90")]
            wgmma [f16 bf16] {
                [32 32 1 8 64 3 3] [32 32 1 8 64 1 2]
                [64 64 1 16 64 2 2] [64 64 1 16 64 1 2]
                [128 64 2 32 32 2 2] [128 64 2 32 32 1 2]
                [modified 32 32 1 8 64 3 3] [modified 32 32 1 8 64 1 2]
                [modified 64 64 1 16 64 2 2] [modified 64 64 1 16 64 1 2]
                [modified 128 64 2 32 32 2 2] [modified 128 64 2 32 32 1 2]
            }

            // Gradients, of Q, and of K and V: [half the elements of a row, likewise of a part, parts, groups of 64 rows, stages]
            #[cfg(lacuna_sm = "90")]
            backward [f32] {
                [q false 32 32 1 2 3] [q false 32 32 1 1 2] [q false 64 64 1 1 2] [q false 128 64 2 1 1]
                [kv true 32 32 1 2 3] [kv true 32 32 1 1 2] [kv true 64 64 1 1 2] [kv true 128 64 2 1 1]
                [modified q false 32 32 1 2 3] [modified q false 32 32 1 1 2]
                [modified q false 64 64 1 1 2] [modified q false 128 64 2 1 1]
                [modified kv true 32 32 1 2 3] [modified kv true 32 32 1 1 2]
                [modified kv true 64 64 1 1 2] [modified kv true 128 64 2 1 1]
            }
            #[cfg(lacuna_sm = "90")]
            backward [f16 bf16] {
                [q false 32 32 1 3 3] [q false 32 32 1 2 4] [q false 32 32 1 1 4]
                [q false 64 64 1 2 3] [q false 128 64 2 1 2]
                [kv true 32 32 1 3 3] [kv true 32 32 1 2 4] [kv true 32 32 1 1 4]
                [kv true 64 64 1 1 3] [kv true 128 64 2 1 2]
                [modified q false 32 32 1 3 3] [modified q false 32 32 1 2 4] [modified q false 32 32 1 1 4]
                [modified q false 64 64 1 2 3] [modified q false 128 64 2 1 2]
                [modified kv true 32 32 1 3 3] [modified kv true 32 32 1 2 4] [modified kv true 32 32 1 1 2]
                [modified kv true 64 64 1 1 3] [modified kv true 128 64 2 1 2]
            }
        }
    };

    ($part:ident row [] $types:ident [modified $vector:literal $lanes:literal $chunks:literal $keys:literal]) => {
        $crate::entry_part! { $part
            ["attention_", stringify!($types), "_row_v", $vector, "_l", $lanes, "_c", $chunks, "_modified"]
            $crate::attention::Rows<
                $crate::list::value_of::$types, $crate::list::index_of::$types, $vector, $lanes, $chunks, $keys, true
            >
        }
    };
    ($part:ident row [] $types:ident [$vector:literal $lanes:literal $chunks:literal $keys:literal]) => {
        $crate::entry_part! { $part
            ["attention_", stringify!($types), "_row_v", $vector, "_l", $lanes, "_c", $chunks]
            $crate::attention::Rows<
                $crate::list::value_of::$types, $crate::list::index_of::$types, $vector, $lanes, $chunks, $keys, false
            >
        }
    };
    ($part:ident find_blocks [] $index:ident {}) => {
        $crate::entry_part! { $part
            ["attention_", stringify!($index), "_find_blocks"] $crate::attention::FindBlocks<$index>
        }
    };
    ($part:ident write_bitmaps [] $index:ident {}) => {
        $crate::entry_part! { $part
            ["attention_", stringify!($index), "_write_bitmaps"] $crate::attention::WriteBitmaps<$index>
        }
    };
    ($part:ident transpose_bitmaps [] any {}) => {
        $crate::entry_part! { $part ["attention_transpose_bitmaps"] $crate::attention::TransposeBitmaps }
    };
    ($part:ident mma [] $value:ident [
        modified $l:literal $pieces:literal $slices:literal $groups:literal $stages:literal
    ]) => {
        $crate::entry_part! { $part
            ["attention_", stringify!($value), "_mma_l", $l, "_g", $groups, "_modified"]
            $crate::attention::MmaTiles<$crate::list::value_of::$value, $l, $pieces, $slices, $groups, $stages, true>
        }
    };
    ($part:ident mma [] $value:ident [$l:literal $pieces:literal $slices:literal $groups:literal $stages:literal]) => {
        $crate::entry_part! { $part
            ["attention_", stringify!($value), "_mma_l", $l, "_g", $groups]
            $crate::attention::MmaTiles<$crate::list::value_of::$value, $l, $pieces, $slices, $groups, $stages, false>
        }
    };
    ($part:ident mma_panels [] $value:ident [
        modified $l:literal $panels:literal $groups:literal $passes:literal
    ]) => {
        $crate::entry_part! { $part
            ["attention_", stringify!($value), "_mma_l", $l, "_g", $groups, "_modified"]
            $crate::attention::MmaPanelTiles<$crate::list::value_of::$value, $panels, $groups, $passes, true>
        }
    };
    ($part:ident mma_panels [] $value:ident [
        $l:literal $panels:literal $groups:literal $passes:literal
    ]) => {
        $crate::entry_part! { $part
            ["attention_", stringify!($value), "_mma_l", $l, "_g", $groups]
            $crate::attention::MmaPanelTiles<$crate::list::value_of::$value, $panels, $groups, $passes, false>
        }
    };
    ($part:ident backward_mma [] $value:ident [
        modified $of:ident $keys:literal $l:literal $slices:literal $groups:literal $stages:literal
    ]) => {
        $crate::entry_part! { $part
            ["attention_", stringify!($value), "_mma_d", stringify!($of), "_l", $l, "_g", $groups, "_modified"]
            $crate::attention::BackwardMmaTiles<$crate::list::value_of::$value, $keys, $l, $slices, $groups, $stages, true>
        }
    };
    ($part:ident backward_mma [] $value:ident [
        $of:ident $keys:literal $l:literal $slices:literal $groups:literal $stages:literal
    ]) => {
        $crate::entry_part! { $part
            ["attention_", stringify!($value), "_mma_d", stringify!($of), "_l", $l, "_g", $groups]
            $crate::attention::BackwardMmaTiles<$crate::list::value_of::$value, $keys, $l, $slices, $groups, $stages, false>
        }
    };
    ($part:ident wgmma [] $value:ident [
        modified $row:literal $l:literal $parts:literal $pieces:literal $scores:literal $groups:literal $stages:literal
    ]) => {
        $crate::entry_part! { $part
            ["attention_", stringify!($value), "_wgmma_l", $row, "_g", $groups, "_modified"]
            $crate::attention::WgmmaTiles<
                $crate::list::value_of::$value, $l, $parts, $pieces, $scores, $groups, $stages, true
            >
        }
    };
    ($part:ident wgmma [] $value:ident [
        $row:literal $l:literal $parts:literal $pieces:literal $scores:literal $groups:literal $stages:literal
    ]) => {
        $crate::entry_part! { $part
            ["attention_", stringify!($value), "_wgmma_l", $row, "_g", $groups]
            $crate::attention::WgmmaTiles<
                $crate::list::value_of::$value, $l, $parts, $pieces, $scores, $groups, $stages, false
            >
        }
    };
    ($part:ident backward [] $value:ident [
        modified $of:ident $keys:literal $row:literal $l:literal $parts:literal $groups:literal $stages:literal
    ]) => {
        $crate::entry_part! { $part
            ["attention_", stringify!($value), "_wgmma_d", stringify!($of), "_l", $row, "_g", $groups, "_modified"]
            $crate::attention::BackwardTiles<$crate::list::value_of::$value, $keys, $l, $parts, $groups, $stages, true>
        }
    };
    ($part:ident backward [] $value:ident [
        $of:ident $keys:literal $row:literal $l:literal $parts:literal $groups:literal $stages:literal
    ]) => {
        $crate::entry_part! { $part
            ["attention_", stringify!($value), "_wgmma_d", stringify!($of), "_l", $row, "_g", $groups]
            $crate::attention::BackwardTiles<$crate::list::value_of::$value, $keys, $l, $parts, $groups, $stages, false>
        }
    };
    ($part:ident query4 [] $types:ident [
        modified $vector:literal $lanes:literal $chunks:literal $keys:literal $pair_keys:literal $warps:literal
    ]) => {
        $crate::entry_part! { $part
            ["attention_", stringify!($types), "_query4_v", $vector, "_l", $lanes, "_c", $chunks, "_modified"]
            $crate::attention::QueryTiles<$crate::list::value_of::$types, $vector, $lanes, $chunks, $keys, $pair_keys, $warps, true>
        }
    };
    ($part:ident query4 [] $types:ident [
        $vector:literal $lanes:literal $chunks:literal $keys:literal $pair_keys:literal $warps:literal
    ]) => {
        $crate::entry_part! { $part
            ["attention_", stringify!($types), "_query4_v", $vector, "_l", $lanes, "_c", $chunks]
            $crate::attention::QueryTiles<$crate::list::value_of::$types, $vector, $lanes, $chunks, $keys, $pair_keys, $warps, false>
        }
    };
}
