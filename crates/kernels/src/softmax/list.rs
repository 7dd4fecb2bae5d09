//! Softmax's entry points.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! softmax {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            // [values a lane loads at once, such vectors that it keeps in registers, lanes of a row, warps of a thread block]
            forward [f32] { [4 8 8 8] [4 8 32 8] [4 8 256 8] }
            forward [f16 bf16] { [8 2 16 8] [8 4 32 8] [8 4 256 8] }
            backward [f32] { [4 8 8 8] [4 8 32 8] [4 8 256 8] }
            backward [f16 bf16] { [8 2 16 8] [8 4 32 8] [8 4 256 8] }
        }
    };

    ($part:ident forward [] $types:ident [$vector:literal $chunks:literal $lanes:literal $warps:literal]) => {
        $crate::entry_part! { $part
            ["softmax_", stringify!($types), "_l", $lanes, "_w", $warps]
            $crate::softmax::Forward<$crate::list::value_of::$types, $vector, $lanes, $warps, $chunks>
        }
    };
    ($part:ident backward [] $types:ident [$vector:literal $chunks:literal $lanes:literal $warps:literal]) => {
        $crate::entry_part! { $part
            ["softmax_backward_", stringify!($types), "_l", $lanes, "_w", $warps]
            $crate::softmax::Backward<$crate::list::value_of::$types, $vector, $lanes, $warps, $chunks>
        }
    };
}
