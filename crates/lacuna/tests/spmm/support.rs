//! Inputs of small integers, and C = A·B of them.
use lacuna::matrix::{Csr, Pattern, generate};
use lacuna::{CsrMatrix, Device, Index, Stream, Value};

/// Integers from -2 to 2 that differ from place to place.
pub(crate) fn integer(at: usize) -> f32 {
    (at * 7 % 11 % 5) as f32 - 2.0
}

pub(crate) fn integers<T: Value>(len: usize, seed: usize) -> Vec<T> {
    (0..len).map(|at| T::from_f32(integer(at + seed))).collect()
}

/// A pattern with rows of 0 to 40 nonzeros.
pub(crate) fn pattern(rows: usize, cols: usize) -> Pattern {
    generate::with_row_cov(rows, cols, cols as f64 * 0.25, 0.8, 5).unwrap()
}

pub(crate) fn matrix<T: Value>(rows: usize, cols: usize) -> Csr<T> {
    let pattern = pattern(rows, cols);
    let values = integers(pattern.nnz(), 3);
    Csr::with_values(pattern, values).unwrap()
}

/// A on the simulator, with a stream.
pub(crate) fn on_device<T: Value, I: Index>(a: &Csr<T>) -> (Device, Stream, CsrMatrix<T, I>) {
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let a = CsrMatrix::with_index(&device, a).unwrap();
    (device, stream, a)
}

/// C = A·B, M×`n`; B's rows are `stride` elements apart.
pub(crate) fn product<T: Value>(a: &Csr<T>, b: &[T], n: usize, stride: usize) -> Vec<f32> {
    let mut c = vec![0.0; a.rows() * n];
    for (row, c) in c.chunks_mut(n).enumerate() {
        let (columns, values) = a.row(row);
        for (&k, value) in columns.iter().zip(values) {
            for (c, b) in c.iter_mut().zip(&b[k as usize * stride..]) {
                *c += value.to_f32() * b.to_f32();
            }
        }
    }
    c
}
