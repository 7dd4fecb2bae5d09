//! Layers where there are no files of the challenge: sums of a few, in its text form.

use lacuna_models::challenge::{Challenge, Generator, tsv};
use md5::{Digest, Md5};

/// The md5 sum of layer `number`, counted from 1, as the challenge writes it.
fn sum(generator: &Generator, number: usize) -> String {
    let mut hash = Md5::new();
    tsv::write_layer(&generator.layer(number - 1).unwrap(), &mut hash).unwrap();
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Not permuted, permuted by the first draws, and by the last: the sums are of the official files.
#[test]
fn three_layers_are_the_official_ones() {
    let generator = Generator::new(Challenge::new(1024, 120).unwrap());
    assert_eq!(sum(&generator, 1), "0320667c2613120c1fc33287c771d4b5");
    assert_eq!(sum(&generator, 7), "893d7dc32894cc8821afdbccb64970c4");
    assert_eq!(sum(&generator, 120), "e60031347e3d60a1581779a2d027fbf2");
}

/// More layers of a network do not change its first ones.
#[test]
fn a_deeper_network_begins_with_the_same_layers() {
    let few = Generator::new(Challenge::new(256, 10).unwrap());
    let many = Generator::new(Challenge::new(256, 50).unwrap());
    assert!((0..10).all(|layer| few.layer(layer).unwrap() == many.layer(layer).unwrap()));
}
