//! What may be asked of a pooling.
use lacuna_kernels::pool::PoolMode;

use super::{Algorithm, MapLayout, Shape};
use crate::op::options;

/// What is made of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// The greatest pixel in the map; NaN where one is NaN, as PyTorch has it. Padding takes no part.
    #[default]
    Max,
    /// The sum over the pixels of a window, those of the padding counted: PyTorch's default, `count_include_pad`.
    AverageIncludePadding,
    /// The sum over the pixels of a window that are in the map.
    AverageExcludePadding,
}

impl Mode {
    /// As kernels have it.
    pub(super) fn to_device(self, shape: &Shape) -> PoolMode {
        // Without padding all pixels are in the map.
        let counts_all = self != Self::AverageExcludePadding || shape.padding == [0, 0];
        let pixels = shape.window[0] as f64 * shape.window[1] as f64;
        let scale = if counts_all { (1.0 / pixels) as f32 } else { 0.0 };
        PoolMode { is_max: u32::from(self == Self::Max), scale }
    }
}

options! {
    /// What may be asked of a pooling. The default is the greatest pixel of each window, and maps in NCHW.
    ///
    /// ```
    /// # use lacuna::pool;
    /// let options = pool::Options::default().mode(pool::Mode::AverageExcludePadding).layout(pool::MapLayout::Nhwc);
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct Options {
        /// What is made of a window.
        pub mode: Mode = Mode::Max => set,
        /// How input and result lie.
        pub layout: MapLayout = MapLayout::Nchw => set,
        /// The algorithm, if not the library's choice. It must be legal for the shape and the layout; where the addresses do not
        /// allow its vectors, the run is refused.
        pub algorithm: Algorithm = Algorithm::Auto => set,
        /// Elements from one channel of the input to the next, in NCHW: at least the pixels of one, H·W, and as many if none. Images lie one after another; the gaps are
        /// not read.
        pub input_channel_stride: Option<usize> = None => some(usize),
    }
}
