//! The entry points that take over index arrays.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! import {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            columns_from_u32 [u32 u16] { {} }
            columns_from_u64 [u32 u16] { {} }
            rows_from [u32 u64] { {} }
            sort_lists [u32 u64] { {} }
            copy_lists [u32 u16] { {} }
            indices_from_u32 [u32 u64] { {} }
            indices_from_u64 [u32 u64] { {} }
        }
    };

    // From what, and to what.
    ($part:ident columns_from_u32 [] $index:ident {}) => {
        $crate::entry_part! { $part
            ["import_columns_u32_", stringify!($index)] $crate::import::Columns<u32, $index>
        }
    };
    ($part:ident sort_lists [] $source:ident {}) => {
        $crate::entry_part! { $part ["import_sort_lists_", stringify!($source)] $crate::import::SortLists<$source> }
    };
    ($part:ident copy_lists [] $index:ident {}) => {
        $crate::entry_part! { $part ["import_copy_lists_", stringify!($index)] $crate::import::CopyLists<$index> }
    };
    ($part:ident indices_from_u32 [] $index:ident {}) => {
        $crate::entry_part! { $part
            ["import_indices_u32_", stringify!($index)] $crate::import::Indices<u32, $index>
        }
    };
    ($part:ident indices_from_u64 [] $index:ident {}) => {
        $crate::entry_part! { $part
            ["import_indices_u64_", stringify!($index)] $crate::import::Indices<u64, $index>
        }
    };
    ($part:ident rows_from [] $source:ident {}) => {
        $crate::entry_part! { $part ["import_rows_", stringify!($source)] $crate::import::Rows<$source> }
    };
    ($part:ident columns_from_u64 [] $index:ident {}) => {
        $crate::entry_part! { $part
            ["import_columns_u64_", stringify!($index)] $crate::import::Columns<u64, $index>
        }
    };
}
