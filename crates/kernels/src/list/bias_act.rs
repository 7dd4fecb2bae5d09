//! The entry points of bias and activation.

/// See [`list`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! bias_act_kernels {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+ bias_act bias_act_kernels

            row_tile [f32] {
                { vector: 4, lanes: 256, rows: 4 }
                { vector: 4, lanes: 32, rows: 4 }
                { vector: 4, lanes: 8, rows: 4 }
                { vector: 1, lanes: 256, rows: 4 }
                { vector: 1, lanes: 32, rows: 4 }
            }
            row_tile [f16 bf16] {
                { vector: 8, lanes: 256, rows: 4 }
                { vector: 8, lanes: 32, rows: 4 }
                { vector: 8, lanes: 8, rows: 4 }
                { vector: 1, lanes: 256, rows: 4 }
                { vector: 1, lanes: 32, rows: 4 }
            }
        }
    };

    // Elements a thread loads at once, threads that share a row, and rows of a thread.
    ($part:ident row_tile [] $types:ident { vector: $vector:literal, lanes: $lanes:literal, rows: $rows:literal }) => {
        $crate::entry_part! { $part
            ["bias_act_", stringify!($types), "_v", $vector, "_l", $lanes, "_r", $rows]
            $crate::bias_act::BiasAct<$crate::value_of!($types), $vector, $lanes, $rows>
        }
    };
}
