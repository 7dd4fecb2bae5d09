//! SDDMM's entry points.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! sddmm {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            // [elements a lane loads at once, such vectors of a lane in a chunk of K, lanes of a subwarp, warps of a thread
            // block, nonzeros that a subwarp has under way]; panels likewise
            nonzero [f32] {
                [4 4 8 8 2] [4 4 8 12 2] [4 2 8 8 4] [4 2 8 12 4] [4 1 8 8 4] [4 1 4 8 4]
                [4 2 16 8 4] [4 1 16 8 4] [4 2 32 8 4] [4 1 32 8 4]
                [2 2 8 8 4] [2 2 32 8 4]
                [1 4 8 8 4] [1 4 32 8 4]
            }
            nonzero [f32_u16] {
                [4 4 8 8 2] [4 4 8 12 2] [4 2 8 8 4] [4 2 8 12 4] [4 1 8 8 4] [4 2 32 8 4]
                [2 2 8 8 4]
                [1 4 8 8 4] [1 4 32 8 4]
            }
            nonzero [f16 f16_u16 bf16 bf16_u16] { [8 2 8 8 2] [8 2 8 12 2] [8 1 8 8 4] }
            nonzero [f16 f16_u16] { [8 1 8 12 4] }
            nonzero [f16 f16_u16 bf16 bf16_u16] {
                [8 1 4 8 4] [8 1 32 8 4]
                [4 2 8 8 4]
                [2 2 8 8 4]
                [1 4 8 8 4] [1 4 32 8 4]
            }

            panel [f32 f32_u16] { [4 4 8 8 2] [4 2 8 8 4] [4 1 8 8 4] }
            panel [f32] { [4 4 16 8 2] [4 2 16 8 4] [4 4 32 8 2] }
            panel [f16 f16_u16 bf16 bf16_u16] { [8 2 8 8 2] [8 1 8 8 4] }

            // [rows of a tile, its columns, warps along its rows]
            #[cfg(lacuna_sm = "80")]
            mma split [f32] { [64 128 1] [128 64 2] [128 128 2] [32 128 1] [32 64 1] }
            #[cfg(lacuna_sm = "80")]
            mma tf32 [f32] { [64 128 1] [32 128 1] }
            #[cfg(lacuna_sm = "80")]
            mma [f16 bf16] { [64 128 1] [128 128 2] [32 64 1] }

            // By warpgroups: [rows of a tile, its columns]
            #[cfg(lacuna_sm = "90")]
            wgmma [f16 bf16] { [128 128] [256 128] }
            #[cfg(lacuna_sm = "90")]
            wgmma splitbf16 [f32] { [128 128] }

            // What the kernels above read beside the operands, and what adds their sums up.
            sum_splits [f32 f16 bf16] { {} }
            row_indices [any] { {} }
            schedule [u32 u16] { {} }
            transpose [b32 b16] { {} }
        }
    };

    ($part:ident nonzero [] $types:ident
        [$vector:literal $vectors:literal $lanes:literal $warps:literal $nonzeros:literal]) => {
        $crate::entry_part! { $part
            ["sddmm_", stringify!($types), "_nonzero_v", $vector, "x", $vectors, "_l", $lanes, "_w", $warps]
            $crate::sddmm::NonzeroSplit<
                $crate::list::value_of::$types, $crate::list::index_of::$types,
                $vector, $vectors, $nonzeros, $lanes, $warps
            >
        }
    };
    ($part:ident panel [] $types:ident
        [$vector:literal $vectors:literal $lanes:literal $warps:literal $nonzeros:literal]) => {
        $crate::entry_part! { $part
            ["sddmm_", stringify!($types), "_panel_v", $vector, "x", $vectors, "_l", $lanes, "_w", $warps]
            $crate::sddmm::ColumnPanels<
                $crate::list::value_of::$types, $crate::list::index_of::$types,
                $vector, $vectors, $nonzeros, $lanes, $warps
            >
        }
    };
    // A warp has 32 columns. The flag says what a product of `f32` is.
    ($part:ident mma [$($products:ident)?] $types:ident [$rows:literal $columns:literal $row_warps:literal]) => {
        $crate::entry_part! { $part
            ["sddmm_", stringify!($types), "_mma_", $rows, "x", $columns $(, "_", stringify!($products))?]
            $crate::sddmm::MmaTiles<
                $crate::operand_of!($types $($products)?),
                { $rows / (8 * $row_warps) }, $row_warps, { $columns / 32 }
            >
        }
    };
    ($part:ident wgmma [$($products:ident)?] $types:ident [$rows:literal $columns:literal]) => {
        $crate::entry_part! { $part
            ["sddmm_", stringify!($types), "_wgmma_", $rows, "x", $columns $(, "_", stringify!($products))?]
            $crate::sddmm::WgmmaTiles<$crate::operand_of!($types $($products)?), { $columns / 2 }, { $rows / 64 }>
        }
    };
    ($part:ident sum_splits [] $value:ident {}) => {
        $crate::entry_part! { $part
            ["sddmm_", stringify!($value), "_sum_splits"] $crate::sddmm::SumSplits<$crate::list::value_of::$value>
        }
    };
    ($part:ident row_indices [] any {}) => {
        $crate::entry_part! { $part ["sddmm_row_indices"] $crate::sddmm::RowIndices }
    };
    ($part:ident schedule [] $index:ident {}) => {
        $crate::entry_part! { $part ["sddmm_schedule_", stringify!($index)] $crate::sddmm::TileSchedule<$index> }
    };
    ($part:ident transpose [] $bits:ident {}) => {
        $crate::entry_part! { $part
            ["sddmm_transpose_", stringify!($bits)] $crate::sddmm::DenseTranspose<$crate::list::value_of::$bits>
        }
    };
}
