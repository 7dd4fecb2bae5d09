//! Planes of channels with gaps between them.
use super::{OPERATION, Options, Shape};
use crate::Result;
use crate::op::{Layout, planes, strides};

/// How input and result of a shape that was checked lie, where there are gaps between channels.
pub(super) fn planes_of(shape: &Shape, options: &Options, bytes: u32) -> Result<Option<[Layout; 2]>> {
    let &Options { input_channel_stride, out_channel_stride, layout, .. } = options;
    if [input_channel_stride, out_channel_stride] == [None; 2] {
        return Ok(None);
    }
    let [rows, columns] = shape.size;
    let input = strides!(OPERATION, "the input", "H·W", input_channel_stride, shape.batch, None);
    let input = planes(layout, [shape.channels, rows * columns], bytes, input)?;
    let [rows, columns] = shape.out_size();
    let out = strides!(OPERATION, "the result", "H·W", out_channel_stride, shape.batch, None);
    let planes = [input, planes(layout, [shape.filters, rows * columns], bytes, out)?];
    Ok(planes.iter().any(Layout::has_gaps).then_some(planes))
}
