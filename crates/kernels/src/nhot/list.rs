//! The entry points of the N-hot lookup.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! nhot {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            lookup [f32] {
                { vector: 4, lanes: 8, split: 1, warps: 8, rows: 8 }
                { vector: 4, lanes: 8, split: 4, warps: 8, rows: 8 }
                { vector: 4, lanes: 8, split: 32, warps: 8, rows: 8 }
                { vector: 4, lanes: 16, split: 1, warps: 8, rows: 8 }
                { vector: 4, lanes: 16, split: 8, warps: 4, rows: 8 }
                { vector: 4, lanes: 32, split: 1, warps: 8, rows: 8 }
                { vector: 4, lanes: 32, chunks: 2, split: 1, warps: 8, rows: 4 }
                { vector: 4, lanes: 32, split: 4, warps: 4, rows: 8 }
                { vector: 4, lanes: 32, split: 8, warps: 8, rows: 8 }
                { vector: 2, lanes: 32, split: 1, warps: 8, rows: 8 }
                { vector: 1, lanes: 8, split: 4, warps: 8, rows: 8 }
                { vector: 1, lanes: 32, split: 1, warps: 8, rows: 8 }
                { vector: 1, lanes: 32, split: 8, warps: 8, rows: 8 }
            }
            lookup [f16 bf16] {
                { vector: 8, lanes: 8, split: 1, warps: 8, rows: 8 }
                { vector: 8, lanes: 8, split: 32, warps: 8, rows: 8 }
                { vector: 8, lanes: 16, split: 1, warps: 8, rows: 8 }
                { vector: 8, lanes: 16, split: 8, warps: 4, rows: 8 }
                { vector: 8, lanes: 32, split: 1, warps: 8, rows: 8 }
                { vector: 8, lanes: 32, split: 4, warps: 4, rows: 8 }
                { vector: 8, lanes: 32, split: 8, warps: 8, rows: 8 }
                { vector: 4, lanes: 32, split: 1, warps: 8, rows: 8 }
                { vector: 2, lanes: 32, split: 1, warps: 8, rows: 8 }
                { vector: 1, lanes: 32, split: 1, warps: 8, rows: 8 }
                { vector: 1, lanes: 32, split: 8, warps: 8, rows: 8 }
            }

            // Tables with more elements than 32 bits count, or indices that are wide already.
            lookup [f32_u64] {
                { vector: 4, lanes: 8, split: 1, warps: 8, rows: 8 }
                { vector: 4, lanes: 32, split: 1, warps: 8, rows: 8 }
                { vector: 4, lanes: 32, split: 8, warps: 8, rows: 8 }
                { vector: 1, lanes: 32, split: 1, warps: 8, rows: 8 }
            }
            lookup [f16_u64 bf16_u64] {
                { vector: 8, lanes: 16, split: 1, warps: 8, rows: 8 }
                { vector: 8, lanes: 32, split: 8, warps: 8, rows: 8 }
                { vector: 1, lanes: 32, split: 1, warps: 8, rows: 8 }
            }

            weight_gradient [f32 f32_u64] {
                { vector: 4 }
                { vector: 1 }
            }
            weight_gradient [f16 f16_u64 bf16 bf16_u64] {
                { vector: 8 }
                { vector: 1 }
            }
        }
    };

    // Elements a lane loads at once, lanes of a row, subwarps that split a bag, warps of a thread block, rows of the table
    // under way together. A lane has one vector of a row, or as many as `chunks` says.
    ($part:ident lookup [] $types:ident
        { vector: $vector:literal, lanes: $lanes:literal, split: $split:literal, warps: $warps:literal, rows: $rows:literal }) => {
        $crate::entry_part! { $part
            ["nhot_", stringify!($types), "_lookup_v", $vector, "_l", $lanes, "_s", $split]
            $crate::nhot::Lookup<
                $crate::value_of!($types), $crate::index_of!($types), $vector, $lanes, 1, $split, $warps, $rows
            >
        }
    };
    ($part:ident lookup [] $types:ident {
        vector: $vector:literal, lanes: $lanes:literal, chunks: $chunks:literal,
        split: $split:literal, warps: $warps:literal, rows: $rows:literal
    }) => {
        $crate::entry_part! { $part
            ["nhot_", stringify!($types), "_lookup_v", $vector, "_l", $lanes, "_c", $chunks, "_s", $split]
            $crate::nhot::Lookup<
                $crate::value_of!($types), $crate::index_of!($types), $vector, $lanes, $chunks, $split, $warps, $rows
            >
        }
    };
    // Elements a lane loads at once.
    ($part:ident weight_gradient [] $types:ident { vector: $vector:literal }) => {
        $crate::entry_part! { $part
            ["nhot_weight_gradient_", stringify!($types), "_v", $vector]
            $crate::nhot::WeightGradient<$crate::value_of!($types), $crate::index_of!($types), $vector>
        }
    };
}
