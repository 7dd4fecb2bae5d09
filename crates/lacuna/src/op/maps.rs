//! Feature maps: how they lie, and how large what is made of them is.
use lacuna_kernels::Map;

use super::Layout;
use super::layout::Strides;
use crate::{Error, Result};

/// How maps lie in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MapLayout {
    /// Images × channels × rows × columns.
    #[default]
    Nchw,
    /// Images × rows × columns × channels: channels last.
    Nhwc,
}

impl MapLayout {
    /// Where kernels find maps of so many channels, rows and columns, whose elements have so many bytes. An image has less than 4 GiB.
    pub(crate) fn map(self, channels: usize, [height, width]: [usize; 2], element: usize) -> Map {
        let bytes = |elements: usize| (elements * element) as u32;
        let [channel, row, column] = match self {
            Self::Nchw => [height * width, width, 1],
            Self::Nhwc => [1, width * channels, channels],
        };
        Map {
            channels: channels as u32,
            height: height as u32,
            width: width as u32,
            image_bytes: bytes(channels * height * width),
            channel_bytes: bytes(channel),
            row_bytes: bytes(row),
            column_bytes: bytes(column),
        }
    }
}

/// How maps in NCHW lie, of so many channels, each a plane of `pixels`, with gaps between planes.
///
/// # Errors
/// [`Error::Parameter`] for another layout, and planes that overlap; [`Error::TooLarge`] for images of 2 GiB.
pub(crate) fn planes(
    layout: MapLayout,
    [channels, pixels]: [usize; 2],
    bytes: u32,
    strides: Strides,
) -> Result<Layout> {
    let expected = || "NCHW, where channels have strides";
    let is_first = layout == MapLayout::Nchw;
    Error::expect(is_first, strides.operation, "the layout", expected, format!("{layout:?}"))?;
    let planes = Layout::new(channels, pixels, bytes, strides)?;
    let of_image = [channels, planes.stride, bytes as usize];
    expect_product_at_most("the bytes of an image with its gaps", i32::MAX as usize, &of_image)?;
    Ok(planes)
}

/// A map, with its planes where they lie if there are gaps between them.
pub(crate) fn with_planes(map: Map, planes: Option<Layout>) -> Map {
    match planes {
        Some(Layout { stride_bytes, .. }) => {
            Map { channel_bytes: stride_bytes, image_bytes: map.channels * stride_bytes, ..map }
        }
        None => map,
    }
}

/// Rows, or columns, of what a window of so many makes of a map: none where the window is larger than the padded map.
pub(crate) const fn out_extent(size: usize, window: usize, stride: usize, padding: usize) -> usize {
    let padded = size.saturating_add(padding.saturating_mul(2));
    if padded < window || stride == 0 { 0 } else { ((padded - window) / stride).saturating_add(1) }
}

/// The elements of maps: the product of their sizes, or the greatest `usize`.
pub(crate) const fn elements([a, b, c, d]: [usize; 4]) -> usize {
    // A size of 0 counts, however large the others are.
    if a == 0 || b == 0 || c == 0 || d == 0 {
        return 0;
    }
    a.saturating_mul(b).saturating_mul(c).saturating_mul(d)
}

/// Whether the product of sizes is at most `limit`.
///
/// # Errors
/// [`Error::TooLarge`].
pub(crate) fn expect_product_at_most(what: &'static str, limit: usize, factors: &[usize]) -> Result<()> {
    let product = factors.iter().try_fold(1_usize, |product, &factor| product.checked_mul(factor));
    Error::expect_at_most(what, limit, product.unwrap_or(usize::MAX))
}
