//! A convolution's problem, and its sizes as the library takes them.

use std::ffi::{c_int, c_void};

use super::api::{NCHW, NHWC};
use crate::check::{self, Array};
use crate::data_type::DataType;
use crate::error::Error;

/// The sizes of a convolution of a batch of images, in two dimensions. As in networks, the taps are not mirrored.
///
/// Pairs are (height, width). The height of the output is `(size[0] + 2 · padding[0] − taps[0]) / strides[0] + 1`,
/// rounded down; the width likewise. All arrays are row-major without gaps:
///
/// | array | channels first (NCHW) | channels last (NHWC) |
/// | --- | --- | --- |
/// | input | batch × channels × height × width | batch × height × width × channels |
/// | weights | filters × channels/groups × taps\[0\] × taps\[1\] | filters × taps\[0\] × taps\[1\] × channels/groups |
/// | out | batch × filters × height × width | batch × height × width × filters |
#[derive(Clone, Copy, Debug)]
pub struct ConvSizes {
    /// The type of the values of all arrays.
    pub data_type: DataType,
    /// Images.
    pub batch: usize,
    /// Channels of the input, a multiple of `groups`.
    pub channels: usize,
    /// Height and width of the input.
    pub size: [usize; 2],
    /// Channels of the output, a multiple of `groups`.
    pub filters: usize,
    /// Height and width of the weights.
    pub taps: [usize; 2],
    /// Rows and columns that the taps move by.
    pub strides: [usize; 2],
    /// Rows and columns of zeros on each side of the input.
    pub padding: [usize; 2],
    /// Groups of channels that are convolved apart; 1 for all together.
    pub groups: usize,
    /// Whether arrays have their channels last: NHWC; else they are NCHW.
    pub channels_last: bool,
}

/// A convolution of arrays: out = convolution(input, weights), plus a bias of each filter, and ReLU of that, where
/// wanted.
///
/// Addresses are device addresses.
#[derive(Clone, Copy, Debug)]
pub struct ConvProblem {
    /// The sizes of the arrays.
    pub sizes: ConvSizes,
    /// The values of the input.
    pub input: u64,
    /// The values of the weights.
    pub weights: u64,
    /// `filters` values to add, one to each channel of the output.
    pub bias: Option<u64>,
    /// Whether ReLU follows.
    pub relu: bool,
    /// The values of the output, overwritten.
    pub out: u64,
    /// The `CUstream` to run in; null is the default stream.
    pub stream: *mut c_void,
}

/// The checked sizes of a problem; shapes in the library's order, channels first, whatever the format is.
pub(super) struct Shape {
    pub(super) format: c_int,
    pub(super) input: [c_int; 4],
    pub(super) weights: [c_int; 4],
    pub(super) out: [c_int; 4],
    pub(super) padding: [c_int; 2],
    pub(super) strides: [c_int; 2],
    pub(super) groups: c_int,
}

impl Shape {
    pub(super) fn new(sizes: &ConvSizes) -> Result<Self, Error> {
        let &ConvSizes { channels, filters, groups, .. } = sizes;
        let batch = check::size("batch", sizes.batch)?;
        let input_channels = check::size("channels", channels)?;
        let [height, width] = both(["size[0]", "size[1]"], sizes.size)?;
        let out_channels = check::size("filters", filters)?;
        let taps = both(["taps[0]", "taps[1]"], sizes.taps)?;
        let strides = both(["strides[0]", "strides[1]"], sizes.strides)?;
        let padding =
            [zero_or_size("padding[0]", sizes.padding[0])?, zero_or_size("padding[1]", sizes.padding[1])?];
        let raw_groups = check::size("groups", groups)?;
        if !channels.is_multiple_of(groups) || !filters.is_multiple_of(groups) {
            return Err(Error::Groups { channels, filters, groups });
        }
        let out_height = positions("the height of out", height, padding[0], taps[0], strides[0])?;
        let out_width = positions("the width of out", width, padding[1], taps[1], strides[1])?;
        let shape = Self {
            format: if sizes.channels_last { NHWC } else { NCHW },
            input: [batch, input_channels, height, width],
            weights: [out_channels, input_channels / raw_groups, taps[0], taps[1]],
            out: [batch, out_channels, out_height, out_width],
            padding,
            strides,
            groups: raw_groups,
        };
        // The library takes no array of more values than an `int` counts.
        check_length("the length of input", shape.input)?;
        check_length("the length of weights", shape.weights)?;
        check_length("the length of out", shape.out)?;
        Ok(shape)
    }

    /// The shape of the bias.
    pub(super) fn bias(&self) -> [c_int; 4] {
        [1, self.out[1], 1, 1]
    }
}

/// The checked arrays of a problem.
pub(super) struct CheckedArrays {
    pub(super) input: Array,
    pub(super) weights: Array,
    pub(super) bias: Option<Array>,
    pub(super) out: Array,
}

impl CheckedArrays {
    pub(super) fn new(problem: &ConvProblem, shape: &Shape) -> Result<Self, Error> {
        let bytes = problem.sizes.data_type.bytes();
        let length = |shape: [c_int; 4]| (shape.iter().product::<c_int>(), 1);
        let (input, weights, out) = (length(shape.input), length(shape.weights), length(shape.out));
        let bias = |address| Array::new("bias", address, (shape.out[1], 1), bytes);
        let arrays = Self {
            input: Array::new("input", problem.input, input, bytes)?,
            weights: Array::new("weights", problem.weights, weights, bytes)?,
            bias: problem.bias.map(bias).transpose()?,
            out: Array::new("out", problem.out, out, bytes)?,
        };
        arrays.out.disjoint_from(&[&arrays.input, &arrays.weights])?;
        arrays.out.disjoint_from(arrays.bias.as_ref().as_slice())?;
        Ok(arrays)
    }
}

/// Two sizes that must be positive and fit a C `int`.
fn both(what: [&'static str; 2], got: [usize; 2]) -> Result<[c_int; 2], Error> {
    Ok([check::size(what[0], got[0])?, check::size(what[1], got[1])?])
}

/// A size that may be 0.
fn zero_or_size(what: &'static str, got: usize) -> Result<c_int, Error> {
    if got == 0 { Ok(0) } else { check::size(what, got) }
}

/// The positions of `taps` along one side of an image.
fn positions(
    what: &'static str,
    size: c_int,
    padding: c_int,
    taps: c_int,
    stride: c_int,
) -> Result<c_int, Error> {
    let room = i64::from(size) + 2 * i64::from(padding) - i64::from(taps);
    let positions = if room < 0 { 0 } else { room / i64::from(stride) + 1 };
    check::size(what, usize::try_from(positions).unwrap_or(usize::MAX))
}

/// A C `int` must count each value of an array of `shape`.
fn check_length(what: &'static str, shape: [c_int; 4]) -> Result<(), Error> {
    let length =
        shape.iter().fold(1, |length: usize, size| length.saturating_mul(size.unsigned_abs() as usize));
    check::size(what, length).map(drop)
}
