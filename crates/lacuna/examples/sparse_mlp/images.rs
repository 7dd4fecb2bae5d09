//! Images with their classes: MNIST's, or drawn ones.
use std::path::{Path, PathBuf};

use anyhow::Result;
use lacuna_cases::data::{Data, Folder};
use lacuna_cases::exit::Usage;
use lacuna_models::challenge::images::{Digits, Labels};

use crate::drawn;

/// Classes that there are.
pub(crate) const CLASSES: usize = Labels::CLASSES;

/// Images, and which class each shows.
#[derive(Clone, Debug)]
pub(crate) struct Images {
    /// Pixels of an image.
    pub(crate) inputs: usize,
    /// Image by image: 0 is paper, 255 ink.
    pub(crate) pixels: Vec<u8>,
    /// The class of each.
    pub(crate) labels: Vec<u8>,
}

impl Images {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// The first so many, or all.
    #[must_use]
    pub(crate) fn first(mut self, count: usize) -> Self {
        let count = count.min(self.len());
        self.labels.truncate(count);
        self.pixels.truncate(count * self.inputs);
        self
    }

    /// Image after image, with pixels of 0 to 1.
    pub(crate) fn rows(&self) -> Vec<f32> {
        self.pixels.iter().map(|&pixel| brightness(pixel)).collect()
    }

    /// Those that are named, a column each, with pixels of 0 to 1: inputs × `columns`, with zeros where no image is named.
    pub(crate) fn columns(&self, named: &[usize], columns: usize) -> Vec<f32> {
        let mut batch = vec![0.0; self.inputs * columns];
        for (input, row) in batch.chunks_exact_mut(columns).enumerate() {
            for (value, image) in row.iter_mut().zip(named) {
                *value = brightness(self.pixels[image * self.inputs + input]);
            }
        }
        batch
    }

    /// The classes of those that are named.
    pub(crate) fn labels_of(&self, named: &[usize]) -> Vec<u8> {
        named.iter().map(|&image| self.labels[image]).collect()
    }
}

fn brightness(pixel: u8) -> f32 {
    f32::from(pixel) / 255.0
}

/// What is to be learnt.
#[derive(Debug)]
pub(crate) struct Task {
    /// What it is, for people.
    pub(crate) name: String,
    pub(crate) train: Images,
    /// Images that training does not see.
    pub(crate) test: Images,
}

impl Task {
    /// MNIST, where the data folder has it; a drawn task where not.
    ///
    /// # Errors
    /// A folder that was named and holds no data; files that cannot be read, or do not go together.
    pub(crate) fn find(named: Option<&Path>, seed: u64) -> Result<Self> {
        let mut data = Data::find(named)?;
        data.unpack("mnist");
        let missing = match data.folder("mnist") {
            Folder::At(folder) => match files(&folder) {
                Ok(files) => return Self::mnist(&files),
                Err(missing) => missing,
            },
            Folder::Packed => "mnist.tar.xz could not be unpacked".into(),
            Folder::Missing(why) => why,
        };
        let name = format!("drawn images, a stand-in for MNIST ({missing})");
        let side = Digits::SIDE;
        let (train, test) =
            (drawn::images(side, 10_000, seed), drawn::images(side, 2_000, seed.wrapping_add(1)));
        Ok(Self { name, train, test })
    }

    fn mnist([train, train_labels, test, test_labels]: &[PathBuf; 4]) -> Result<Self> {
        let (train, test) = (labelled(train, train_labels)?, labelled(test, test_labels)?);
        Ok(Self { name: "MNIST".into(), train, test })
    }
}

/// MNIST's files in this folder, packed by gzip or not: images and labels to train with, and to test with.
///
/// # Errors
/// Which is not there.
fn files(folder: &Path) -> Result<[PathBuf; 4], String> {
    let find = |name: &str| {
        let paths = [format!("{name}.gz"), name.into()].map(|name| folder.join(name));
        let found = paths.into_iter().find(|path| path.is_file());
        found.ok_or_else(|| format!("{} has no {name}, nor {name}.gz", folder.display()))
    };
    Ok([
        find("train-images-idx3-ubyte")?,
        find("train-labels-idx1-ubyte")?,
        find("t10k-images-idx3-ubyte")?,
        find("t10k-labels-idx1-ubyte")?,
    ])
}

/// The images of a file with the labels of another.
fn labelled(images: &Path, labels: &Path) -> Result<Images> {
    let (digits, read) = (Digits::read_path(images)?, Labels::read_path(labels)?);
    if digits.len() != read.len() {
        let (labels, expected, got) = (labels.display(), digits.len(), read.len());
        let images = images.display();
        let why = format!("{labels}: expected {expected} labels, one for each image of {images}, got {got}");
        return Err(Usage(format!("{why}; take both files from one source")).into());
    }
    if digits.is_empty() {
        return Err(Usage(format!("{}: expected an image at least, got none", images.display())).into());
    }
    let pixels = digits.images().flatten().flatten().copied().collect();
    Ok(Images { inputs: Digits::SIDE * Digits::SIDE, pixels, labels: read.as_slice().to_vec() })
}
