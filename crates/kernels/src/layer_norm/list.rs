//! The entry points of layer normalisation.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! layer_norm {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            // [features a thread loads at once, threads that share a row].
            rows [f32] { [4 32] [4 256] [1 32] [1 256] }
            rows [f16 bf16] { [8 32] [8 256] [1 32] [1 256] }
            // [features a thread loads at once].
            channels [f32 f16 bf16] { [1] }
        }
    };

    ($part:ident rows [] $types:ident [$vector:literal $lanes:literal]) => {
        $crate::entry_part! { $part
            ["layer_norm_", stringify!($types), "_rows_v", $vector, "_l", $lanes]
            $crate::layer_norm::LayerNormRows<$crate::list::value_of::$types, $vector, $lanes>
        }
    };
    ($part:ident channels [] $types:ident [$vector:literal]) => {
        $crate::entry_part! { $part
            ["layer_norm_", stringify!($types), "_channels"]
            $crate::layer_norm::LayerNormChannels<$crate::list::value_of::$types>
        }
    };
}
