//! The shape of a value.
use std::fmt;

/// Images × channels × rows × columns. A matrix, rows × features, is maps of one pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Images: the batch.
    pub images: usize,
    /// Channels of an image.
    pub channels: usize,
    /// Rows and columns of a map.
    pub size: [usize; 2],
}

impl Shape {
    /// Maps of so many rows and columns.
    pub const fn maps(images: usize, channels: usize, size: [usize; 2]) -> Self {
        Self { images, channels, size }
    }

    /// A matrix: maps of one pixel.
    pub const fn matrix(rows: usize, features: usize) -> Self {
        Self::maps(rows, features, [1, 1])
    }

    /// Pixels of a map; the greatest `usize` where they are more.
    pub const fn pixels(&self) -> usize {
        self.size[0].saturating_mul(self.size[1])
    }

    /// Elements of an image; the greatest `usize` where they are more.
    pub const fn image_len(&self) -> usize {
        self.channels.saturating_mul(self.pixels())
    }

    /// Elements; the greatest `usize` where they are more.
    pub const fn elements(&self) -> usize {
        self.images.saturating_mul(self.image_len())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { images, channels, size: [rows, columns] } = self;
        match self.size {
            [1, 1] => write!(f, "{images}×{channels}"),
            _ => write!(f, "{images}×{channels}×{rows}×{columns}"),
        }
    }
}
