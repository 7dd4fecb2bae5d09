//! SpMM's entry points.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! spmm {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            rowsplit [f32] {
                { vector: 4, lanes: 32, split: 1, warps: 8 }
                { vector: 4, lanes: 32, split: 1, warps: 32 }
                { vector: 4, lanes: 16, split: 1, warps: 8 }
                { vector: 4, lanes: 16, split: 2, warps: 8 }
                { vector: 4, lanes: 8, split: 1, warps: 8 }
                { vector: 4, lanes: 8, split: 2, warps: 8 }
                { vector: 4, lanes: 8, split: 4, warps: 8 }
                { vector: 4, lanes: 4, split: 2, warps: 8 }
                { vector: 4, lanes: 4, split: 4, warps: 8 }
                { vector: 4, lanes: 4, split: 8, warps: 8 }
                { vector: 4, lanes: 2, split: 16, warps: 8 }
                { vector: 4, lanes: 1, split: 32, warps: 8 }
                { vector: 2, lanes: 32, split: 1, warps: 8 }
                { vector: 2, lanes: 16, split: 1, warps: 8 }
                { vector: 2, lanes: 8, split: 4, warps: 8 }
                { vector: 2, lanes: 4, split: 8, warps: 8 }
                { vector: 2, lanes: 1, split: 32, warps: 8 }
                { vector: 1, lanes: 32, split: 1, warps: 8 }
                { vector: 1, lanes: 16, split: 1, warps: 8 }
                { vector: 1, lanes: 16, split: 2, warps: 8 }
                { vector: 1, lanes: 8, split: 4, warps: 8 }
                { vector: 1, lanes: 8, split: 1, warps: 8 }
                { vector: 1, lanes: 4, split: 8, warps: 8 }
                { vector: 1, lanes: 2, split: 16, warps: 8 }
                { vector: 1, lanes: 1, split: 32, warps: 8 }
                { vector: 1, lanes: 1, split: 8, warps: 8 }
            }
            rowsplit [f32_u16] {
                { vector: 4, lanes: 32, split: 1, warps: 8 }
                { vector: 4, lanes: 32, split: 1, warps: 32 }
                { vector: 4, lanes: 16, split: 1, warps: 8 }
                { vector: 4, lanes: 8, split: 1, warps: 8 }
                { vector: 4, lanes: 8, split: 4, warps: 8 }
                { vector: 4, lanes: 4, split: 8, warps: 8 }
                { vector: 2, lanes: 16, split: 1, warps: 8 }
                { vector: 1, lanes: 32, split: 1, warps: 8 }
                { vector: 1, lanes: 8, split: 4, warps: 8 }
                { vector: 1, lanes: 1, split: 32, warps: 8 }
            }
            rowsplit [f16 bf16 f16_u16 bf16_u16] {
                { vector: 8, lanes: 32, split: 1, warps: 8 }
                { vector: 8, lanes: 16, split: 1, warps: 8 }
                { vector: 8, lanes: 16, split: 1, warps: 32 }
                { vector: 8, lanes: 16, split: 2, warps: 8 }
                { vector: 8, lanes: 8, split: 4, warps: 8 }
                { vector: 8, lanes: 4, split: 8, warps: 8 }
                { vector: 4, lanes: 8, split: 4, warps: 8 }
                { vector: 2, lanes: 16, split: 2, warps: 8 }
                { vector: 1, lanes: 32, split: 1, warps: 8 }
                { vector: 1, lanes: 8, split: 4, warps: 8 }
                { vector: 1, lanes: 1, split: 32, warps: 8 }
            }

            // Of two kernels that the heuristic rates alike it takes the first, so the order of groups matters.
            rowsplit persistent [f32] {
                { vector: 4, lanes: 32, split: 1, warps: 32 }
                { vector: 4, lanes: 32, split: 1, warps: 24 }
                { vector: 4, lanes: 16, split: 1, warps: 32 }
                { vector: 4, lanes: 16, split: 2, warps: 32 }
                { vector: 4, lanes: 8, split: 1, warps: 32 }
                { vector: 4, lanes: 8, split: 1, warps: 24 }
                { vector: 4, lanes: 8, split: 2, warps: 32 }
                { vector: 4, lanes: 8, split: 4, warps: 32 }
            }
            rowsplit persistent [f32_u16] {
                { vector: 4, lanes: 32, split: 1, warps: 32 }
                { vector: 4, lanes: 16, split: 2, warps: 32 }
            }
            rowsplit hybrid [f32 f32_u16] {
                { vector: 4, lanes: 8, split: 4, warps: 32 }
                { vector: 4, lanes: 16, split: 2, warps: 32 }
            }
            rowsplit persistent [f32_u16] { { vector: 4, lanes: 8, split: 1, warps: 32 } }

            // For A with more than 65,535 columns.
            rowsplit wide [f32] {
                { vector: 4, lanes: 32, split: 1, warps: 8 }
                { vector: 4, lanes: 16, split: 1, warps: 8 }
                { vector: 4, lanes: 8, split: 1, warps: 8 }
                { vector: 4, lanes: 8, split: 4, warps: 8 }
                { vector: 2, lanes: 16, split: 1, warps: 8 }
                { vector: 1, lanes: 32, split: 1, warps: 8 }
                { vector: 1, lanes: 8, split: 4, warps: 8 }
                { vector: 1, lanes: 1, split: 32, warps: 8 }
            }
            rowsplit wide [f16 bf16] {
                { vector: 8, lanes: 16, split: 1, warps: 8 }
                { vector: 8, lanes: 8, split: 4, warps: 8 }
                { vector: 2, lanes: 16, split: 2, warps: 8 }
                { vector: 1, lanes: 32, split: 1, warps: 8 }
                { vector: 1, lanes: 1, split: 32, warps: 8 }
            }

            // For ablations: each differs in one idea from the kernel of its shape.
            rowsplit noresidue [f32] {
                { vector: 4, lanes: 32, split: 1, warps: 8 }
                { vector: 4, lanes: 8, split: 4, warps: 8 }
            }
            rowsplit prescaled [f32] {
                { vector: 4, lanes: 32, split: 1, warps: 8 }
                { vector: 4, lanes: 8, split: 4, warps: 8 }
            }

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
                { columns: 128, chunks: 2, columns_per_prefetch: 2, producers: 4 x 4, stages: 4, cluster: 1 }
                { columns: 128, chunks: 2, columns_per_prefetch: 2, producers: 3 x 4, stages: 3, cluster: 2 }
                { columns: 128, chunks: 2, columns_per_prefetch: 4, producers: 4 x 4, stages: 4, cluster: 1 }
                { columns: 128, chunks: 2, columns_per_prefetch: 4, producers: 3 x 4, stages: 3, cluster: 2 }
                { columns: 64, chunks: 2, columns_per_prefetch: 2, producers: 6 x 4, stages: 6, cluster: 1 }
                { columns: 64, chunks: 2, columns_per_prefetch: 2, producers: 6 x 4, stages: 6, cluster: 2 }
                { columns: 64, chunks: 4, columns_per_prefetch: 4, producers: 3 x 8, stages: 3, cluster: 1 }
                { columns: 64, chunks: 4, columns_per_prefetch: 4, producers: 3 x 8, stages: 3, cluster: 2 }
                { columns: 32, chunks: 4, columns_per_prefetch: 2, producers: 3 x 8, stages: 3, cluster: 1 }
                { columns: 32, chunks: 4, columns_per_prefetch: 2, producers: 3 x 8, stages: 3, cluster: 2 }
                { columns: 32, chunks: 4, columns_per_prefetch: 4, producers: 4 x 4, stages: 4, cluster: 1 }
                { columns: 32, chunks: 4, columns_per_prefetch: 4, producers: 4 x 4, stages: 4, cluster: 2 }
                { columns: 32, chunks: 4, columns_per_prefetch: 8, producers: 4 x 4, stages: 4, cluster: 1 }
            }
            #[cfg(lacuna_sm = "90")]
            prepacked [f16 bf16] {
                { columns: 128, chunks: 2, producers: 4 x 2, packs_ahead: 10, cluster: 1 }
                { columns: 128, chunks: 2, producers: 4 x 2, packs_ahead: 10, cluster: 2 }
                { columns: 64, chunks: 4, producers: 3 x 4, packs_ahead: 8, cluster: 1 }
                { columns: 64, chunks: 4, producers: 3 x 4, packs_ahead: 8, cluster: 2 }
                { columns: 32, chunks: 4, producers: 4 x 4, packs_ahead: 7, cluster: 1 }
                { columns: 32, chunks: 4, producers: 4 x 4, packs_ahead: 7, cluster: 2 }
            }
        }
    };

    // Columns a lane loads at once, lanes of a subwarp, subwarps that split a row, warps of a thread block: spmm/config.rs.
    // The flag is a form: spmm/form.rs.
    ($part:ident rowsplit [$($form:ident)?] $types:ident
        { vector: $vector:literal, lanes: $lanes:literal, split: $split:literal, warps: $warps:literal }) => {
        $crate::entry_part! { $part
            [
                "spmm_", stringify!($types), "_rowsplit_v", $vector, "_l", $lanes, "_s", $split, "_w", $warps
                $(, "_", stringify!($form))?
            ]
            $crate::spmm::RowSplit<
                $crate::value_of!($types), $crate::index_of!($types), $vector, $lanes, $split, $warps
                $(, $crate::spmm_form!($form))?
            >
        }
    };
    // What tiles read of a pattern.
    ($part:ident bitmask [] $index:ident {}) => {
        $crate::entry_part! { $part ["spmm_bitmask_", stringify!($index)] $crate::spmm::Bitmasks<$index> }
    };
    // A tile's rows, its columns, and its slices of K; consumer warps along rows and columns, for each slice; groups of
    // producers by warps of a group; stages of shared memory. The flag says what a product is.
    ($part:ident mma [$products:ident] f32 {
        tile: $rows:literal x $columns:literal x $slices:literal, warps: $wm:literal x $wn:literal,
        producers: $groups:literal x $warps:literal, stages: $stages:literal
    }) => {
        $crate::entry_part! { $part
            ["spmm_f32_mma_", $rows, "x", $columns, "_k", $slices, "_", stringify!($products)]
            $crate::spmm::MmaTiles<
                $crate::Single<$crate::products_of!($products)>,
                $crate::spmm::StagesOf<$slices, $groups, $warps, $stages>,
                { $rows / (8 * $wm) }, { $columns / (16 * $wn) }, $wm, $wn
            >
        }
    };
    ($part:ident mma [] $types:ident {
        tile: $rows:literal x $columns:literal x $slices:literal, warps: $wm:literal x $wn:literal,
        producers: $groups:literal x $warps:literal, stages: $stages:literal
    }) => {
        $crate::entry_part! { $part
            ["spmm_", stringify!($types), "_mma_", $rows, "x", $columns, "_k", $slices]
            $crate::spmm::MmaTiles<
                $crate::Half<$crate::value_of!($types)>,
                $crate::spmm::StagesOf<$slices, $groups, $warps, $stages>,
                { $rows / (8 * $wm) }, { $columns / (16 * $wn) }, $wm, $wn
            >
        }
    };
    // Columns of a tile of 64 rows, chunks of a step along K; of a step of a row producers load ahead what one nonzero in so
    // many columns makes; groups of producers by warps of a group; stages of shared memory; thread blocks of a cluster.
    ($part:ident wgmma [] $types:ident {
        columns: $columns:literal, chunks: $chunks:literal, columns_per_prefetch: $prefetch:literal,
        producers: $groups:literal x $warps:literal, stages: $stages:literal, cluster: $cluster:tt
    }) => {
        $crate::entry_part! { $part
            ["spmm_", stringify!($types), "_wgmma_64x", $columns, "_p", $prefetch, $crate::cluster_part!($cluster)]
            $crate::spmm::WgmmaTiles<
                $crate::value_of!($types), $crate::spmm::StagesOf<$chunks, $groups, $warps, $stages>,
                { $columns / 2 }, $prefetch, $cluster
            >
        }
    };
    // The same; producers load so many packs ahead, and each group has a stage of its own.
    ($part:ident prepacked [] $types:ident {
        columns: $columns:literal, chunks: $chunks:literal, producers: $groups:literal x $warps:literal,
        packs_ahead: $ahead:literal, cluster: $cluster:tt
    }) => {
        $crate::entry_part! { $part
            ["spmm_", stringify!($types), "_prepacked_64x", $columns, $crate::cluster_part!($cluster)]
            $crate::spmm::PrepackedTiles<
                $crate::value_of!($types), $crate::spmm::StagesOf<$chunks, $groups, $warps, $groups>,
                { $columns / 2 }, $ahead, $cluster
            >
        }
    };
}

/// The form of a row-split kernel.
#[doc(hidden)]
#[macro_export]
macro_rules! spmm_form {
    (persistent) => {
        $crate::spmm::Persistent
    };
    (hybrid) => {
        $crate::spmm::Hybrid
    };
    (wide) => {
        $crate::spmm::Wide
    };
    (noresidue) => {
        $crate::spmm::NoResidue
    };
    (prescaled) => {
        $crate::spmm::PreScaled
    };
}

/// The products that tensor cores make of `f32`.
#[doc(hidden)]
#[macro_export]
macro_rules! products_of {
    (split) => {
        $crate::Split
    };
    (tf32) => {
        $crate::Tf32
    };
}
