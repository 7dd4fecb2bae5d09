//! Any bytes as images of the challenge in text: an error, or images that survive being written and read.
#![no_main]

use lacuna_models::challenge::tsv;
use libfuzzer_sys::fuzz_target;

const IMAGES: usize = 100;
const PIXELS: usize = 1024;

fuzz_target!(|bytes: &[u8]| {
    let Ok(images) = tsv::read_images(bytes, IMAGES, PIXELS) else { return };
    let mut written = Vec::new();
    tsv::write_images(&images, &mut written).expect("writing to memory");
    assert_eq!(tsv::read_images(&written[..], IMAGES, PIXELS).expect("what was written"), images);
});
