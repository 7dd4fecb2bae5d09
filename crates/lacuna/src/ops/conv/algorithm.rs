//! By what a convolution can be computed.

/// How a convolution is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// The library chooses.
    #[default]
    Auto,
    /// Zeros are left out; tiles of the result are in registers. Compute capability 8.0 and later.
    SparseTile {
        /// Rows and columns of a tile.
        tile: [u32; 2],
        /// Filters of a thread.
        filters: u32,
    },
    /// Tiles of 8 × 8 pixels on tensor cores, in split precision: zeros are multiplied. Up to nine taps. Compute capability 8.0 and later.
    MmaTile {
        /// Filters of a tile.
        filters: u32,
    },
    /// As [`MmaTile`](Self::MmaTile), by warpgroups; any rows of up to nine taps for which a tile has room. Compute capability 9.0 alone.
    WgmmaTile {
        /// Tiles of a thread block.
        tiles: u32,
        /// Filters of a tile.
        filters: u32,
    },
    /// For filters of one tap, without padding, on tensor cores, in split precision: zeros are multiplied. Compute capability 8.0 and later.
    PointwiseTile {
        /// Pixels of a tile.
        pixels: u32,
        /// Filters of a tile.
        filters: u32,
    },
    /// As [`PointwiseTile`](Self::PointwiseTile), by warpgroups. Compute capability 9.0 alone.
    WgmmaPointwise {
        /// Pixels of a tile.
        pixels: u32,
        /// Filters of a tile.
        filters: u32,
    },
    /// For values of 16 bits with channels last, both channels and filters in eights, by warpgroups: zeros are multiplied. Up to 32 taps, and maps of up to 2 GiB. Compute
    /// capability 9.0 alone.
    WgmmaPanels {
        /// Pixels of a tile, of all images.
        pixels: u32,
        /// Filters of a tile.
        filters: u32,
    },
    /// For up to four channels, as the first layer of a network has them, in full precision: zeros are multiplied. Compute capability 8.0 and later.
    FewChannels {
        /// Rows of a tile.
        rows: u32,
        /// Filters of a tile.
        filters: u32,
    },
    /// The same for values of 16 bits with channels last and filters in eights, on tensor cores. Compute capability 8.0 and later.
    FewChannelsMma {
        /// Rows of a tile.
        rows: u32,
        /// Filters of a tile.
        filters: u32,
    },
    /// For filters of any shape: zeros are left out, and each product loads its input.
    Direct,
    /// For a depthwise convolution of NCHW maps, padded by half of the taps: a thread has a tile of results.
    DepthwiseNchw {
        /// Rows and columns of a thread.
        tile: [u32; 2],
    },
    /// For a depthwise convolution of NHWC maps, padded by half of the taps or less: a thread has a tile of results of a channel, of 16 bits
    /// of two.
    DepthwiseNhwc {
        /// Rows and columns of a thread.
        tile: [u32; 2],
    },
    /// For a depthwise convolution of small NCHW maps, padded by half of the taps: planes in shared memory. Compute capability 8.0 and
    /// later.
    DepthwisePlanes,
    /// For a depthwise convolution of any layout and padding: a thread has a column of results, one below another.
    DepthwiseColumn {
        /// Rows of a thread.
        rows: u32,
    },
    /// For a depthwise convolution with filters of any shape.
    AnyDepthwise,
    /// By NVIDIA's cuDNN, which is opened at run time; never the library's choice. Zeros of x hide nothing there, and maps are aligned to 16 bytes.
    CuDnn,
}
