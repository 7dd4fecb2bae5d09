//! Top-n's entry points.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! topn {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            radix [f32] {
                { vector: 4, threads: 32, vectors: 8, keys: 512 }
                { vector: 4, threads: 256, vectors: 1, keys: 1024 }
                { vector: 4, threads: 256, vectors: 5, keys: 1024 }
                { vector: 4, threads: 256, vectors: 10, keys: 1024 }
                { vector: 4, threads: 512, vectors: 5, keys: 2048 }
                { vector: 4, threads: 1024, vectors: 1, keys: 4096 }
            }
            insertion [f32] { { vector: 4, threads: 256, vectors: 10, most: 512 } }
            radix [f16 bf16] {
                { vector: 8, threads: 32, vectors: 4, keys: 512 }
                { vector: 8, threads: 256, vectors: 1, keys: 1024 }
                { vector: 8, threads: 256, vectors: 3, keys: 1024 }
                { vector: 8, threads: 256, vectors: 5, keys: 1024 }
                { vector: 8, threads: 512, vectors: 3, keys: 2048 }
                { vector: 8, threads: 512, vectors: 1, keys: 4096 }
            }
            insertion [f16 bf16] { { vector: 8, threads: 256, vectors: 5, most: 512 } }

            stream [f32] { { vector: 4, threads: 128, vectors: 1, keys: 2048 } }
            #[cfg(lacuna_sm = "80")]
            stream [f32] {
                { vector: 4, threads: 256, vectors: 4, keys: 2048 }
                { vector: 4, threads: 512, vectors: 4, keys: 2048 }
            }
            stream [f16 bf16] { { vector: 8, threads: 128, vectors: 1, keys: 2048 } }
            #[cfg(lacuna_sm = "80")]
            stream [f16 bf16] {
                { vector: 8, threads: 256, vectors: 2, keys: 2048 }
                { vector: 8, threads: 512, vectors: 2, keys: 2048 }
            }

            finalize [any] { { threads: 512, own: 8 } }
            merge [any] { {} }
            beam [any] { { threads: 256, keys: 4096 } }
        }
    };

    // Values a thread loads at once, threads, such vectors of a thread, and candidates that shared memory holds.
    ($part:ident radix [] $types:ident
        { vector: $vector:literal, threads: $threads:literal, vectors: $vectors:literal, keys: $keys:literal }) => {
        $crate::entry_part! { $part
            ["topn_", stringify!($types), "_radix_t", $threads, "_v", $vectors]
            $crate::topn::RadixSelect<$crate::value_of!($types), $vector, $threads, $vectors, $keys>
        }
    };
    // The same; the vectors are those that a thread has under way.
    ($part:ident stream [] $types:ident
        { vector: $vector:literal, threads: $threads:literal, vectors: $vectors:literal, keys: $keys:literal }) => {
        $crate::entry_part! { $part
            ["topn_", stringify!($types), "_stream_t", $threads, "_v", $vectors]
            $crate::topn::StreamingSelect<$crate::value_of!($types), $vector, $threads, $vectors, $keys>
        }
    };
    // The same; it selects at most so many.
    ($part:ident insertion [] $types:ident
        { vector: $vector:literal, threads: $threads:literal, vectors: $vectors:literal, most: $most:literal }) => {
        $crate::entry_part! { $part
            ["topn_", stringify!($types), "_insertion"]
            $crate::topn::Insertion<$crate::value_of!($types), $vector, $threads, $vectors, $most>
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
