//! The entry points of bias and activation.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! bias_act {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            // Where shapes are as good as each other, the first is taken: more rows of a block share a bias per column.
            row_tile [f32] {
                { vector: 4, lanes: 32 }
                { vector: 4, lanes: 8 }
                { vector: 4, lanes: 256 }
                { vector: 1, lanes: 32 }
                { vector: 1, lanes: 256 }
            }
            row_tile [f16 bf16] {
                { vector: 8, lanes: 32 }
                { vector: 8, lanes: 8 }
                { vector: 8, lanes: 256 }
                { vector: 1, lanes: 32 }
                { vector: 1, lanes: 256 }
            }
        }
    };

    // Elements a thread loads at once, and threads that share a row.
    ($part:ident row_tile [] $types:ident { vector: $vector:literal, lanes: $lanes:literal }) => {
        $crate::entry_part! { $part
            ["bias_act_", stringify!($types), "_v", $vector, "_l", $lanes]
            $crate::bias_act::BiasAct<$crate::value_of!($types), $vector, $lanes>
        }
    };
}
