//! The entry points of bias and activation.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! bias_act {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            // [elements a thread loads at once, threads that share a row].
            // Where shapes are as good as each other, the first is taken: more rows of a block share a bias per column.
            row_tile [f32] { [4 32] [4 8] [4 256] [1 32] [1 256] }
            row_tile [f16 bf16] { [8 32] [8 8] [8 256] [1 32] [1 256] }
        }
    };

    ($part:ident row_tile [] $types:ident [$vector:literal $lanes:literal]) => {
        $crate::entry_part! { $part
            ["bias_act_", stringify!($types), "_v", $vector, "_l", $lanes]
            $crate::bias_act::BiasAct<$crate::list::value_of::$types, $vector, $lanes>
        }
    };
}
