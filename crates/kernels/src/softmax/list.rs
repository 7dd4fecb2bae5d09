//! Softmax's entry points.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! softmax {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            forward [f32] {
                { lanes: 8, warps: 8, vector: 4, chunks: 8 }
                { lanes: 32, warps: 8, vector: 4, chunks: 8 }
                { lanes: 256, warps: 8, vector: 4, chunks: 8 }
            }
            forward [f16 bf16] {
                { lanes: 16, warps: 8, vector: 8, chunks: 2 }
                { lanes: 32, warps: 8, vector: 8, chunks: 4 }
                { lanes: 256, warps: 8, vector: 8, chunks: 4 }
            }
            backward [f32] {
                { lanes: 8, warps: 8, vector: 4, chunks: 8 }
                { lanes: 32, warps: 8, vector: 4, chunks: 8 }
                { lanes: 256, warps: 8, vector: 4, chunks: 8 }
            }
            backward [f16 bf16] {
                { lanes: 16, warps: 8, vector: 8, chunks: 2 }
                { lanes: 32, warps: 8, vector: 8, chunks: 4 }
                { lanes: 256, warps: 8, vector: 8, chunks: 4 }
            }
        }
    };

    // Lanes of a row, warps of a thread block, values a lane loads at once, and such vectors that it keeps in registers.
    ($part:ident forward [] $types:ident
        { lanes: $lanes:literal, warps: $warps:literal, vector: $vector:literal, chunks: $chunks:literal }) => {
        $crate::entry_part! { $part
            ["softmax_", stringify!($types), "_l", $lanes, "_w", $warps]
            $crate::softmax::Forward<$crate::value_of!($types), $vector, $lanes, $warps, $chunks>
        }
    };
    ($part:ident backward [] $types:ident
        { lanes: $lanes:literal, warps: $warps:literal, vector: $vector:literal, chunks: $chunks:literal }) => {
        $crate::entry_part! { $part
            ["softmax_backward_", stringify!($types), "_l", $lanes, "_w", $warps]
            $crate::softmax::Backward<$crate::value_of!($types), $vector, $lanes, $warps, $chunks>
        }
    };
}
