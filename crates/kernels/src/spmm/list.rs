//! SpMM's entry points.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! spmm {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            // [columns a lane loads at once, lanes of a subwarp, subwarps that split a row, warps of a thread block], as in
            // spmm/row_split.rs
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
                [8 32 1 8] [8 16 1 8] [8 16 1 32] [8 16 2 8] [8 8 1 8] [8 8 4 8] [8 4 8 8] [8 2 2 8]
                [8 2 4 8] [4 8 4 8]
                [2 16 2 8]
                [1 32 1 8] [1 8 4 8] [1 1 32 8]
            }

            // Of two kernels that the heuristic rates alike it takes the first, so the order of groups matters.
            rowsplit persistent [f32] {
                [4 32 1 32] [4 32 1 24] [4 16 1 32] [4 16 2 32] [4 8 1 32] [4 8 1 24] [4 8 2 32]
                [4 8 4 32] [1 32 1 32]
            }
            rowsplit persistent [f32_u16] { [4 32 1 32] [4 16 2 32] }
            rowsplit hybrid [f32 f32_u16] { [4 8 4 32] [4 16 2 32] }
            rowsplit persistent [f32_u16] { [4 8 1 32] }
            rowsplit hybrid [f16 bf16 f16_u16 bf16_u16] { [8 4 8 24] [8 8 4 24] [8 16 2 24] }

            // For A with more than 65,535 columns; of `f32` several whole rows a warp also for long rows in pieces.
            rowsplit wide [f32] {
                [4 32 1 8] [4 16 1 8] [4 8 1 8] [4 8 4 8] [4 4 2 8] [4 4 8 8]
                [2 16 1 8]
                [1 32 1 8] [1 16 1 8] [1 8 1 8] [1 8 4 8] [1 1 32 8]
            }
            rowsplit wide [f16 bf16] {
                [8 32 1 8] [8 16 1 8] [8 8 1 8] [8 8 4 8] [8 2 2 8]
                [2 16 2 8]
                [1 32 1 8] [1 1 32 8]
            }

            // The greatest or least product in place of the sum, and then which nonzero won: spmm/extremum.rs.
            extremum [f32] { [4 32 1 8] [4 16 1 8] [4 8 4 8] [4 4 2 8] [1 32 1 8] [1 8 4 8] }
            extremum [f32_u16] { [4 16 1 8] [1 8 4 8] }
            extremum [f16 bf16] { [8 16 1 8] [8 4 4 8] [1 32 1 8] }
            extremum [f16_u16 bf16_u16] { [8 8 2 8] [1 8 4 8] }
            extremum winners [f32] { [4 32 1 8] [4 16 1 8] [4 8 4 8] [4 4 2 8] [1 32 1 8] [1 8 4 8] }
            extremum winners [f32_u16] { [4 16 1 8] [1 8 4 8] }
            extremum winners [f16 bf16] { [8 16 1 8] [8 4 4 8] [1 32 1 8] }
            extremum winners [f16_u16 bf16_u16] { [8 8 2 8] [1 8 4 8] }

            // Their gradients.
            values_gradient [f32 f16 bf16 f32_u16 f16_u16 bf16_u16] { {} }
            b_gradient [f32 f16 bf16 f32_u16 f16_u16 bf16_u16] { {} }

            // Pieces of long rows become rows: spmm/pieces.rs.
            join_pieces [f32 f16 bf16] { {} }
            join_pieces extremum [f32 f16 bf16] { {} }
            join_pieces winners [f32 f16 bf16] { {} }

            // For ablations: each differs in one idea from the kernel of its shape.
            rowsplit noresidue [f32] { [4 32 1 8] [4 8 4 8] }
            rowsplit prescaled [f32] { [4 32 1 8] [4 8 4 8] }

            bitmask [u32 u16] { {} }

            // [rows x columns of a tile x slices of K, consumer warps of a slice along rows x columns,
            // groups of producers x warps of a group, stages of shared memory]
            #[cfg(lacuna_sm = "80")]
            mma split [f32] {
                [64 x 128 x 2, 1 x 4, 1 x 4, 4] [32 x 128 x 2, 1 x 4, 2 x 4, 4]
                [64 x 64 x 2, 2 x 2, 1 x 4, 3] [32 x 64 x 2, 1 x 2, 1 x 4, 4]
                [32 x 64 x 4, 1 x 2, 2 x 4, 4] [16 x 64 x 4, 1 x 2, 2 x 4, 4]
                [64 x 32 x 4, 1 x 1, 2 x 4, 4] [32 x 32 x 8, 1 x 1, 1 x 8, 3]
                [32 x 32 x 4, 1 x 1, 1 x 4, 3] [16 x 32 x 8, 1 x 1, 2 x 4, 4]
                [16 x 32 x 4, 1 x 1, 1 x 4, 3] [8 x 32 x 8, 1 x 1, 2 x 4, 4]
            }
            #[cfg(lacuna_sm = "80")]
            mma tf32 [f32] {
                [64 x 128 x 2, 1 x 4, 1 x 4, 4] [64 x 64 x 2, 2 x 2, 1 x 4, 3]
                [64 x 32 x 4, 1 x 1, 2 x 4, 4] [32 x 32 x 8, 1 x 1, 1 x 8, 3]
                [16 x 32 x 8, 1 x 1, 2 x 4, 4] [8 x 32 x 8, 1 x 1, 2 x 4, 4]
            }
            #[cfg(lacuna_sm = "80")]
            mma [f16 bf16] {
                [64 x 128 x 1, 2 x 2, 2 x 4, 4] [64 x 64 x 1, 2 x 2, 2 x 4, 4]
                [16 x 64 x 4, 1 x 2, 1 x 8, 3] [64 x 32 x 2, 2 x 1, 2 x 4, 4]
                [32 x 32 x 4, 2 x 1, 2 x 4, 4] [16 x 32 x 4, 1 x 1, 2 x 4, 4]
                [8 x 32 x 4, 1 x 1, 1 x 8, 4]
            }

            // [rows x columns of a tile x chunks of a step along K, of a step of a row producers load ahead what one
            // nonzero in so many columns makes, groups of producers x warps of a group, stages of shared memory,
            // thread blocks of a cluster where there is more than one]
            #[cfg(lacuna_sm = "90")]
            wgmma [f16 bf16] {
                [128 x 128 x 2, 4, 3 x 4, 3] [64 x 128 x 2, 2, 4 x 4, 4]
                [64 x 128 x 2, 2, 3 x 4, 3, cluster: 2] [64 x 128 x 2, 4, 4 x 4, 4]
                [64 x 128 x 2, 4, 3 x 4, 3, cluster: 2]
                [64 x 64 x 2, 2, 6 x 4, 6] [64 x 64 x 2, 2, 6 x 4, 6, cluster: 2]
                [64 x 64 x 4, 4, 3 x 8, 3] [64 x 64 x 4, 4, 3 x 8, 3, cluster: 2]
                [64 x 32 x 4, 2, 3 x 8, 3] [64 x 32 x 4, 2, 3 x 8, 3, cluster: 2]
                [64 x 32 x 4, 4, 4 x 4, 4] [64 x 32 x 4, 4, 4 x 4, 4, cluster: 2]
                [64 x 32 x 4, 8, 4 x 4, 4]
            }
            // The same for N, strides and addresses in fours.
            #[cfg(lacuna_sm = "90")]
            wgmma fours [f16 bf16] {
                [64 x 64 x 2, 2, 6 x 4, 6] [64 x 32 x 4, 2, 3 x 8, 3] [64 x 32 x 4, 4, 4 x 4, 4]
                [64 x 32 x 4, 4, 4 x 4, 4, cluster: 2]
            }
            // [rows x columns of a tile x chunks, groups of producers x warps of a group, packs that producers load ahead,
            // thread blocks]; tiles of `f32` have 128 rows, and chunks 32 columns of A
            #[cfg(lacuna_sm = "90")]
            prepacked [f16 bf16] {
                [192 x 128 x 2, 2 x 3, 10] [192 x 128 x 2, 2 x 3, 10, cluster: 2]
                [192 x 32 x 2, 3 x 6, 6] [192 x 32 x 2, 3 x 6, 6, cluster: 2]
                [128 x 128 x 2, 3 x 4, 10] [128 x 128 x 2, 3 x 4, 10, cluster: 2]
                [128 x 64 x 2, 4 x 4, 7] [128 x 32 x 2, 4 x 4, 8]
                [64 x 128 x 2, 4 x 2, 10] [64 x 128 x 2, 4 x 2, 10, cluster: 2]
            }
            // The same with B copied by threads.
            #[cfg(lacuna_sm = "90")]
            prepacked by_threads [f16 bf16] {
                [64 x 64 x 4, 3 x 4, 8] [64 x 64 x 4, 3 x 4, 8, cluster: 2]
                [64 x 32 x 4, 4 x 4, 7] [64 x 32 x 4, 4 x 4, 7, cluster: 2]
            }
            #[cfg(lacuna_sm = "90")]
            prepacked fours [f16 bf16] {
                [64 x 64 x 4, 3 x 4, 8] [64 x 32 x 4, 4 x 4, 7] [64 x 32 x 4, 4 x 4, 7, cluster: 2]
            }
            #[cfg(lacuna_sm = "90")]
            prepacked tf32 [f32] {
                [128 x 2, 3 x 2, 16] [128 x 2, 3 x 2, 16, cluster: 2] [64 x 2, 4 x 2, 20]
                [64 x 2, 4 x 2, 20, cluster: 2]
            }
            #[cfg(lacuna_sm = "90")]
            prepacked splittf32 [f32] {
                [128 x 1, 4 x 2, 10] [128 x 1, 4 x 2, 10, cluster: 2] [64 x 1, 5 x 2, 10]
                [64 x 1, 5 x 2, 10, cluster: 2]
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
    // The flag says that it tells which nonzeros won.
    ($part:ident extremum [$($winners:ident)?] $types:ident
        [$vector:literal $lanes:literal $split:literal $warps:literal]) => {
        $crate::entry_part! { $part
            [
                "spmm_", stringify!($types), "_extremum_v", $vector, "_l", $lanes, "_s", $split, "_w", $warps
                $(, "_", stringify!($winners))?
            ]
            $crate::spmm::Extremum<
                $crate::list::value_of::$types, $crate::list::index_of::$types, $vector, $lanes, $split, $warps,
                { $crate::has_flag!($($winners)?) }
            >
        }
    };
    ($part:ident values_gradient [] $types:ident {}) => {
        $crate::entry_part! { $part
            ["spmm_", stringify!($types), "_values_gradient"]
            $crate::spmm::ValuesGradient<$crate::list::value_of::$types, $crate::list::index_of::$types>
        }
    };
    ($part:ident b_gradient [] $types:ident {}) => {
        $crate::entry_part! { $part
            ["spmm_", stringify!($types), "_b_gradient"]
            $crate::spmm::BGradient<$crate::list::value_of::$types, $crate::list::index_of::$types>
        }
    };
    ($part:ident join_pieces [] $types:ident {}) => {
        $crate::entry_part! { $part
            ["spmm_", stringify!($types), "_join_pieces"]
            $crate::spmm::JoinPieces<$crate::list::value_of::$types, false, false>
        }
    };
    ($part:ident join_pieces [extremum] $types:ident {}) => {
        $crate::entry_part! { $part
            ["spmm_", stringify!($types), "_join_pieces_extremum"]
            $crate::spmm::JoinPieces<$crate::list::value_of::$types, true, false>
        }
    };
    ($part:ident join_pieces [winners] $types:ident {}) => {
        $crate::entry_part! { $part
            ["spmm_", stringify!($types), "_join_pieces_winners"]
            $crate::spmm::JoinPieces<$crate::list::value_of::$types, true, true>
        }
    };
    // What tiles read of a pattern.
    ($part:ident bitmask [] $index:ident {}) => {
        $crate::entry_part! { $part ["spmm_bitmask_", stringify!($index)] $crate::spmm::Bitmasks<$index> }
    };
    // The flag says what a product of `f32` is.
    ($part:ident mma [$($products:ident)?] $types:ident [
        $rows:literal x $columns:literal x $slices:literal, $wm:literal x $wn:literal,
        $groups:literal x $warps:literal, $stages:literal
    ]) => {
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
    // The flag says that N, strides and addresses may be in fours.
    ($part:ident wgmma [] $types:ident $shape:tt) => { $crate::spmm! { @wgmma WgmmaTiles $part [] $types $shape } };
    ($part:ident wgmma [fours] $types:ident $shape:tt) => { $crate::spmm! { @wgmma WgmmaTilesOfFours $part [fours] $types $shape } };
    (@wgmma $kernel:ident $part:ident [$($fours:ident)?] $types:ident [
        $rows:literal x $columns:literal x $chunks:literal, $prefetch:literal, $groups:literal x $warps:literal, $stages:literal
        $(, cluster: $cluster:literal)?
    ]) => {
        $crate::entry_part! { $part
            ["spmm_", stringify!($types), "_wgmma_", $rows, "x", $columns, "_p", $prefetch $(, "_c", $cluster)? $(, "_", stringify!($fours))?]
            $crate::spmm::$kernel<
                $crate::list::value_of::$types, $crate::spmm::StagesOf<$chunks, $groups, $warps, $stages>,
                { $columns / 2 }, $prefetch, { $rows / 64 }, { 1 $(* $cluster)? }
            >
        }
    };
    // Each group of producers has a stage of its own.
    ($part:ident prepacked [] $types:ident $shape:tt) => { $crate::spmm! { @prepacked PrepackedTiles $part [] $types $shape } };
    ($part:ident prepacked [by_threads] $types:ident $shape:tt) => { $crate::spmm! { @prepacked PrepackedTilesByThreads $part [] $types $shape } };
    ($part:ident prepacked [fours] $types:ident $shape:tt) => { $crate::spmm! { @prepacked PrepackedTilesOfFours $part [fours] $types $shape } };
    (@prepacked $kernel:ident $part:ident [$($fours:ident)?] $types:ident [
        $rows:literal x $columns:literal x $chunks:literal, $groups:literal x $warps:literal, $ahead:literal
        $(, cluster: $cluster:literal)?
    ]) => {
        $crate::entry_part! { $part
            ["spmm_", stringify!($types), "_prepacked_", $rows, "x", $columns $(, "_c", $cluster)? $(, "_", stringify!($fours))?]
            $crate::spmm::$kernel<
                $crate::list::value_of::$types, $crate::spmm::StagesOf<$chunks, $groups, $warps, $groups>,
                { $columns / 2 }, $ahead, { $rows / 64 }, { 1 $(* $cluster)? }
            >
        }
    };
    // The flag says what a product is.
    ($part:ident prepacked [$products:ident] f32 [
        $columns:literal x $chunks:literal, $groups:literal x $warps:literal, $ahead:literal
        $(, cluster: $cluster:literal)?
    ]) => {
        $crate::entry_part! { $part
            ["spmm_f32_prepacked_128x", $columns $(, "_c", $cluster)?, "_", stringify!($products)]
            $crate::spmm::SinglePrepackedTiles<
                $crate::list::products_of::$products, $crate::spmm::StagesOf<$chunks, $groups, $warps, $groups>,
                $ahead, { $columns / 64 }, { 1 $(* $cluster)? }
            >
        }
    };
}
