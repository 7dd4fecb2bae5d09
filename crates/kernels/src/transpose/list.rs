//! The entry points that transpose a pattern.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! transpose {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            offsets [any] { {} }
            count [u32 u16] { {} }
            scan_chunks [any] { {} }
            scan_columns [any] { {} }
            scatter [u32 u16] { {} }
            gather [b32 b16] { [4] [1] }
            bags_count [u32 u64] { {} }
            bags_scatter [u32 u64] { {} }
            bags_count_rows [u32 u64] { {} }
            bags_rows [u32 u64] { {} }
            bags_of_places [any] { {} }
        }
    };

    ($part:ident offsets [] any {}) => {
        $crate::entry_part! { $part ["transpose_offsets"] $crate::transpose::Offsets }
    };
    ($part:ident count [] $index:ident {}) => {
        $crate::entry_part! { $part ["transpose_count_", stringify!($index)] $crate::transpose::Count<$index> }
    };
    ($part:ident scan_chunks [] any {}) => {
        $crate::entry_part! { $part ["transpose_scan_chunks"] $crate::transpose::ScanChunks }
    };
    ($part:ident scan_columns [] any {}) => {
        $crate::entry_part! { $part ["transpose_scan_columns"] $crate::transpose::ScanColumns }
    };
    ($part:ident scatter [] $index:ident {}) => {
        $crate::entry_part! { $part ["transpose_scatter_", stringify!($index)] $crate::transpose::Scatter<$index> }
    };
    ($part:ident bags_count [] $index:ident {}) => {
        $crate::entry_part! { $part
            ["transpose_bags_count_", stringify!($index)] $crate::transpose::bags::CountDigits<$index>
        }
    };
    ($part:ident bags_scatter [] $index:ident {}) => {
        $crate::entry_part! { $part
            ["transpose_bags_scatter_", stringify!($index)] $crate::transpose::bags::ScatterDigits<$index>
        }
    };
    ($part:ident bags_count_rows [] $index:ident {}) => {
        $crate::entry_part! { $part
            ["transpose_bags_count_rows_", stringify!($index)] $crate::transpose::bags::CountRows<$index>
        }
    };
    ($part:ident bags_rows [] $index:ident {}) => {
        $crate::entry_part! { $part
            ["transpose_bags_rows_", stringify!($index)] $crate::transpose::bags::NamedRows<$index>
        }
    };
    ($part:ident bags_of_places [] any {}) => {
        $crate::entry_part! { $part ["transpose_bags_of_places"] $crate::transpose::bags::BagsOfPlaces }
    };
    // Values that a thread moves.
    ($part:ident gather [] $bits:ident [$vector:literal]) => {
        $crate::entry_part! { $part
            ["transpose_gather_", stringify!($bits), "_v", $vector]
            $crate::transpose::Gather<$crate::list::value_of::$bits, $vector>
        }
    };
}
