//! Top-n's entry points.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! topn {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            // [values a thread loads at once, threads, such vectors of a thread, candidates that shared memory holds]; the
            // vectors of a streaming select are those that a thread has under way
            radix [f32] {
                [4 32 8 512] [4 256 1 1024] [4 256 5 1024] [4 256 10 1024] [4 512 5 2048]
                [4 1024 1 4096]
            }
            insertion [f32] { { vector: 4, threads: 256, vectors: 10, most: 512 } }
            radix [f16 bf16] {
                [8 32 4 512] [8 256 1 1024] [8 256 3 1024] [8 256 5 1024] [8 512 3 2048]
                [8 512 1 4096]
            }
            insertion [f16 bf16] { { vector: 8, threads: 256, vectors: 5, most: 512 } }

            stream [f32] { [4 128 1 2048] }
            #[cfg(lacuna_sm = "80")]
            stream [f32] { [4 256 4 2048] [4 512 4 2048] }
            stream [f16 bf16] { [8 128 1 2048] }
            #[cfg(lacuna_sm = "80")]
            stream [f16 bf16] { [8 256 2 2048] [8 512 2 2048] }

            finalize [any] { { threads: 512, own: 8 } }
            merge [any] { {} }
            beam [any] { { threads: 256, keys: 4096 } }
        }
    };

    ($part:ident radix [] $types:ident [$vector:literal $threads:literal $vectors:literal $keys:literal]) => {
        $crate::entry_part! { $part
            ["topn_", stringify!($types), "_radix_t", $threads, "_v", $vectors]
            $crate::topn::RadixSelect<$crate::list::value_of::$types, $vector, $threads, $vectors, $keys>
        }
    };
    ($part:ident stream [] $types:ident [$vector:literal $threads:literal $vectors:literal $keys:literal]) => {
        $crate::entry_part! { $part
            ["topn_", stringify!($types), "_stream_t", $threads, "_v", $vectors]
            $crate::topn::StreamingSelect<$crate::list::value_of::$types, $vector, $threads, $vectors, $keys>
        }
    };
    // As above; it selects at most so many.
    ($part:ident insertion [] $types:ident
        { vector: $vector:literal, threads: $threads:literal, vectors: $vectors:literal, most: $most:literal }) => {
        $crate::entry_part! { $part
            ["topn_", stringify!($types), "_insertion"]
            $crate::topn::Insertion<$crate::list::value_of::$types, $vector, $threads, $vectors, $most>
        }
    };
    // Threads, and candidates that a thread has in registers.
    ($part:ident finalize [] any { threads: $threads:literal, own: $own:literal }) => {
        $crate::entry_part! { $part ["topn_finalize"] $crate::topn::Finalize<$threads, $own> }
    };
    ($part:ident merge [] any {}) => {
        $crate::entry_part! { $part ["topn_merge"] $crate::topn::Merge }
    };
    // Threads, and candidates that shared memory holds.
    ($part:ident beam [] any { threads: $threads:literal, keys: $keys:literal }) => {
        $crate::entry_part! { $part ["topn_beam"] $crate::topn::Beam<$threads, $keys> }
    };
}
