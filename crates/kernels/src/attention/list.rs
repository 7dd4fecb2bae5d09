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
            }
            row [f16 bf16 f16_u16 bf16_u16] {
                [8 4 1 4] [8 8 1 4] [8 8 2 2] [8 16 2 2]
                [1 32 1 8] [1 32 2 8] [1 32 8 4]
            }

            query4 [f32] {
                { vector: 4, lanes: 8, chunks: 1, keys: 4, pair_keys: 8, warps: 16 }
                { vector: 4, lanes: 8, chunks: 2, keys: 2, pair_keys: 4, warps: 12 }
                { vector: 4, lanes: 16, chunks: 2, keys: 2, pair_keys: 4, warps: 8 }
            }
            query4 [f16] {
                { vector: 8, lanes: 4, chunks: 1, keys: 2, pair_keys: 4, warps: 12 }
                { vector: 8, lanes: 8, chunks: 1, keys: 2, pair_keys: 4, warps: 12 }
                { vector: 8, lanes: 8, chunks: 2, keys: 1, pair_keys: 2, warps: 8 }
            }
            query4 [bf16] {
                { vector: 8, lanes: 4, chunks: 1, keys: 2, pair_keys: 4, warps: 12 }
                { vector: 8, lanes: 8, chunks: 1, keys: 1, pair_keys: 2, warps: 12 }
                { vector: 8, lanes: 8, chunks: 2, keys: 1, pair_keys: 2, warps: 8 }
            }
        }
    };

    ($part:ident row [] $types:ident [$vector:literal $lanes:literal $chunks:literal $keys:literal]) => {
        $crate::entry_part! { $part
            ["attention_", stringify!($types), "_row_v", $vector, "_l", $lanes, "_c", $chunks]
            $crate::attention::Rows<
                $crate::list::value_of::$types, $crate::list::index_of::$types, $vector, $lanes, $chunks, $keys
            >
        }
    };
    // Tiles of four queries. Keys are those that all four see, and those that only a pair sees.
    ($part:ident query4 [] $types:ident {
        vector: $vector:literal, lanes: $lanes:literal, chunks: $chunks:literal,
        keys: $keys:literal, pair_keys: $pair:literal, warps: $warps:literal
    }) => {
        $crate::entry_part! { $part
            ["attention_", stringify!($types), "_query4_v", $vector, "_l", $lanes, "_c", $chunks]
            $crate::attention::QueryTiles<$crate::list::value_of::$types, $vector, $lanes, $chunks, $keys, $pair, $warps>
        }
    };
}
