//! The entry points of convolution.

/// See [`for_each_kernel`](crate::for_each_kernel).
#[doc(hidden)]
#[macro_export]
macro_rules! conv {
    (groups $($state:tt)+) => {
        $crate::kernel_list! {
            $($state)+

            // [taps along a side, stride, rows and columns of a tile, filters of a thread, warps of a block].
            #[cfg(lacuna_sm = "80")]
            sparse [f32] {
                [3 1 7 7 2 8] [3 1 7 7 1 8] [3 1 4 4 4 8] [3 1 4 7 4 8] [3 1 4 4 2 8]
                [1 1 7 7 2 8] [1 1 4 4 2 8] [3 2 4 4 4 8] [3 2 4 4 2 8] [5 1 4 4 1 8] [5 2 4 4 1 8] [7 1 4 4 1 4] [7 2 2 4 1 4]
            }
            // [eights of filters, positions of the input tile at most].
            #[cfg(lacuna_sm = "80")]
            mma [f32 f16 bf16] { [8 100] [4 100] [8 289] }
            // [sums of a thread: half of the filters, tiles of a block, positions of an input tile at most].
            #[cfg(lacuna_sm = "90")]
            wgmma [f32 f16 bf16] { [64 2 100] [32 2 100] [16 2 100] [32 2 306] [32 2 196] [32 1 462] }
            // [sums of a thread: half of the filters].
            #[cfg(lacuna_sm = "90")]
            wgmma_pointwise [f32 f16 bf16] { [64] [32] }
            // [pixels and filters of a tile, half of the filters, products of 64 pixels of a warpgroup].
            #[cfg(lacuna_sm = "90")]
            wgmma_panels [f16 bf16] { [256 128 64 2] [128 128 64 1] [128 64 32 1] }
            #[cfg(lacuna_sm = "90")]
            pack_panels [f16 bf16] { {} }
            #[cfg(lacuna_sm = "80")]
            pack_mma [f32 f16 bf16] { {} }
            // [eights of filters, warps of a block by pixels and by channels].
            #[cfg(lacuna_sm = "80")]
            pointwise [f32 f16 bf16] { [8 4 1] [8 2 2] [8 1 4] [4 1 8] }
            #[cfg(lacuna_sm = "80")]
            pack_pointwise [f32 f16 bf16] { {} }
            // [taps along a side, stride, output rows x filters of a thread, warps of a block by filters].
            #[cfg(lacuna_sm = "80")]
            few_channels [f32 f16 bf16] {
                [7 2 4 x 16 2] [7 2 2 x 8 4] [3 2 2 x 8 4] [3 2 2 x 8 2] [3 1 4 x 8 4]
            }
            // [taps along a side, stride, output rows of a warp, half of the filters].
            #[cfg(lacuna_sm = "80")]
            few_channels_mma [f16 bf16] { [7 2 2 32] [3 2 2 16] [3 2 1 16] [3 1 2 32] }
            #[cfg(lacuna_sm = "80")]
            pack_few_channels [f16 bf16] { {} }
            // [taps along a side, stride, output rows and columns of a thread].
            depthwise_nchw [f32 f16 bf16] { [3 1 4 4] [3 1 2 4] [3 1 2 2] [3 1 2 1] [3 2 4 2] [3 2 2 2] [3 2 2 1] [5 1 2 2] [5 2 2 2] }
            // [taps along a side, stride, output rows, columns and channels of a thread].
            depthwise_nhwc [f32] {
                [3 1 7 4 1] [3 1 7 2 1] [3 1 4 2 1] [3 1 2 2 1] [3 2 7 1 1] [3 2 4 2 1] [3 2 2 2 1] [5 1 4 2 1] [5 2 4 1 1]
            }
            depthwise_nhwc [f16 bf16] {
                [3 1 7 2 2] [3 1 4 2 2] [3 1 2 2 2] [3 2 7 1 2] [3 2 4 2 2] [3 2 2 2 2] [5 1 4 2 2] [5 2 4 1 2]
            }
            // [taps along a side, stride, rows and columns of a plane, output rows of a thread, columns that it loads at once].
            #[cfg(lacuna_sm = "80")]
            depthwise_planes [f32 f16 bf16] { [3 1 7 2 1] [3 1 14 4 2] [3 2 14 2 2] }
            // [taps along a side, stride, output rows of a thread].
            depthwise_column [f32 f16 bf16] { [3 1 4] [3 2 4] [5 1 4] [5 2 4] }
            any_depthwise [f32 f16 bf16] { {} }
            direct [f32 f16 bf16] { {} }
            finish [f32 f16 bf16] { {} }
            reduce [f32 f16 bf16] { {} }
            pack [f32 f16 bf16] { {} }
        }
    };

    ($part:ident sparse [] $value:ident [$r:literal $stride:literal $th:literal $tw:literal $f:literal $warps:literal]) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_sparse_", $r, "x", $r, "_s", $stride, "_t", $th, "x", $tw, "_f", $f, "_w", $warps]
            $crate::conv::SparseConv<$crate::list::value_of::$value, $r, $stride, $th, $tw, $f, $warps>
        }
    };
    ($part:ident mma [] $value:ident [$eights:literal $positions:literal]) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_mma_8x8_n", $eights, "_p", $positions]
            $crate::conv::MmaConv<$crate::list::value_of::$value, $eights, $positions>
        }
    };
    ($part:ident wgmma [] $value:ident [$l:literal $tiles:literal $positions:literal]) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_wgmma_8x8_l", $l, "_t", $tiles, "_p", $positions]
            $crate::conv::WgmmaConv<$crate::list::value_of::$value, $l, $tiles, $positions>
        }
    };
    ($part:ident wgmma_pointwise [] $value:ident [$l:literal]) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_wgmma_pointwise_l", $l]
            $crate::conv::WgmmaPointwiseConv<$crate::list::value_of::$value, $l>
        }
    };
    ($part:ident wgmma_panels [] $value:ident [$pixels:literal $filters:literal $l:literal $m:literal]) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_wgmma_panels_", $pixels, "x", $filters]
            $crate::conv::WgmmaPanelConv<$crate::list::value_of::$value, $l, $m>
        }
    };
    ($part:ident pack_panels [] $value:ident {}) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_pack_panels"] $crate::conv::PackPanels<$crate::list::value_of::$value>
        }
    };
    ($part:ident pack_mma [] $value:ident {}) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_pack_mma"] $crate::conv::PackMma<$crate::list::value_of::$value>
        }
    };
    ($part:ident pointwise [] $value:ident [$eights:literal $wm:literal $wk:literal]) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_pointwise_n", $eights, "_m", $wm, "_k", $wk]
            $crate::conv::PointwiseConv<$crate::list::value_of::$value, $eights, $wm, $wk>
        }
    };
    ($part:ident pack_pointwise [] $value:ident {}) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_pack_pointwise"] $crate::conv::PackPointwise<$crate::list::value_of::$value>
        }
    };
    ($part:ident few_channels [] $value:ident [$r:literal $stride:literal $rows:literal x $filters:literal $wf:literal]) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_few_channels_", $r, "x", $r, "_s", $stride, "_t", $rows, "x", $filters, "_w", $wf]
            $crate::conv::FewChannelsConv<$crate::list::value_of::$value, $r, $stride, $rows, { $filters / 4 }, $wf>
        }
    };
    ($part:ident few_channels_mma [] $value:ident [$r:literal $stride:literal $m:literal $l:literal]) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_few_channels_mma_", $r, "x", $r, "_s", $stride, "_m", $m, "_l", $l]
            $crate::conv::FewChannelsMmaConv<$crate::list::value_of::$value, $r, $stride, $m, $l>
        }
    };
    ($part:ident pack_few_channels [] $value:ident {}) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_pack_few_channels"] $crate::conv::PackFewChannels<$crate::list::value_of::$value>
        }
    };
    ($part:ident depthwise_nchw [] $value:ident [$r:literal $stride:literal $rows:literal $columns:literal]) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_depthwise_nchw_", $r, "x", $r, "_s", $stride, "_t", $rows, "x", $columns]
            $crate::conv::DepthwiseNchw<$crate::list::value_of::$value, $r, $stride, $rows, $columns>
        }
    };
    ($part:ident depthwise_nhwc [] $value:ident [$r:literal $stride:literal $rows:literal $columns:literal $v:literal]) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_depthwise_nhwc_", $r, "x", $r, "_s", $stride, "_t", $rows, "x", $columns, "_v", $v]
            $crate::conv::DepthwiseNhwc<$crate::list::value_of::$value, $r, $stride, $rows, $columns, $v>
        }
    };
    ($part:ident depthwise_planes [] $value:ident [$r:literal $stride:literal $side:literal $rows:literal $v:literal]) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_depthwise_planes_", $r, "x", $r, "_s", $stride, "_", $side, "x", $side]
            $crate::conv::DepthwisePlanes<$crate::list::value_of::$value, $r, $stride, $side, $rows, $v>
        }
    };
    ($part:ident depthwise_column [] $value:ident [$r:literal $stride:literal $rows:literal]) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_depthwise_column_", $r, "x", $r, "_s", $stride, "_r", $rows]
            $crate::conv::DepthwiseColumn<$crate::list::value_of::$value, $r, $stride, $rows>
        }
    };
    ($part:ident any_depthwise [] $value:ident {}) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_depthwise"]
            $crate::conv::AnyDepthwise<$crate::list::value_of::$value>
        }
    };
    ($part:ident direct [] $value:ident {}) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_direct"] $crate::conv::DirectConv<$crate::list::value_of::$value>
        }
    };
    ($part:ident finish [] $value:ident {}) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_finish"] $crate::conv::FinishMaps<$crate::list::value_of::$value>
        }
    };
    ($part:ident reduce [] $value:ident {}) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_reduce"] $crate::conv::ReduceSplits<$crate::list::value_of::$value>
        }
    };
    ($part:ident pack [] $value:ident {}) => {
        $crate::entry_part! { $part
            ["conv_", stringify!($value), "_pack"] $crate::conv::PackFilters<$crate::list::value_of::$value>
        }
    };
}
