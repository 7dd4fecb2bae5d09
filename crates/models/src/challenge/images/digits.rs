//! MNIST's images, in their files.

use super::idx;
use crate::challenge::gz::read_file;
use lacuna_matrix::io::{Place, ReadError};
use std::io::{self, BufRead, Write};
use std::path::Path;

/// What an idx file of bytes in three dimensions begins with.
const MAGIC: u32 = 0x0000_0803;

/// Images of 28 × 28 bytes, as MNIST has them: 0 is paper, 255 ink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digits {
    /// Image by image, and in an image row by row.
    pixels: Vec<u8>,
}

impl Digits {
    /// Rows and columns of an image.
    pub const SIDE: usize = 28;

    /// Bytes of an image.
    const BYTES: usize = Self::SIDE * Self::SIDE;

    /// Reads an idx file: `u32`s 0x803, images, 28 and 28, big-endian, and then a byte a pixel.
    ///
    /// # Errors
    /// If reading fails, the file is of another kind or size of images, or it ends early or late.
    pub fn read(mut reader: impl BufRead) -> Result<Self, ReadError> {
        let [images, rows, columns] = idx::header(&mut reader, MAGIC, "images")?;
        if (rows, columns) != (Self::SIDE as u32, Self::SIDE as u32) {
            let (place, got) = (Place::Byte(8), format!("a size of {rows} × {columns}"));
            return Err(ReadError::Unsupported { place, got, supported: "28 × 28" });
        }
        let expected = u64::from(images) * Self::BYTES as u64;
        let pixels = idx::elements::<3>(reader, expected, "pixels")?;
        Ok(Self { pixels })
    }

    /// Reads the images in a file, which may be packed by gzip: MNIST's `train-images-idx3-ubyte.gz`.
    ///
    /// # Errors
    /// As [`read`](Self::read), with the path.
    pub fn read_path(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        read_file(path.as_ref(), Self::read)
    }

    /// Writes an idx file, so that [`read`](Self::read) gives the same images.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn write(&self, mut writer: impl Write) -> io::Result<()> {
        // No more than a u32 counts were read.
        for word in [MAGIC, self.len() as u32, Self::SIDE as u32, Self::SIDE as u32] {
            writer.write_all(&word.to_be_bytes())?;
        }
        writer.write_all(&self.pixels)
    }

    /// How many images there are.
    pub fn len(&self) -> usize {
        self.pixels.len() / Self::BYTES
    }

    /// Whether there is no image.
    pub fn is_empty(&self) -> bool {
        self.pixels.is_empty()
    }

    /// The rows of each image: 28 of 28 bytes.
    pub fn images(&self) -> impl ExactSizeIterator<Item = &[[u8; Self::SIDE]]> {
        self.pixels.chunks_exact(Self::BYTES).map(|image| image.as_chunks().0)
    }
}
