//! The challenge's files: good, bad and hostile.

use flate2::Compression;
use flate2::write::GzEncoder;
use lacuna_matrix::io::{Place, ReadError};
use lacuna_matrix::{Csr, FormatError, Pattern};
use lacuna_models::challenge::images::{Digits, Labels};
use lacuna_models::challenge::{Challenge, Generator, binary, categories, tsv};
use std::fs;
use std::io::Write;

/// Edges 1 → 0 and 0 → 1, 2 → 1.
fn layer() -> Csr<f32> {
    Csr::new(3, 3, vec![0, 1, 3, 3], vec![1, 0, 2], vec![0.0625, 2.0, -1.0 / 3.0]).unwrap()
}

const LAYER: &str = "2\t1\t6.250000e-02\n1\t2\t2.000000e+00\n3\t2\t-3.33333343e-01\n";

fn read_layer(text: &str) -> Result<Csr<f32>, ReadError> {
    tsv::read_layer(text.as_bytes(), 3)
}

#[test]
fn layers_in_text() {
    let mut written = Vec::new();
    tsv::write_layer(&layer(), &mut written).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), LAYER);
    // Any order, any blanks, no newline at the end.
    let other = "\n3 2 -0.33333334\r\n\n1\t2\t2\n  2\t1\t.0625";
    for text in [LAYER, LAYER.trim_end(), other] {
        assert_eq!(read_layer(text).unwrap(), layer(), "{text:?}");
    }
    assert_eq!(read_layer("").unwrap().nnz(), 0);
}

#[test]
fn errors_of_layers_name_line_expected_and_got() {
    for (text, message) in [
        ("0 1 1\n", "line 1: expected an input of 1 to 3, got `0`"),
        ("1 1 1\n1 4 1\n", "line 2: expected an output of 1 to 3, got `4`"),
        ("4294967297 1 1\n", "line 1: expected an input of 1 to 3, got `4294967297`"),
        ("1 1\n", "line 1: expected a finite number, got the end of the line"),
        ("1 1 nan\n", "line 1: expected a finite number, got `nan`"),
        ("1 1 1e39\n", "line 1: expected a finite number, got `1e39`"),
        ("1 1 1 1\n", "line 1: expected the end of the line, got `1`"),
    ] {
        assert_eq!(read_layer(text).unwrap_err().to_string(), message, "{text:?}");
    }
    let twice = read_layer("1 2 1\n1 2 1\n").unwrap_err();
    assert!(matches!(
        twice,
        ReadError::Format { source: FormatError::Duplicate { row: 1, column: 0, .. }, .. }
    ));
}

#[test]
fn a_layer_is_not_read_past_its_places() {
    let error = tsv::read_layer("1 1 1\n".repeat(100).as_bytes(), 2).unwrap_err().to_string();
    assert_eq!(error, "line 5: expected 4 elements at most, got more");
}

#[test]
fn images_in_text() {
    let images = Pattern::new(3, 4, vec![0, 2, 2, 3], vec![1, 3, 0]).unwrap();
    let text = "1\t2\t1\n1\t4\t1\n3\t1\t1\n";
    let mut written = Vec::new();
    tsv::write_images(&images, &mut written).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), text);
    assert_eq!(tsv::read_images(text.as_bytes(), 3, 4).unwrap(), images);
    for (text, message) in [
        ("4 1 1", "line 1: expected an image of 1 to 3, got `4`"),
        ("1 5 1", "line 1: expected a pixel of 1 to 4, got `5`"),
        ("1 1 0.5", "line 1: expected the value 1, got `0.5`"),
    ] {
        assert_eq!(tsv::read_images(text.as_bytes(), 3, 4).unwrap_err().to_string(), message, "{text:?}");
    }
}

#[test]
fn layers_in_binary() {
    let mut written = Vec::new();
    binary::write_layer(&layer(), &mut written).unwrap();
    let mut expected: Vec<u8> = [1i32, 2, 2, 2, 1, 3].into_iter().flat_map(i32::to_le_bytes).collect();
    expected.extend([0.0625f32, 2.0, -1.0 / 3.0].into_iter().flat_map(f32::to_le_bytes));
    assert_eq!(written, expected);

    let two = written.repeat(2);
    assert_eq!(binary::read_layers(&two[..], 3, 3).unwrap(), [layer(), layer()]);
    let mut reader = &two[..];
    assert_eq!(binary::read_layer(&mut reader, 3, 3).unwrap(), layer());
    assert_eq!(reader, written);
    assert_eq!(binary::read_layers(&[][..], 3, 3).unwrap(), []);
}

#[test]
fn errors_of_binary_layers_name_byte_expected_and_got() {
    let mut good = Vec::new();
    binary::write_layer(&layer(), &mut good).unwrap();
    let broken = |at: usize, bytes: [u8; 4]| {
        let mut bad = good.repeat(2);
        bad[at..at + 4].copy_from_slice(&bytes);
        binary::read_layers(&bad[..], 3, 3).unwrap_err().to_string()
    };
    assert_eq!(broken(4, 0i32.to_le_bytes()), "byte 4: expected an output of 1 to 3, got 0");
    assert_eq!(broken(12, (-1i32).to_le_bytes()), "byte 12: expected an input of 1 to 3, got -1");
    assert_eq!(broken(36 + 32, f32::NAN.to_le_bytes()), "byte 68: expected a finite number, got NaN");
    assert!(broken(36 + 20, 1i32.to_le_bytes()).starts_with("byte 36: row 1"));
    for end in 1..good.len() {
        let error = binary::read_layers(&good[..end], 3, 3).unwrap_err();
        assert!(matches!(error, ReadError::Count { expected: 3, .. }), "{end}: {error}");
    }
    let none = binary::read_layers(&good[..], 3, 0).unwrap_err().to_string();
    assert_eq!(none, "byte 0: expected 0 edges, got more");
}

/// Readers are told a size. Even an absurd one costs what the file has.
#[test]
fn absurd_sizes_cost_no_memory() {
    for edges in [1 << 40, usize::MAX] {
        let error = binary::read_layers(&[1, 0, 0, 0][..], 3, edges).unwrap_err();
        assert!(matches!(error, ReadError::Count { place: Place::Byte(4), .. }), "{error}");
    }
    let mut hostile: Vec<u8> = [0x803u32, u32::MAX, 28, 28].into_iter().flat_map(u32::to_be_bytes).collect();
    hostile.extend([7; 100]);
    let error = Digits::read(&hostile[..]).unwrap_err().to_string();
    assert_eq!(error, "byte 116: expected 3367254359280 pixels, got 100");
    let error = tsv::read_layer(&b"1 1 1"[..], usize::MAX).unwrap_err();
    assert!(matches!(error, ReadError::Format { source: FormatError::TooLarge { .. }, .. }), "{error}");
}

#[test]
fn categories_ascend() {
    assert_eq!(categories::read(&b"1\n\n3\n60000"[..], 60000).unwrap(), [0, 2, 59999]);
    let mut written = Vec::new();
    categories::write(&[0, 2, u32::MAX], &mut written).unwrap();
    assert_eq!(written, b"1\n3\n4294967296\n");
    for (text, message) in [
        ("0", "line 1: expected an image of 1 to 9, got `0`"),
        ("10", "line 1: expected an image of 1 to 9, got `10`"),
        ("3\n3", "line 2: expected an image of 4 to 9, got `3`"),
        ("3\n2", "line 2: expected an image of 4 to 9, got `2`"),
        ("3 4", "line 1: expected the end of the line, got `4`"),
    ] {
        assert_eq!(categories::read(text.as_bytes(), 9).unwrap_err().to_string(), message, "{text:?}");
    }
}

/// An idx file of `images` images.
fn idx(images: u32) -> Vec<u8> {
    let mut file: Vec<u8> = [0x803, images, 28, 28].into_iter().flat_map(u32::to_be_bytes).collect();
    file.extend((0..images * 784).map(|pixel| pixel as u8));
    file
}

#[test]
fn digits() {
    let digits = Digits::read(&idx(3)[..]).unwrap();
    assert_eq!((digits.len(), digits.is_empty()), (3, false));
    assert_eq!(digits.images().nth(1).unwrap()[0][..3], [16, 17, 18]);
    let mut written = Vec::new();
    digits.write(&mut written).unwrap();
    assert_eq!(written, idx(3));
    assert!(Digits::read(&idx(0)[..]).unwrap().is_empty());
}

#[test]
fn files_that_are_no_digits_are_refused() {
    let broken = |at: usize, byte: u8| {
        let mut bad = idx(1);
        bad[at] = byte;
        Digits::read(&bad[..]).unwrap_err().to_string()
    };
    assert_eq!(broken(3, 1), "byte 0: expected 0x00000803, of an idx file of images, got 0x00000801");
    assert_eq!(broken(11, 27), "byte 8: a size of 27 × 28 is not supported; supported: 28 × 28");
    assert_eq!(broken(7, 2), "byte 800: expected 1568 pixels, got 784");
    assert_eq!(broken(7, 0), "byte 16: expected 0 pixels, got more");
    for end in 0..16 {
        let error = Digits::read(&idx(1)[..end]).unwrap_err().to_string();
        assert_eq!(error, format!("byte {end}: expected 16 bytes of a header, got {end}"));
    }
}

#[test]
fn labels() {
    let file = [0, 0, 8, 1, 0, 0, 0, 3, 5, 0, 9];
    let labels = Labels::read(&file[..]).unwrap();
    assert_eq!((labels.as_slice(), labels.len(), labels.is_empty()), (&[5, 0, 9][..], 3, false));
    let mut written = Vec::new();
    labels.write(&mut written).unwrap();
    assert_eq!(written, file);
    assert!(Labels::read(&[0, 0, 8, 1, 0, 0, 0, 0][..]).unwrap().is_empty());
}

#[test]
fn files_that_are_no_labels_are_refused() {
    let good = [0, 0, 8, 1, 0, 0, 0, 3, 5, 0, 9];
    let broken = |at: usize, byte: u8| {
        let mut bad = good;
        bad[at] = byte;
        Labels::read(&bad[..]).unwrap_err().to_string()
    };
    assert_eq!(broken(3, 3), "byte 0: expected 0x00000801, of an idx file of labels, got 0x00000803");
    assert_eq!(broken(9, 10), "byte 9: expected a label of 0 to 9, got 10");
    assert_eq!(broken(7, 4), "byte 11: expected 4 labels, got 3");
    assert_eq!(broken(7, 2), "byte 10: expected 2 labels, got more");
    // More labels than any memory has are announced, and no room is made for them.
    assert_eq!(broken(4, 255), "byte 11: expected 4278190083 labels, got 3");
    for end in 0..8 {
        let error = Labels::read(&good[..end]).unwrap_err().to_string();
        assert_eq!(error, format!("byte {end}: expected 8 bytes of a header, got {end}"));
    }
}

#[test]
fn paths_are_unpacked_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let generator = Generator::new(Challenge::new(64, 2).unwrap());
    let layers = generator.all_layers().unwrap();

    let text = folder.path().join("n64-l1.tsv");
    tsv::write_layer_path(&layers[0], &text).unwrap();
    assert_eq!(tsv::read_layer_path(&text, 64).unwrap(), layers[0]);
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(&fs::read(&text).unwrap()).unwrap();
    let packed_bytes = packer.finish().unwrap();
    let packed = folder.path().join("n64-l1.tsv.gz");
    fs::write(&packed, &packed_bytes).unwrap();
    assert_eq!(tsv::read_layer_path(&packed, 64).unwrap(), layers[0]);

    let whole = folder.path().join("neuron64.bin");
    binary::write_layers_path(&layers, &whole).unwrap();
    assert_eq!(binary::read_layers_path(&whole, 64, 32 * 64).unwrap(), layers);

    let images = folder.path().join("images.tsv");
    tsv::write_images_path(layers[1].pattern(), &images).unwrap();
    assert_eq!(tsv::read_images_path(&images, 64, 64).unwrap(), **layers[1].pattern());

    let truth = folder.path().join("categories.tsv");
    categories::write_path(&[3, 5], &truth).unwrap();
    assert_eq!(categories::read_path(&truth, 64).unwrap(), [3, 5]);

    let labels = folder.path().join("labels");
    fs::write(&labels, [0, 0, 8, 1, 0, 0, 0, 1, 7]).unwrap();
    assert_eq!(Labels::read_path(&labels).unwrap().as_slice(), [7]);
    fs::write(&labels, [0, 0, 8, 1, 0, 0, 0, 1, 17]).unwrap();
    let error = Labels::read_path(&labels).unwrap_err().to_string();
    assert!(error.starts_with("cannot read ") && error.contains("labels: byte 8: "), "{error}");

    // Damaged in the middle, cut short, and not there.
    let mut damaged = packed_bytes.clone();
    damaged[packed_bytes.len() / 2] ^= 0xff;
    for bytes in [&damaged[..], &packed_bytes[..packed_bytes.len() / 2]] {
        fs::write(&packed, bytes).unwrap();
        let error = tsv::read_layer_path(&packed, 64).unwrap_err().to_string();
        assert!(error.starts_with("cannot read ") && error.contains("n64-l1.tsv.gz: line "), "{error}");
    }
    let error = Digits::read_path(folder.path().join("none")).unwrap_err().to_string();
    assert!(error.starts_with("cannot read ") && error.contains("none: "), "{error}");
    let error = categories::write_path(&[], truth.join("below")).unwrap_err().to_string();
    assert!(error.starts_with("cannot write ") && error.contains("below"), "{error}");
}
