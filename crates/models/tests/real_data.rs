//! The challenge's own files, MNIST and DLMC, where the environment variable `LACUNA_DATA` names a folder that holds them as
//! `spdnn/`, `mnist/` and `dlmc/`. Without them these tests say so and pass.

use lacuna_matrix::io::mtx;
use lacuna_models::challenge::images::{Digits, Labels, from_digits};
use lacuna_models::challenge::{Challenge, Generator, IMAGES, categories, gz, tsv};
use lacuna_models::networks::TransformerBase;
use lacuna_models::prune::Masks;
use md5::{Digest, Md5};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// This file of the data; none, with a word why, where it is not.
fn file(name: &str) -> Option<PathBuf> {
    let Some(data) = std::env::var_os("LACUNA_DATA") else {
        eprintln!("skipped: LACUNA_DATA is not set");
        return None;
    };
    let file = Path::new(&data).join(name);
    if !file.is_file() {
        eprintln!("skipped: {} is not there", file.display());
        return None;
    }
    Some(file)
}

fn generator() -> Generator {
    Generator::new(Challenge::new(1024, 120).unwrap())
}

/// The md5 of each official file of 1,024 neurons is that of our layer, written as text.
#[test]
fn all_layers_are_the_official_ones() {
    let Some(sums) = file("spdnn/neuron1024-layers.md5") else { return };
    let generator = generator();
    let sums = fs::read_to_string(sums).unwrap();
    for (l, line) in sums.lines().enumerate() {
        let mut hash = Md5::new();
        tsv::write_layer(&generator.layer(l).unwrap(), &mut hash).unwrap();
        let sum: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(line, format!("{sum}  n1024-l{}.tsv", l + 1));
    }
    assert_eq!(sums.lines().count(), 120);
}

#[test]
fn official_layers_are_read() {
    let generator = generator();
    for number in [1, 7, 120] {
        let Some(path) = file(&format!("spdnn/n1024-l{number}.tsv.gz")) else { return };
        assert_eq!(tsv::read_layer_path(path, 1024).unwrap(), generator.layer(number - 1).unwrap());
    }
}

#[test]
fn official_categories_are_read() {
    let Some(path) = file("spdnn/neuron1024-l120-categories.tsv") else { return };
    let categories = categories::read_path(&path, IMAGES).unwrap();
    assert_eq!((categories.len(), categories[0]), (1812, 286));
    let mut written = Vec::new();
    categories::write(&categories, &mut written).unwrap();
    assert_eq!(written, fs::read(&path).unwrap());
}

/// How far our images of 1,024 pixels are from the official ones, of which the data has the first 1,200.
#[test]
fn images_are_nearly_the_official_ones() {
    let Some(digits) = file("mnist/train-images-idx3-ubyte.gz") else { return };
    let Some(official) = file("spdnn/sparse-images-1024-first1200.mtx.gz") else { return };
    let digits = Digits::read_path(digits).unwrap();
    assert_eq!(digits.len(), IMAGES);
    let images = from_digits(&digits, 32).unwrap();
    assert_eq!((images.rows(), images.cols(), images.nnz()), (IMAGES, 1024, 6_373_995));

    let official = gz::unpack(BufReader::new(File::open(official).unwrap())).unwrap();
    let official = mtx::read(official).unwrap();
    let (mut equal, mut missing, mut more) = (0, 0, 0);
    for image in 0..1200 {
        let (ours, theirs) = (images.row_columns(image), official.row(image).0);
        equal += usize::from(ours == theirs);
        missing += theirs.iter().filter(|pixel| ours.binary_search(pixel).is_err()).count();
        more += ours.iter().filter(|pixel| theirs.binary_search(pixel).is_err()).count();
    }
    // Of 122,713 ones. Why these ten differ is not known.
    assert_eq!((equal, missing, more), (1190, 9, 1));
}

/// MNIST has a label for each image, and of each digit about a tenth.
#[test]
fn labels_go_with_their_images() {
    for name in ["train", "t10k"] {
        let Some(digits) = file(&format!("mnist/{name}-images-idx3-ubyte.gz")) else { return };
        let Some(labels) = file(&format!("mnist/{name}-labels-idx1-ubyte.gz")) else { return };
        let labels = Labels::read_path(labels).unwrap();
        assert_eq!(labels.len(), Digits::read_path(digits).unwrap().len());
        for digit in 0..Labels::CLASSES as u8 {
            let count = labels.as_slice().iter().filter(|&&label| label == digit).count();
            let part = count as f64 / labels.len() as f64;
            assert!((0.08..0.12).contains(&part), "{name}: {part} are {digit}");
        }
    }
}

/// The real masks have the sizes of the layers that they are for.
#[test]
fn masks_of_the_collection_fit_the_transformer() {
    let Some(data) = std::env::var_os("LACUNA_DATA") else {
        eprintln!("skipped: LACUNA_DATA is not set");
        return;
    };
    let folder = Path::new(&data).join("dlmc/transformer/magnitude_pruning");
    let network = TransformerBase::dense(8, 8).unwrap().network(1).unwrap();
    for sparsity in ["0.7", "0.8", "0.9", "0.95"] {
        let folder = folder.join(sparsity);
        if !folder.is_dir() {
            eprintln!("skipped: {} is not there", folder.display());
            return;
        }
        let masks = Masks::read(&folder, &network, TransformerBase::dlmc_file).unwrap();
        assert!(masks.iter().count() >= 6 && masks.iter().count() + masks.missing().count() == 96);
        for (layer, mask) in masks.iter() {
            let zeros = 1.0 - mask.nnz() as f64 / (mask.rows() * mask.cols()) as f64;
            assert!((zeros - sparsity.parse::<f64>().unwrap()).abs() < 1e-4, "{layer}: {zeros}");
        }
    }
}
