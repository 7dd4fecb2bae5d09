//! Images of digits with their labels.
use std::path::Path;

use anyhow::Result;
use lacuna_cases::exit::Usage;
use lacuna_models::challenge::images::{Digits, Labels};

/// Pixels of an image.
pub(crate) const PIXELS: usize = Digits::SIDE * Digits::SIDE;

/// Images of a step of training.
pub(crate) const BATCH: usize = 32;

/// One feature of all images of a step, side by side: products with a weight are so products of vectors.
pub(crate) type Row = [f32; BATCH];

/// Images, and which digit each shows.
#[derive(Clone, Debug)]
pub(crate) struct Images {
    /// Image by image: 0 is paper, 1 ink.
    pub(crate) pixels: Vec<f32>,
    /// The digit of each.
    pub(crate) labels: Vec<u8>,
}

impl Images {
    /// MNIST's images for training and for tests. The four files lie in this folder, or in `mnist` there.
    ///
    /// # Errors
    /// Files that are not there, cannot be read, or do not go together.
    pub(crate) fn mnist(folder: &Path) -> Result<[Self; 2]> {
        let inner = folder.join("mnist");
        let folder = if inner.is_dir() { inner.as_path() } else { folder };
        Ok([Self::read(folder, "train")?, Self::read(folder, "t10k")?])
    }

    fn read(folder: &Path, part: &str) -> Result<Self> {
        let [images, labels] = ["images-idx3", "labels-idx1"].map(|kind| format!("{part}-{kind}-ubyte.gz"));
        for name in [&images, &labels] {
            if !folder.join(name).is_file() {
                let folder = folder.display();
                return Err(Usage(format!(
                    "there is no {name} in {folder}: expected MNIST's four files, {{train,t10k}}-images-idx3-ubyte.gz and \
                     {{train,t10k}}-labels-idx1-ubyte.gz; they are at many places of the web, and in the caches of \
                     machine-learning frameworks that have loaded MNIST"
                ))
                .into());
            }
        }
        let (digits, read) =
            (Digits::read_path(folder.join(&images))?, Labels::read_path(folder.join(&labels))?);
        let (expected, got) = (digits.len(), read.len());
        if got != expected || got == 0 {
            let why = format!(
                "{labels} has {got} labels and {images} has {expected} images: expected as many, and one at least"
            );
            return Err(Usage(why).into());
        }
        let pixels = digits.images().flatten().flatten().map(|&pixel| f32::from(pixel) / 255.0).collect();
        Ok(Self { pixels, labels: read.as_slice().to_vec() })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// The first so many, or all.
    pub(crate) fn first(&self, count: usize) -> Self {
        let count = count.min(self.len());
        Self { pixels: self.pixels[..count * PIXELS].to_vec(), labels: self.labels[..count].to_vec() }
    }

    /// The pixels of the images that are named: at most [`BATCH`], and zeros for those that are missing.
    pub(crate) fn rows(&self, named: &[usize]) -> Vec<Row> {
        let mut rows = vec![[0.0; BATCH]; PIXELS];
        for (at, image) in named.iter().enumerate() {
            for (row, &pixel) in rows.iter_mut().zip(&self.pixels[image * PIXELS..]) {
                row[at] = pixel;
            }
        }
        rows
    }

    /// How many of them these answers name rightly.
    pub(crate) fn correct(&self, answers: &[u8]) -> usize {
        self.labels.iter().zip(answers).filter(|(label, answer)| label == answer).count()
    }
}

/// The greatest of an image's scores.
pub(crate) fn answer(scores: impl Iterator<Item = f32>) -> u8 {
    let scores = scores.zip(0_u8..);
    scores.max_by(|(a, _), (b, _)| a.total_cmp(b)).map_or(0, |(_, digit)| digit)
}
