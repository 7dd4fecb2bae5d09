//! Transposes of dense matrices: out[c][r] = in[r][c].
//!
//! # How far a result may be off
//! Not at all: elements are copied, so that all their bits are the same, those of NaN and the sign of a zero too.
use crate::bound::{Legal, Verdict};
use crate::{ErrorReport, Mismatch, ReferenceError, Value, elements};

/// The transposes, one after another without gaps, to which a result is compared.
#[derive(Debug, Clone)]
pub struct DenseTransposeReference<T = f32> {
    /// Elements of a row of a result.
    rows: usize,
    result: Vec<T>,
}

/// The transposes of `batch` matrices, rows × columns, that stand one after another in `input`, row-major and without gaps.
///
/// # Errors
/// If `input` has another number of elements.
pub fn dense_transpose<T: Value>(
    input: &[T],
    batch: usize,
    [rows, columns]: [usize; 2],
) -> Result<DenseTransposeReference<T>, ReferenceError> {
    let len = batch.checked_mul(rows).and_then(|rows| rows.checked_mul(columns));
    if len != Some(input.len()) {
        let what = "the matrices, all rows one below another";
        let rows = batch.saturating_mul(rows);
        return Err(ReferenceError::FactorLength { what, rows, cols: columns, got: input.len() });
    }
    let mut result = Vec::with_capacity(input.len());
    for matrix in input.chunks_exact((rows * columns).max(1)) {
        for column in 0..columns {
            result.extend((0..rows).map(|row| matrix[row * columns + column]));
        }
    }
    Ok(DenseTransposeReference { rows, result })
}

impl<T: Value> DenseTransposeReference<T> {
    /// Checks a result: the transposes one after another, without gaps.
    ///
    /// # Errors
    /// If `got` has the wrong length, or an element has other bits: told as row and column of all results one below another.
    pub fn check(&self, got: &[T]) -> Result<ErrorReport, Mismatch> {
        let judge = |at: usize, got: T| match got.to_bits32() == self.result[at].to_bits32() {
            true => Verdict::Pass(0.0),
            false => Verdict::Fail(f64::INFINITY),
        };
        let tell = |at: usize| (Legal::exactly(self.result[at].to_f32().into()), 1);
        elements::check(got, self.result.len(), self.rows, judge, tell)
    }

    /// The transposes, one after another without gaps.
    pub fn result(&self) -> &[T] {
        &self.result
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    #[test]
    fn columns_become_rows_in_each_of_a_batch() {
        let input: Vec<f32> = (0..12_u8).map(f32::from).collect();
        let reference = dense_transpose(&input, 2, [2, 3]).unwrap();
        assert_eq!(reference.result(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0, 6.0, 9.0, 7.0, 10.0, 8.0, 11.0]);
        let report = reference.check(reference.result()).unwrap();
        assert_eq!((report.checked, report.worst_over_bound), (12, 0.0));
    }

    #[test]
    fn bits_are_compared() {
        let input = [0.0, -0.0, f16::NAN.to_f32(), 1.0].map(f16::from_f32);
        let reference = dense_transpose(&input, 1, [1, 4]).unwrap();
        for (at, bits) in [(0, 0x8000), (1, 0), (2, 0x7e01), (3, 0x3c01)] {
            let mut got = input;
            got[at] = f16::from_bits(bits);
            let error = reference.check(&got).unwrap_err();
            assert!(
                matches!(error, Mismatch::Elements { failures: 1, row, column: 0, .. } if row == at),
                "{error}"
            );
        }
    }

    #[test]
    fn other_lengths_are_refused() {
        assert!(matches!(
            dense_transpose(&[1.0_f32; 5], 1, [2, 3]),
            Err(ReferenceError::FactorLength { rows: 2, cols: 3, got: 5, .. })
        ));
        assert!(dense_transpose(&[1.0_f32; 6], usize::MAX, [usize::MAX, 3]).is_err());
        let none = dense_transpose::<f32>(&[], 3, [0, 7]).unwrap();
        none.check(&[]).unwrap();
        assert!(matches!(none.check(&[1.0]), Err(Mismatch::Length { .. })));
    }
}
