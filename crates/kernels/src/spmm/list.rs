//! SpMM's entry points.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! spmm {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            // [columns a lane loads at once, lanes of a subwarp, subwarps that split a row, warps of a thread block], as in
            // spmm/config.rs
            rowsplit [f32] {
                [4 32 1 8] [4 32 1 32] [4 16 1 8] [4 16 2 8] [4 8 1 8] [4 8 2 8] [4 8 4 8] [4 4 2 8]
                [4 4 4 8] [4 4 8 8] [4 2 16 8] [4 1 32 8]
                [2 32 1 8] [2 16 1 8] [2 8 4 8] [2 4 8 8] [2 1 32 8]
                [1 32 1 8] [1 16 1 8] [1 16 2 8] [1 8 4 8] [1 8 1 8] [1 4 8 8] [1 2 16 8] [1 1 32 8]
                [1 1 8 8]
            }
            rowsplit [f32_u16] {
                [4 32 1 8] [4 32 1 32] [4 16 1 8] [4 8 1 8] [4 8 4 8] [4 4 8 8]
                [2 16 1 8]
                [1 32 1 8] [1 8 4 8] [1 1 32 8]
            }
            rowsplit [f16 bf16 f16_u16 bf16_u16] {
                [8 32 1 8] [8 16 1 8] [8 16 1 32] [8 16 2 8] [8 8 4 8] [8 4 8 8]
                [4 8 4 8]
                [2 16 2 8]
                [1 32 1 8] [1 8 4 8] [1 1 32 8]
            }

            // Of two kernels that the heuristic rates alike it takes the first, so the order of groups matters.
            rowsplit persistent [f32] {
                [4 32 1 32] [4 32 1 24] [4 16 1 32] [4 16 2 32] [4 8 1 32] [4 8 1 24] [4 8 2 32]
                [4 8 4 32]
            }
            rowsplit persistent [f32_u16] { [4 32 1 32] [4 16 2 32] }
            rowsplit hybrid [f32 f32_u16] { [4 8 4 32] [4 16 2 32] }
            rowsplit persistent [f32_u16] { [4 8 1 32] }

            // For A with more than 65,535 columns.
            rowsplit wide [f32] {
                [4 32 1 8] [4 16 1 8] [4 8 1 8] [4 8 4 8]
                [2 16 1 8]
                [1 32 1 8] [1 8 4 8] [1 1 32 8]
            }
            rowsplit wide [f16 bf16] { [8 16 1 8] [8 8 4 8] [2 16 2 8] [1 32 1 8] [1 1 32 8] }

            // For ablations: each differs in one idea from the kernel of its shape.
            rowsplit noresidue [f32] { [4 32 1 8] [4 8 4 8] }
            rowsplit prescaled [f32] { [4 32 1 8] [4 8 4 8] }

            bitmask [u32 u16] { {} }

            #[cfg(lacuna_sm = "80")]
            mma split [f32] {
                { tile: 64 x 128 x 2, warps: 1 x 4, producers: 1 x 4, stages: 4 }
                { tile: 32 x 128 x 2, warps: 1 x 4, producers: 2 x 4, stages: 4 }
                { tile: 64 x 64 x 2, warps: 2 x 2, producers: 1 x 4, stages: 3 }
                { tile: 32 x 64 x 2, warps: 1 x 2, producers: 1 x 4, stages: 4 }
                { tile: 32 x 64 x 4, warps: 1 x 2, producers: 2 x 4, stages: 4 }
                { tile: 16 x 64 x 4, warps: 1 x 2, producers: 2 x 4, stages: 4 }
                { tile: 64 x 32 x 4, warps: 1 x 1, producers: 2 x 4, stages: 4 }
                { tile: 32 x 32 x 8, warps: 1 x 1, producers: 1 x 8, stages: 3 }
                { tile: 32 x 32 x 4, warps: 1 x 1, producers: 1 x 4, stages: 3 }
                { tile: 16 x 32 x 8, warps: 1 x 1, producers: 2 x 4, stages: 4 }
                { tile: 16 x 32 x 4, warps: 1 x 1, producers: 1 x 4, stages: 3 }
                { tile: 8 x 32 x 8, warps: 1 x 1, producers: 2 x 4, stages: 4 }
            }
            #[cfg(lacuna_sm = "80")]
            mma tf32 [f32] {
                { tile: 64 x 128 x 2, warps: 1 x 4, producers: 1 x 4, stages: 4 }
                { tile: 64 x 64 x 2, warps: 2 x 2, producers: 1 x 4, stages: 3 }
                { tile: 64 x 32 x 4, warps: 1 x 1, producers: 2 x 4, stages: 4 }
                { tile: 32 x 32 x 8, warps: 1 x 1, producers: 1 x 8, stages: 3 }
                { tile: 16 x 32 x 8, warps: 1 x 1, producers: 2 x 4, stages: 4 }
                { tile: 8 x 32 x 8, warps: 1 x 1, producers: 2 x 4, stages: 4 }
            }
            #[cfg(lacuna_sm = "80")]
            mma [f16 bf16] {
                { tile: 64 x 128 x 1, warps: 2 x 2, producers: 2 x 4, stages: 4 }
                { tile: 64 x 64 x 1, warps: 2 x 2, producers: 2 x 4, stages: 4 }
                { tile: 16 x 64 x 4, warps: 1 x 2, producers: 1 x 8, stages: 3 }
                { tile: 64 x 32 x 2, warps: 2 x 1, producers: 2 x 4, stages: 4 }
                { tile: 32 x 32 x 4, warps: 2 x 1, producers: 2 x 4, stages: 4 }
                { tile: 16 x 32 x 4, warps: 1 x 1, producers: 2 x 4, stages: 4 }
                { tile: 8 x 32 x 4, warps: 1 x 1, producers: 1 x 8, stages: 4 }
            }

            #[cfg(lacuna_sm = "90")]
            wgmma [f16 bf16] {
                { columns: 128, chunks: 2, columns_per_prefetch: 2, producers: 4 x 4, stages: 4 }
                { columns: 128, chunks: 2, columns_per_prefetch: 2, producers: 3 x 4, stages: 3, cluster: 2 }
                { columns: 128, chunks: 2, columns_per_prefetch: 4, producers: 4 x 4, stages: 4 }
                { columns: 128, chunks: 2, columns_per_prefetch: 4, producers: 3 x 4, stages: 3, cluster: 2 }
                { columns: 64, chunks: 2, columns_per_prefetch: 2, producers: 6 x 4, stages: 6 }
                { columns: 64, chunks: 2, columns_per_prefetch: 2, producers: 6 x 4, stages: 6, cluster: 2 }
                { columns: 64, chunks: 4, columns_per_prefetch: 4, producers: 3 x 8, stages: 3 }
                { columns: 64, chunks: 4, columns_per_prefetch: 4, producers: 3 x 8, stages: 3, cluster: 2 }
                { columns: 32, chunks: 4, columns_per_prefetch: 2, producers: 3 x 8, stages: 3 }
                { columns: 32, chunks: 4, columns_per_prefetch: 2, producers: 3 x 8, stages: 3, cluster: 2 }
                { columns: 32, chunks: 4, columns_per_prefetch: 4, producers: 4 x 4, stages: 4 }
                { columns: 32, chunks: 4, columns_per_prefetch: 4, producers: 4 x 4, stages: 4, cluster: 2 }
                { columns: 32, chunks: 4, columns_per_prefetch: 8, producers: 4 x 4, stages: 4 }
            }
            #[cfg(lacuna_sm = "90")]
            prepacked [f16 bf16] {
                { columns: 128, chunks: 2, producers: 4 x 2, packs_ahead: 10 }
                { columns: 128, chunks: 2, producers: 4 x 2, packs_ahead: 10, cluster: 2 }
                { columns: 64, chunks: 4, producers: 3 x 4, packs_ahead: 8 }
                { columns: 64, chunks: 4, producers: 3 x 4, packs_ahead: 8, cluster: 2 }
                { columns: 32, chunks: 4, producers: 4 x 4, packs_ahead: 7 }
                { columns: 32, chunks: 4, producers: 4 x 4, packs_ahead: 7, cluster: 2 }
            }
        }
    };

    // The flag is a form: spmm/form.rs.
    ($part:ident rowsplit [$($form:ident)?] $types:ident
        [$vector:literal $lanes:literal $split:literal $warps:literal]) => {
        $crate::entry_part! { $part
            [
                "spmm_", stringify!($types), "_rowsplit_v", $vector, "_l", $lanes, "_s", $split, "_w", $warps
                $(, "_", stringify!($form))?
            ]
            $crate::spmm::RowSplit<
                $crate::list::value_of::$types, $crate::list::index_of::$types, $vector, $lanes, $split, $warps
                $(, $crate::list::form_of::$form)?
            >
        }
    };
    // What tiles read of a pattern.
    ($part:ident bitmask [] $index:ident {}) => {
        $crate::entry_part! { $part ["spmm_bitmask_", stringify!($index)] $crate::spmm::Bitmasks<$index> }
    };
    // A tile's rows, its columns, and its slices of K; consumer warps along rows and columns, for each slice; groups of
    // producers by warps of a group; stages of shared memory. The flag says what a product of `f32` is.
    ($part:ident mma [$($products:ident)?] $types:ident {
        tile: $rows:literal x $columns:literal x $slices:literal, warps: $wm:literal x $wn:literal,
        producers: $groups:literal x $warps:literal, stages: $stages:literal
    }) => {
        $crate::entry_part! { $part
            [
                "spmm_", stringify!($types), "_mma_", $rows, "x", $columns, "_k", $slices
                $(, "_", stringify!($products))?
            ]
            $crate::spmm::MmaTiles<
                $crate::operand_of!($types $($products)?),
                $crate::spmm::StagesOf<$slices, $groups, $warps, $stages>,
                { $rows / (8 * $wm) }, { $columns / (16 * $wn) }, $wm, $wn
            >
        }
    };
    // Columns of a tile of 64 rows, chunks of a step along K; of a step of a row producers load ahead what one nonzero in so
    // many columns makes; groups of producers by warps of a group; stages of shared memory; thread blocks of a cluster, where
    // there is more than one.
    ($part:ident wgmma [] $types:ident {
        columns: $columns:literal, chunks: $chunks:literal, columns_per_prefetch: $prefetch:literal,
        producers: $groups:literal x $warps:literal, stages: $stages:literal $(, cluster: $cluster:literal)?
    }) => {
        $crate::entry_part! { $part
            ["spmm_", stringify!($types), "_wgmma_64x", $columns, "_p", $prefetch $(, "_c", $cluster)?]
            $crate::spmm::WgmmaTiles<
                $crate::list::value_of::$types, $crate::spmm::StagesOf<$chunks, $groups, $warps, $stages>,
                { $columns / 2 }, $prefetch, { 1 $(* $cluster)? }
            >
        }
    };
    // The same; producers load so many packs ahead, and each group has a stage of its own.
    ($part:ident prepacked [] $types:ident {
        columns: $columns:literal, chunks: $chunks:literal, producers: $groups:literal x $warps:literal,
        packs_ahead: $ahead:literal $(, cluster: $cluster:literal)?
    }) => {
        $crate::entry_part! { $part
            ["spmm_", stringify!($types), "_prepacked_64x", $columns $(, "_c", $cluster)?]
            $crate::spmm::PrepackedTiles<
                $crate::list::value_of::$types, $crate::spmm::StagesOf<$chunks, $groups, $warps, $groups>,
                { $columns / 2 }, $ahead, { 1 $(* $cluster)? }
            >
        }
    };
}
