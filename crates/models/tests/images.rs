//! Images made of few digits, and drawn ones. Those of MNIST are in `real_data.rs`.

use lacuna_matrix::Pattern;
use lacuna_models::challenge::images::{Digits, drawn, from_digits};
use lacuna_models::challenge::{Challenge, ChallengeError, Generator, MAX, WEIGHT};

/// Digits whose pixels `ink` gives, by image, row and column.
fn digits(images: usize, ink: impl Fn(usize, usize, usize) -> u8) -> Digits {
    let mut file: Vec<u8> = [0x803, images as u32, 28, 28].into_iter().flat_map(u32::to_be_bytes).collect();
    for image in 0..images {
        file.extend((0..28 * 28).map(|pixel| ink(image, pixel / 28, pixel % 28)));
    }
    Digits::read(&file[..]).unwrap()
}

/// A rectangle stays one: enlarged, and its pixels in the order that is documented.
#[test]
fn a_rectangle_is_enlarged() {
    let rectangle = |_, y, x| if (7..21).contains(&y) && (4..11).contains(&x) { 255 } else { 0 };
    for side in [32, 56, 64] {
        let images = from_digits(&digits(3, rectangle), side).unwrap();
        assert_eq!((images.rows(), images.cols()), (3, side * side));
        // Sampled at 28 / side, it reaches from half a pixel before its first to half a pixel past its last one.
        let inside = |from: f64, end: f64, at: usize| {
            let at = (at * 28) as f64 / side as f64;
            (from - 0.5..end - 0.5).contains(&at).then_some(())
        };
        let expected: Vec<u32> = (0..side * side)
            .filter(|pixel| inside(4.0, 11.0, pixel / side).and(inside(7.0, 21.0, pixel % side)).is_some())
            .map(|pixel| pixel as u32)
            .collect();
        let ones = |image| images.row_columns(image);
        let off = expected.iter().filter(|pixel| ones(1).binary_search(pixel).is_err()).count();
        let more = ones(1).iter().filter(|pixel| expected.binary_search(pixel).is_err()).count();
        // Corners are rounded, and overshoot moves an edge by a fraction of a pixel.
        assert!(off + more <= expected.len() / 8, "{side}: {off} and {more} of {}", expected.len());
        // All images are the same, and the row of images is a circle.
        assert!((0..3).all(|image| ones(image) == ones(0)));
    }
}

/// The threshold is half of the greatest pixel of all images, not of each.
#[test]
fn a_faint_image_is_blank_beside_a_strong_one() {
    let spot = |image, y, x| match (image, y, x) {
        (0, 9..19, 9..19) => 255,
        (1, 9..19, 9..19) => 60,
        _ => 0,
    };
    let images = from_digits(&digits(2, spot), 32).unwrap();
    assert!(images.row_columns(0).len() > 80 && images.row_columns(1).is_empty());
    let blank = from_digits(&digits(2, |_, _, _| 0), 32).unwrap();
    assert_eq!((blank.rows(), blank.nnz()), (2, 0));
}

#[test]
fn sizes_out_of_range_say_what_is_legal() {
    let some = digits(1, |_, _, _| 9);
    for side in [0, 28, 257] {
        let error = from_digits(&some, side).unwrap_err();
        assert_eq!(error, ChallengeError::Side { expected: "29 to 256", got: side });
    }
    let none = from_digits(&digits(0, |_, _, _| 0), 32).unwrap_err();
    assert!(matches!(none, ChallengeError::Digits { got: 0, .. }), "{none}");
    for side in [0, 3, 257] {
        assert_eq!(drawn(1, side, 0), Err(ChallengeError::Side { expected: "4 to 256", got: side }));
    }
    assert_eq!(drawn(0, 32, 0).unwrap().rows(), 0);
}

#[test]
fn drawn_images_are_the_same_for_a_seed() {
    let images = drawn(100, 32, 7).unwrap();
    assert_eq!(drawn(100, 32, 7).unwrap(), images);
    assert_ne!(drawn(100, 32, 8).unwrap(), images);
    // On every machine.
    assert_eq!((images.nnz(), &images.row_columns(99)[..3]), (10614, &[311, 312, 313][..]));
    let few = drawn(10, 32, 7).unwrap();
    assert!((0..10).all(|image| few.row_columns(image) == images.row_columns(image)));
}

/// Ones of all pixels, and of the image with the fewest and the most.
fn density(images: &Pattern) -> (f64, f64, f64) {
    let pixels = images.cols() as f64;
    let of = |ones: u32| f64::from(ones) / pixels;
    let (least, most) = (images.row_lengths().min().unwrap(), images.row_lengths().max().unwrap());
    (images.nnz() as f64 / (pixels * images.rows() as f64), of(least), of(most))
}

#[test]
fn drawn_images_are_as_dense_as_digits() {
    for side in [32, 64, 128, 256] {
        let (mean, least, most) = density(&drawn(1000, side, 1).unwrap());
        assert!((0.09..0.12).contains(&mean), "{side}: {mean}");
        assert!(least > 0.005 && least < 0.03 && most > 0.2 && most < 0.4, "{side}: {least} {most}");
    }
}

/// As with the challenge's images, few are left after its layers, but some.
#[test]
fn a_network_leaves_some_of_the_drawn_images() {
    let images = drawn(300, 32, 1).unwrap();
    let challenge = Challenge::new(1024, 120).unwrap();
    let generator = Generator::new(challenge);
    let mut active: Vec<Vec<f32>> = (0..images.rows())
        .map(|image| {
            let mut pixels = vec![0.0; images.cols()];
            images.row_columns(image).iter().for_each(|&pixel| pixels[pixel as usize] = 1.0);
            pixels
        })
        .collect();
    for layer in 0..challenge.layers() {
        let pattern = generator.pattern(layer).unwrap();
        for pixels in &mut active {
            let neuron = |row| {
                let sum: f32 = pattern.row_columns(row).iter().map(|&column| pixels[column as usize]).sum();
                (sum * WEIGHT + challenge.bias()).clamp(0.0, MAX)
            };
            *pixels = (0..challenge.neurons()).map(neuron).collect();
        }
        active.retain(|pixels| pixels.iter().any(|&value| value > 0.0));
    }
    assert!((3..=30).contains(&active.len()), "{} of 300", active.len());
    assert!(active.iter().flatten().all(|&value| value == MAX));
}
