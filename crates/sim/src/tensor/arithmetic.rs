//! What a warp computes together: tensor-core products, and matrices loaded from shared memory.
//!
//! Inside one instruction a GPU adds in an order and with roundings that nobody defines. Here products are exact, sums
//! are in `f64`, and the result is cut off towards zero, as GPUs cut it; the oracle's bound covers the difference.
use half::{bf16, f16};
use lacuna_gpu::WARP;

use crate::synchronisation::exchange::Parcels;

/// Rows of A and C.
const ROWS: usize = 16;
/// Columns of B and C.
const COLUMNS: usize = 8;
/// Columns of A and rows of B, at most.
const DEPTH: usize = 16;

/// The numbers that a product multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Factors {
    Tf32,
    F16,
    Bf16,
}

impl Factors {
    /// Numbers in a word.
    pub(crate) const fn packed(self) -> usize {
        match self {
            Self::Tf32 => 1,
            Self::F16 | Self::Bf16 => 2,
        }
    }

    /// Number `index` of a word. TF32 has the upper 19 bits of an `f32`; a NaN that says so below them only is infinite.
    pub(crate) fn value(self, word: u32, index: usize) -> f64 {
        let bits = (word >> (16 * index)) as u16;
        match self {
            Self::Tf32 => f32::from_bits(word & 0xffff_e000).into(),
            Self::F16 => f16::from_bits(bits).into(),
            Self::Bf16 => bf16::from_bits(bits).into(),
        }
    }
}

/// Row (or column) and place in its group of four, of a lane.
const fn split(lane: usize) -> (usize, usize) {
    (lane / 4, lane % 4)
}

/// Replaces each lane's A, B and C by its part of `A·B + C`.
pub(crate) fn multiply(factors: Factors, parcels: &mut Parcels) {
    let packed = factors.packed();
    let a = rows_of_a(factors, &parcels.map(|[a, b, c, d, ..]| [a, b, c, d]));
    let mut b = [[0.0; COLUMNS]; DEPTH];
    let mut sums = [[0.0; COLUMNS]; ROWS];
    for (lane, parcel) in parcels.iter().enumerate() {
        let (group, place) = split(lane);
        for index in 0..packed {
            for word in 0..2 {
                b[packed * (place + word * 4) + index][group] = factors.value(parcel[4 + word], index);
            }
        }
        for word in 0..4 {
            let sum = f32::from_bits(parcel[6 + word]);
            sums[group + word / 2 * 8][2 * place + word % 2] = sum.into();
        }
    }
    for (sums, a) in sums.iter_mut().zip(&a) {
        for (a, b) in a.iter().zip(&b[..8 * packed]) {
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum += a * b;
            }
        }
    }
    for (lane, parcel) in parcels.iter_mut().enumerate() {
        let (group, place) = split(lane);
        for word in 0..4 {
            parcel[word] = cut(sums[group + word / 2 * 8][2 * place + word % 2]).to_bits();
        }
    }
}

/// A, of which each lane has given four words.
pub(crate) fn rows_of_a(factors: Factors, words: &[[u32; 4]; WARP as usize]) -> [[f64; DEPTH]; ROWS] {
    let packed = factors.packed();
    let mut a = [[0.0; DEPTH]; ROWS];
    for (lane, words) in words.iter().enumerate() {
        let (group, place) = split(lane);
        for index in 0..packed {
            for (word, &bits) in words.iter().enumerate() {
                let depth = packed * (place + word / 2 * 4) + index;
                a[group + word % 2 * 8][depth] = factors.value(bits, index);
            }
        }
    }
    a
}

/// Adds `A·B` to sums, with 16 columns of A and rows of B; rows lie one after the other.
pub(crate) fn accumulate(a: &[f64], b: &[f64], sums: &mut [f32]) {
    let columns = b.len() / DEPTH;
    let mut exact = vec![0.0; columns];
    for (a, sums) in a.chunks_exact(DEPTH).zip(sums.chunks_exact_mut(columns)) {
        for (exact, &sum) in exact.iter_mut().zip(&*sums) {
            *exact = sum.into();
        }
        for (a, b) in a.iter().zip(b.chunks_exact(columns)) {
            for (exact, b) in exact.iter_mut().zip(b) {
                *exact += a * b;
            }
        }
        for (sum, &exact) in sums.iter_mut().zip(&exact) {
            *sum = cut(exact);
        }
    }
}

/// The next `f32` towards zero; infinite from 2¹²⁸ on. A NaN becomes the one that GPUs give.
fn cut(sum: f64) -> f32 {
    if sum.is_nan() {
        return f32::from_bits(0x7fff_ffff);
    }
    let near = sum as f32;
    let beyond =
        if near.is_infinite() { sum.abs() < 2f64.powi(128) } else { f64::from(near).abs() > sum.abs() };
    if beyond { f32::from_bits(near.to_bits() - 1) } else { near }
}

/// Replaces the rows of four matrices, which lanes 8·i to 8·i + 7 have given, by each lane's part of each matrix.
pub(crate) fn distribute(transposed: bool, parcels: &mut Parcels) {
    let rows = *parcels;
    let element = |matrix: usize, row: usize, column: usize| {
        rows[8 * matrix + row][column / 2] >> (16 * (column % 2)) & 0xffff
    };
    for (lane, parcel) in parcels.iter_mut().enumerate() {
        let (row, place) = split(lane);
        for (matrix, word) in parcel.iter_mut().take(4).enumerate() {
            *word = if transposed {
                element(matrix, 2 * place, row) | element(matrix, 2 * place + 1, row) << 16
            } else {
                rows[8 * matrix + row][place]
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_cut_off_towards_zero() {
        let last = 2f64.powi(-24);
        assert_eq!(cut(1.0 + last), 1.0);
        assert_eq!(cut(-(1.0 + 1.9 * last)), -1.0);
        assert_eq!(cut(1.0 - last / 4.0), 1.0 - f32::EPSILON / 2.0);
        assert_eq!(cut(1.0 + 2.0 * last), 1.0 + f32::EPSILON);
        assert_eq!(cut(1.9 * 2f64.powi(-149)).to_bits(), 1);
        assert_eq!(cut(-0.9 * 2f64.powi(-149)).to_bits(), 1 << 31);
    }

    #[test]
    fn the_largest_numbers_and_those_beyond() {
        let end = 2f64.powi(128);
        assert_eq!(cut(end), f32::INFINITY);
        assert_eq!(cut(-end), f32::NEG_INFINITY);
        assert_eq!(cut(f64::NEG_INFINITY), f32::NEG_INFINITY);
        assert_eq!(cut(end * (1.0 - f64::EPSILON)), f32::MAX);
        assert_eq!(cut(f64::NAN).to_bits(), 0x7fff_ffff);
    }
}
