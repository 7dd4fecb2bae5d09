//! The entry points of the N-hot lookup.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! nhot {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            // [elements a lane loads at once, lanes of a row, subwarps that split a bag, warps of a thread block, rows of the
            // table under way together]. A lane has one vector of a row, or as many as `chunks` says.
            lookup [f32] {
                [4 8 1 8 8] [4 8 4 8 8] [4 8 32 8 8] [4 16 1 8 8] [4 16 8 4 8] [4 32 1 8 8]
                [4 32 1 8 4, chunks: 2] [4 32 4 4 8] [4 32 8 8 8]
                [2 32 1 8 8]
                [1 8 4 8 8] [1 32 1 8 8] [1 32 8 8 8]
            }
            lookup [f16 bf16] {
                [8 8 1 8 8] [8 8 32 8 8] [8 16 1 8 8] [8 16 8 4 8] [8 32 1 8 8] [8 32 4 4 8]
                [8 32 8 8 8]
                [4 32 1 8 8]
                [2 32 1 8 8]
                [1 32 1 8 8] [1 32 8 8 8]
            }

            // Tables with more elements than 32 bits count, or indices that are wide already.
            lookup [f32_u64] { [4 8 1 8 8] [4 32 1 8 8] [4 32 8 8 8] [1 32 1 8 8] }
            lookup [f16_u64 bf16_u64] { [8 16 1 8 8] [8 32 8 8 8] [1 32 1 8 8] }

            // [elements a lane loads at once]
            weight_gradient [f32 f32_u64] { [4] [1] }
            weight_gradient [f16 f16_u64 bf16 bf16_u64] { [8] [1] }
        }
    };

    ($part:ident lookup [] $types:ident
        [$vector:literal $lanes:literal $split:literal $warps:literal $rows:literal $(, chunks: $chunks:literal)?]) => {
        $crate::entry_part! { $part
            [
                "nhot_", stringify!($types), "_lookup_v", $vector, "_l", $lanes
                $(, "_c", $chunks)?, "_s", $split
            ]
            $crate::nhot::Lookup<
                $crate::list::value_of::$types, $crate::list::index_of::$types,
                $vector, $lanes, { 1 $(* $chunks)? }, $split, $warps, $rows
            >
        }
    };
    ($part:ident weight_gradient [] $types:ident [$vector:literal]) => {
        $crate::entry_part! { $part
            ["nhot_weight_gradient_", stringify!($types), "_v", $vector]
            $crate::nhot::WeightGradient<$crate::list::value_of::$types, $crate::list::index_of::$types, $vector>
        }
    };
}
