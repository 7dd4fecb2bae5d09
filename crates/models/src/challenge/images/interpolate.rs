//! From digits to images of the challenge.

use super::resample::{Buffers, Resampler, weights};
use super::{Digits, MAX_SIDE};
use crate::challenge::ChallengeError;
use lacuna_matrix::{FormatError, Pattern};
use rayon::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most digits taken: some seventeen times those of the challenge.
const MAX_DIGITS: usize = 1 << 20;

/// Bytes that all threads together may work in, but for the least of one thread.
const WORKING_MEMORY: usize = 4 << 30;

/// Enlarges digits to `side` × `side` pixels, and makes each pixel 0 or 1: `digits.len()` × `side`² elements.
///
/// As the challenge's authors did: each image is interpolated along y from 28 to `side` by trigonometric interpolation
/// (MATLAB's `interpft`); then each row, all images side by side as one row of 28 · images pixels, along x in the same way,
/// to `side` · images. A pixel is 1 where it is above half of the greatest pixel of all images, so an image depends on
/// the others: a part of the digits does not give that part of the images. Pixel (x, y) is column x · side + y.
///
/// Sums are in `f64` and fixed in their order; the result depends on the machine only where a pixel is within a few roundings
/// of the half, as the Fourier transforms use what the processor has. Works on all threads of rayon. 60,000 digits at
/// side 256 take 4.4 GB with two threads, and 0.5 GB more for each of up to six others; 1.6 GB remain.
///
/// # Errors
/// If `side` is not of 29 to 256, if there are no digits or more than 2²⁰, or if there are more ones than fit `u32`.
pub fn from_digits(digits: &Digits, side: usize) -> Result<Pattern, ChallengeError> {
    if !(Digits::SIDE + 1..=MAX_SIDE).contains(&side) {
        return Err(ChallengeError::Side { expected: "29 to 256", got: side });
    }
    if !(1..=MAX_DIGITS).contains(&digits.len()) {
        return Err(ChallengeError::Digits { max: MAX_DIGITS, got: digits.len() });
    }
    let rows = interpolate(digits, side);
    transpose(&rows, digits.len(), side)
}

/// One row of all images, a bit a pixel: pixel x of image i is bit i · side + x.
struct Row {
    y: usize,
    bits: Vec<u64>,
}

/// A row before the greatest pixel of all is known.
struct Candidates {
    row: Row,
    /// The pixels whose bit is set, in order.
    values: Vec<f64>,
}

/// All rows, in order.
fn interpolate(digits: &Digits, side: usize) -> Vec<Row> {
    let (from, to) = (Digits::SIDE * digits.len(), side * digits.len());
    let resampler = Resampler::new(from, to);
    // Rows come one by one, because all at once would not fit into memory. Pixels above half of the greatest pixel *so far*
    // are kept with their values: few are too many if the rows begin in the middle, where the ink is.
    let order: Vec<usize> = (side / 2..side).chain((0..side / 2).rev()).collect();
    let next = AtomicUsize::new(0);
    let greatest = Mutex::new(0f64);
    let workers = rayon::current_num_threads().min(WORKING_MEMORY / (32 * to)).max(1);
    let work = |_| {
        let mut buffers = resampler.buffers();
        let mut rows = Vec::new();
        while let Some(&y) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            load(digits, &weights(Digits::SIDE, side, y), &mut buffers);
            resampler.run(&mut buffers);
            let here = buffers.output.iter().fold(0f64, |most, &value| most.max(value));
            let so_far = {
                let mut greatest = greatest.lock().expect("no thread panics with it");
                *greatest = greatest.max(here);
                *greatest
            };
            rows.push(above(y, &buffers.output, so_far / 2.0));
        }
        rows
    };
    let candidates: Vec<Vec<Candidates>> = (0..workers).into_par_iter().map(work).collect();
    let half = greatest.into_inner().expect("no thread panics with it") / 2.0;
    let mut rows: Vec<Row> =
        candidates.into_par_iter().flatten().map(|candidates| settle(candidates, half)).collect();
    rows.sort_unstable_by_key(|row| row.y);
    rows
}

/// Interpolates all images along y to one row, by its weights.
fn load(digits: &Digits, weights: &[f64], buffers: &mut Buffers) {
    let (row, _) = buffers.input.as_chunks_mut::<{ Digits::SIDE }>();
    for (sums, image) in row.iter_mut().zip(digits.images()) {
        *sums = [0.0; Digits::SIDE];
        for (&weight, pixels) in weights.iter().zip(image) {
            for (sum, &pixel) in sums.iter_mut().zip(pixels) {
                *sum += weight * f64::from(pixel);
            }
        }
    }
}

/// The pixels above `half`.
fn above(y: usize, pixels: &[f64], half: f64) -> Candidates {
    let mut values = Vec::new();
    let word = |pixels: &[f64]| {
        let mut word = 0;
        for (bit, &value) in pixels.iter().enumerate() {
            if value > half {
                word |= 1 << bit;
                values.push(value);
            }
        }
        word
    };
    let bits = pixels.chunks(64).map(word).collect();
    Candidates { row: Row { y, bits }, values }
}

/// Clears the bits of pixels that are not above `half`.
fn settle(candidates: Candidates, half: f64) -> Row {
    let Candidates { mut row, values } = candidates;
    let mut values = values.into_iter();
    for word in &mut row.bits {
        let mut left = *word;
        while left != 0 {
            if values.next().is_some_and(|value| value <= half) {
                *word &= !(1 << left.trailing_zeros());
            }
            left &= left - 1;
        }
    }
    row
}

/// From rows of all images to an image a row of the result, columns by x and then y.
fn transpose(rows: &[Row], images: usize, side: usize) -> Result<Pattern, ChallengeError> {
    let columns = |image: usize| {
        let pixel = move |x: usize| {
            let at = image * side + x;
            let ones = rows.iter().filter(move |row| row.bits[at / 64] >> (at % 64) & 1 == 1);
            ones.map(move |row| (x * side + row.y) as u32)
        };
        (0..side).flat_map(pixel)
    };
    let parts: Vec<(Vec<u32>, Vec<u32>)> = (0..images.div_ceil(64))
        .into_par_iter()
        .map(|part| {
            let (mut lengths, mut indices) = (Vec::new(), Vec::new());
            for image in part * 64..images.min((part + 1) * 64) {
                let before = indices.len();
                indices.extend(columns(image));
                lengths.push((indices.len() - before) as u32);
            }
            (lengths, indices)
        })
        .collect();
    join(parts, images, side * side)
}

/// One pattern of parts: of each its rows' lengths, and its columns.
pub(super) fn join(
    parts: Vec<(Vec<u32>, Vec<u32>)>,
    images: usize,
    pixels: usize,
) -> Result<Pattern, ChallengeError> {
    let nonzeros: usize = parts.iter().map(|(_, indices)| indices.len()).sum();
    if nonzeros > u32::MAX as usize {
        return Err(FormatError::TooLarge { what: "nonzeros", got: nonzeros as u64 }.into());
    }
    let (mut row_offsets, mut col_indices) = (vec![0], Vec::with_capacity(nonzeros));
    let mut end = 0;
    for (lengths, indices) in parts {
        for length in lengths {
            end += length;
            row_offsets.push(end);
        }
        col_indices.extend(indices);
    }
    Ok(Pattern::new(images, pixels, row_offsets, col_indices)?)
}
