//! The entry points of pooling.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! pool {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            // Each for vectors of 16 bytes, and for single elements. Of kernels as good as each other the first is taken.
            // [elements a thread loads at once].
            planes [f32] { [4] [1] }
            planes [f16 bf16] { [8] [1] }
            channels [f32] { [4] [1] }
            channels [f16 bf16] { [8] [1] }
            // [rows and columns of a window, stride, results of a thread, channels of a thread].
            window [f32] { [2 2 1 4] [2 2 4 1] [3 2 1 4] [3 2 4 1] [3 1 2 4] [3 1 4 1] }
            window [f16 bf16] { [2 2 1 8] [2 2 4 1] [3 2 1 8] [3 2 4 1] [3 1 2 8] [3 1 4 1] }
            // [channels of a thread].
            any [f32] { [4] [1] }
            any [f16 bf16] { [8] [1] }
        }
    };

    ($part:ident planes [] $value:ident [$v:literal]) => {
        $crate::entry_part! { $part
            ["pool_", stringify!($value), "_planes_v", $v]
            $crate::pool::PlanePool<$crate::list::value_of::$value, $v>
        }
    };
    ($part:ident channels [] $value:ident [$v:literal]) => {
        $crate::entry_part! { $part
            ["pool_", stringify!($value), "_channels_v", $v]
            $crate::pool::ChannelPool<$crate::list::value_of::$value, $v>
        }
    };
    ($part:ident window [] $value:ident [$w:literal $stride:literal $rows:literal $v:literal]) => {
        $crate::entry_part! { $part
            ["pool_", stringify!($value), "_window_", $w, "x", $w, "_s", $stride, "_r", $rows, "_v", $v]
            $crate::pool::WindowPool<$crate::list::value_of::$value, $w, $stride, $rows, $v>
        }
    };
    ($part:ident any [] $value:ident [$v:literal]) => {
        $crate::entry_part! { $part
            ["pool_", stringify!($value), "_any_v", $v] $crate::pool::AnyPool<$crate::list::value_of::$value, $v>
        }
    };
}
