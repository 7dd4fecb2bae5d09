//! The entry points of transposes of dense matrices.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! dense_transpose {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            // [rows of a tile, columns of it], which follow from the width.
            tile [b32] { [32 64] }
            tile [b16] { [64 64] }
        }
    };

    ($part:ident tile [] $bits:ident [$rows:literal $columns:literal]) => {
        $crate::entry_part! { $part
            ["dense_transpose_", stringify!($bits), "_", $rows, "x", $columns]
            $crate::dense_transpose::DenseTranspose<$crate::list::value_of::$bits, $rows, $columns>
        }
    };
}
