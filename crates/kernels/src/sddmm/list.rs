//! SDDMM's entry points.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! sddmm {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            nonzero [f32] {
                { vector: 4, vectors: 4, lanes: 8, warps: 8, nonzeros: 2 }
                { vector: 4, vectors: 4, lanes: 8, warps: 12, nonzeros: 2 }
                { vector: 4, vectors: 2, lanes: 8, warps: 8, nonzeros: 4 }
                { vector: 4, vectors: 2, lanes: 8, warps: 12, nonzeros: 4 }
                { vector: 4, vectors: 1, lanes: 8, warps: 8, nonzeros: 4 }
                { vector: 4, vectors: 1, lanes: 4, warps: 8, nonzeros: 4 }
                { vector: 4, vectors: 2, lanes: 16, warps: 8, nonzeros: 4 }
                { vector: 4, vectors: 1, lanes: 16, warps: 8, nonzeros: 4 }
                { vector: 4, vectors: 2, lanes: 32, warps: 8, nonzeros: 4 }
                { vector: 4, vectors: 1, lanes: 32, warps: 8, nonzeros: 4 }
                { vector: 2, vectors: 2, lanes: 8, warps: 8, nonzeros: 4 }
                { vector: 2, vectors: 2, lanes: 32, warps: 8, nonzeros: 4 }
                { vector: 1, vectors: 4, lanes: 8, warps: 8, nonzeros: 4 }
                { vector: 1, vectors: 4, lanes: 32, warps: 8, nonzeros: 4 }
            }
            nonzero [f32_u16] {
                { vector: 4, vectors: 4, lanes: 8, warps: 8, nonzeros: 2 }
                { vector: 4, vectors: 4, lanes: 8, warps: 12, nonzeros: 2 }
                { vector: 4, vectors: 2, lanes: 8, warps: 8, nonzeros: 4 }
                { vector: 4, vectors: 2, lanes: 8, warps: 12, nonzeros: 4 }
                { vector: 4, vectors: 1, lanes: 8, warps: 8, nonzeros: 4 }
                { vector: 4, vectors: 2, lanes: 32, warps: 8, nonzeros: 4 }
                { vector: 2, vectors: 2, lanes: 8, warps: 8, nonzeros: 4 }
                { vector: 1, vectors: 4, lanes: 8, warps: 8, nonzeros: 4 }
                { vector: 1, vectors: 4, lanes: 32, warps: 8, nonzeros: 4 }
            }
            nonzero [f16 f16_u16 bf16 bf16_u16] {
                { vector: 8, vectors: 2, lanes: 8, warps: 8, nonzeros: 2 }
                { vector: 8, vectors: 2, lanes: 8, warps: 12, nonzeros: 2 }
                { vector: 8, vectors: 1, lanes: 8, warps: 8, nonzeros: 4 }
            }
            nonzero [f16 f16_u16] { { vector: 8, vectors: 1, lanes: 8, warps: 12, nonzeros: 4 } }
            nonzero [f16 f16_u16 bf16 bf16_u16] {
                { vector: 8, vectors: 1, lanes: 4, warps: 8, nonzeros: 4 }
                { vector: 8, vectors: 1, lanes: 32, warps: 8, nonzeros: 4 }
                { vector: 4, vectors: 2, lanes: 8, warps: 8, nonzeros: 4 }
                { vector: 2, vectors: 2, lanes: 8, warps: 8, nonzeros: 4 }
                { vector: 1, vectors: 4, lanes: 8, warps: 8, nonzeros: 4 }
                { vector: 1, vectors: 4, lanes: 32, warps: 8, nonzeros: 4 }
            }

            panel [f32 f32_u16] {
                { vector: 4, vectors: 4, lanes: 8, warps: 8, nonzeros: 2 }
                { vector: 4, vectors: 2, lanes: 8, warps: 8, nonzeros: 4 }
                { vector: 4, vectors: 1, lanes: 8, warps: 8, nonzeros: 4 }
            }
            panel [f32] {
                { vector: 4, vectors: 4, lanes: 16, warps: 8, nonzeros: 2 }
                { vector: 4, vectors: 2, lanes: 16, warps: 8, nonzeros: 4 }
                { vector: 4, vectors: 4, lanes: 32, warps: 8, nonzeros: 2 }
            }
            panel [f16 f16_u16 bf16 bf16_u16] {
                { vector: 8, vectors: 2, lanes: 8, warps: 8, nonzeros: 2 }
                { vector: 8, vectors: 1, lanes: 8, warps: 8, nonzeros: 4 }
            }

            #[cfg(lacuna_sm = "80")]
            mma split [f32] {
                { rows: 64, columns: 128, row_warps: 1 }
                { rows: 128, columns: 64, row_warps: 2 }
                { rows: 128, columns: 128, row_warps: 2 }
                { rows: 32, columns: 128, row_warps: 1 }
                { rows: 32, columns: 64, row_warps: 1 }
            }
            #[cfg(lacuna_sm = "80")]
            mma tf32 [f32] {
                { rows: 64, columns: 128, row_warps: 1 }
                { rows: 32, columns: 128, row_warps: 1 }
            }
            #[cfg(lacuna_sm = "80")]
            mma [f16 bf16] {
                { rows: 64, columns: 128, row_warps: 1 }
                { rows: 128, columns: 128, row_warps: 2 }
                { rows: 32, columns: 64, row_warps: 1 }
            }

            // What the kernels above read beside the operands.
            row_indices [any] { {} }
            schedule [u32 u16] { {} }
            transpose [b32 b16] { {} }
        }
    };

    // Elements a lane loads at once, such vectors of a lane in a chunk of K, lanes of a subwarp, warps of a thread block,
    // nonzeros that a subwarp has under way.
    ($part:ident nonzero [] $types:ident {
        vector: $vector:literal, vectors: $vectors:literal, lanes: $lanes:literal, warps: $warps:literal,
        nonzeros: $nonzeros:literal
    }) => {
        $crate::entry_part! { $part
            ["sddmm_", stringify!($types), "_nonzero_v", $vector, "x", $vectors, "_l", $lanes, "_w", $warps]
            $crate::sddmm::NonzeroSplit<
                $crate::value_of!($types), $crate::index_of!($types), $vector, $vectors, $nonzeros, $lanes, $warps
            >
        }
    };
    ($part:ident panel [] $types:ident {
        vector: $vector:literal, vectors: $vectors:literal, lanes: $lanes:literal, warps: $warps:literal,
        nonzeros: $nonzeros:literal
    }) => {
        $crate::entry_part! { $part
            ["sddmm_", stringify!($types), "_panel_v", $vector, "x", $vectors, "_l", $lanes, "_w", $warps]
            $crate::sddmm::ColumnPanels<
                $crate::value_of!($types), $crate::index_of!($types), $vector, $vectors, $nonzeros, $lanes, $warps
            >
        }
    };
    // Rows and columns of a tile, and warps along its rows; each has 32 columns.
    ($part:ident mma [$products:ident] f32 { rows: $rows:literal, columns: $columns:literal, row_warps: $warps:literal }) => {
        $crate::entry_part! { $part
            ["sddmm_f32_mma_", $rows, "x", $columns, "_", stringify!($products)]
            $crate::sddmm::MmaTiles<
                $crate::Single<$crate::products_of!($products)>,
                { $rows / (8 * $warps) }, $warps, { $columns / 32 }
            >
        }
    };
    ($part:ident mma [] $types:ident { rows: $rows:literal, columns: $columns:literal, row_warps: $warps:literal }) => {
        $crate::entry_part! { $part
            ["sddmm_", stringify!($types), "_mma_", $rows, "x", $columns]
            $crate::sddmm::MmaTiles<
                $crate::Half<$crate::value_of!($types)>,
                { $rows / (8 * $warps) }, $warps, { $columns / 32 }
            >
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
            ["sddmm_transpose_", stringify!($bits)] $crate::sddmm::DenseTranspose<$crate::value_of!($bits)>
        }
    };
}
