//! Where the pixels of a batch of feature maps are.
use lacuna_gpu::{GlobalMut, GlobalPtr};

/// A batch of maps: any order of channels, rows and columns.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Map {
    /// Channels.
    pub channels: u32,
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
    /// Bytes from one image to the next.
    pub image_bytes: u32,
    /// Bytes from one channel to the next.
    pub channel_bytes: u32,
    /// Bytes from one row to the next.
    pub row_bytes: u32,
    /// Bytes from one column to the next.
    pub column_bytes: u32,
}

impl Map {
    /// Where a channel of an image begins.
    #[inline(always)]
    pub(crate) fn plane<T>(&self, first: GlobalPtr<T>, image: u32, channel: u32) -> GlobalPtr<T> {
        first.add_rows(image, self.image_bytes).add_rows(channel, self.channel_bytes)
    }

    /// The same of a map that is written.
    #[inline(always)]
    pub(crate) fn plane_mut<T>(&self, first: GlobalMut<T>, image: u32, channel: u32) -> GlobalMut<T> {
        first.add_rows(image, self.image_bytes).add_rows(channel, self.channel_bytes)
    }

    /// Bytes from the first pixel of a channel to another one; `None` for one outside. Rows and columns before the first are those
    /// below 0, as a `u32` has them.
    #[inline(always)]
    pub(crate) fn offset(&self, row: u32, column: u32) -> Option<u32> {
        let is_inside = row < self.height && column < self.width;
        is_inside
            .then(|| row.wrapping_mul(self.row_bytes).wrapping_add(column.wrapping_mul(self.column_bytes)))
    }

    /// Whether four pixels of a channel lie side by side, at a multiple of their size, all of them inside: `address` is that of the first.
    #[inline(always)]
    pub(crate) fn has_wide_pixels<T>(&self, address: u32) -> bool {
        let size = size_of::<T>() as u32;
        let are_rows_dense = self.column_bytes == size && self.row_bytes == self.width * size;
        let steps = address | self.image_bytes | self.channel_bytes | (self.width * self.height * size);
        are_rows_dense && steps.is_multiple_of(4 * size)
    }

    /// The same of four channels of a pixel.
    #[inline(always)]
    pub(crate) fn has_wide_channels<T>(&self, address: u32) -> bool {
        let size = size_of::<T>() as u32;
        let steps = address | self.image_bytes | self.row_bytes | self.column_bytes | (self.channels * size);
        self.channel_bytes == size && steps.is_multiple_of(4 * size)
    }
}
