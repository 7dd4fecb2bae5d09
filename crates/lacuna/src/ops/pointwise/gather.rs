//! The pixels that taps of 1×1 meet, side by side in memory, for strides and padding.
use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::Map;

use crate::conv::Shape;
use crate::op::{Layout, MapLayout, expect_product_at_most};
use crate::{Buffer, Device, Error, Pool, Result, Slice, Stream, Value, pool};

/// A copy of the input without the pixels that strides pass over, and with the zeros of the padding: as large as a product's B.
///
/// It is a pooling by windows of one pixel. The padding is zero from the start, and no run writes it.
#[derive(Debug)]
pub(super) struct Gather<T: Value> {
    pixels: Buffer<T>,
    /// None where there is padding alone.
    inside: Option<Inside<T>>,
}

/// Results that meet a pixel of the map.
#[derive(Debug)]
struct Inside<T: Value> {
    pool: Pool<T>,
    /// Elements before the first pixel that is read, and before the first that is written.
    firsts: [usize; 2],
    /// How both lie from there.
    maps: [Map; 2],
}

/// Along rows or columns: the first pixel that is read, its place in the result, and the pixels from it to the end of the map; none
/// where the map has none of these.
fn first(size: usize, stride: usize, padding: usize) -> Option<[usize; 3]> {
    let place = padding.div_ceil(stride);
    let pixel = place * stride - padding;
    (pixel < size).then(|| [pixel, place, size - pixel])
}

impl<T: Value> Gather<T> {
    /// For a shape that was checked, and its input; none where the input is what a product takes.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for images 4 GiB apart, and copies of an image of 2 GiB; what the device says where there is no room.
    pub(super) fn new(device: &Device, shape: &Shape, input: &Layout) -> Result<Option<Self>> {
        let out_size = shape.out_size();
        let Shape { batch, channels, size, strides, padding, .. } = *shape;
        if padding == [0, 0] && out_size == size {
            return Ok(None);
        }
        let bytes = size_of::<T>();
        let of_image = [bytes, channels, out_size[0], out_size[1]];
        expect_product_at_most("the bytes of an image that is gathered", i32::MAX as usize, &of_image)?;
        let pixels = device.zeros(batch * channels * out_size[0] * out_size[1])?;
        let [rows, columns] = [0, 1].map(|d| first(size[d], strides[d], padding[d]));
        let (Some([row, out_row, rows]), Some([column, out_column, columns])) = (rows, columns) else {
            return Ok(Some(Self { pixels, inside: None }));
        };
        if pixels.is_empty() {
            return Ok(Some(Self { pixels, inside: None }));
        }
        // Of one image the distance to the next is no matter.
        let image_stride = if batch > 1 { input.batch_stride } else { 0 };
        let limit = u32::MAX as usize / bytes;
        Error::expect_at_most("the image stride of an input that is gathered", limit, image_stride)?;
        let inside = pool::Shape::new(channels, [rows, columns], [1, 1]).strides(strides).batch(batch);
        // The one for windows of any size: maps may have gaps.
        let options = pool::Options::default().algorithm(pool::Algorithm::Any { vector: 1 });
        let pool = Pool::plan(device, inside, options)?;
        let [height, width] = inside.out_size().map(|extent| extent as u32);
        let map = Map {
            height: rows as u32,
            width: columns as u32,
            image_bytes: (image_stride * bytes) as u32,
            channel_bytes: input.stride_bytes,
            ..MapLayout::Nchw.map(channels, size, bytes)
        };
        let out_map = Map { height, width, ..MapLayout::Nchw.map(channels, out_size, bytes) };
        let firsts = [row * size[1] + column, out_row * out_size[1] + out_column];
        Ok(Some(Self { pixels, inside: Some(Inside { pool, firsts, maps: [map, out_map] }) }))
    }

    /// Bytes of the copy.
    pub(super) fn bytes(&self) -> usize {
        self.pixels.len() * size_of::<T>()
    }

    /// Gives the copy of an input, which was checked, to the stream.
    ///
    /// # Errors
    /// What the device says.
    pub(super) fn run(&self, stream: &Stream, input: Slice<'_, T>) -> Result<Slice<'_, T>> {
        let pixels = self.pixels.as_slice();
        if let Some(Inside { pool, firsts: [from, to], maps }) = &self.inside {
            let out = GlobalMut::<T::Device>::from_address(pixels.address()).add(*to);
            let input: GlobalPtr<T::Device> = input.pointer();
            pool.run_views(stream, input.add(*from), out, *maps)?;
        }
        Ok(pixels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pixel_is_the_first_that_a_stride_meets() {
        assert_eq!(first(5, 1, 0), Some([0, 0, 5]));
        assert_eq!(first(5, 2, 0), Some([0, 0, 5]));
        // Places -1, 1, 3: the second one is in the map.
        assert_eq!(first(5, 2, 1), Some([1, 1, 4]));
        assert_eq!(first(5, 1, 3), Some([0, 3, 5]));
        // Places -1 and 2 of two pixels, and those of none.
        assert_eq!((first(2, 3, 1), first(0, 1, 0)), (None, None));
    }
}
