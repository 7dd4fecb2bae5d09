//! The oracle accepts right results, whatever their order of summation, and rejects wrong ones.

use lacuna_matrix::Csr;
use lacuna_matrix::generate::{random_values, uniform, with_row_cov};
use lacuna_reference::{Mismatch, ReferenceError, spmm, spmm_rows};

/// A matrix of values in [-1, 1), so that sums cancel.
fn sparse(rows: usize, cols: usize, sparsity: f64, seed: u64) -> Csr<f32> {
    let pattern = uniform(rows, cols, sparsity, seed).unwrap();
    let values = random_values(pattern.nnz(), seed + 1);
    Csr::with_values(pattern, values).unwrap()
}

/// C in `f32`, each element by `sum` of its factors.
fn multiply(a: &Csr<f32>, b: &[f32], n: usize, sum: impl Fn(&[(f32, f32)]) -> f32) -> Vec<f32> {
    let mut c = Vec::new();
    for row in 0..a.rows() {
        let (columns, values) = a.row(row);
        for j in 0..n {
            let factors = columns.iter().zip(values).map(|(&k, &v)| (v, b[k as usize * n + j]));
            c.push(sum(&factors.collect::<Vec<_>>()));
        }
    }
    c
}

fn forward(factors: &[(f32, f32)]) -> f32 {
    factors.iter().fold(0.0, |sum, (a, b)| sum + a * b)
}

fn backward_fused(factors: &[(f32, f32)]) -> f32 {
    factors.iter().rev().fold(0.0, |sum, &(a, b)| a.mul_add(b, sum))
}

fn pairwise(factors: &[(f32, f32)]) -> f32 {
    match factors {
        [] => 0.0,
        [(a, b)] => a * b,
        _ => {
            let (left, right) = factors.split_at(factors.len() / 2);
            pairwise(left) + pairwise(right)
        }
    }
}

/// As a warp does: a fused sum a lane, then a tree.
fn lanes(factors: &[(f32, f32)]) -> f32 {
    let mut sums = [0.0f32; 8];
    for (i, (a, b)) in factors.iter().enumerate() {
        sums[i % 8] = a.mul_add(*b, sums[i % 8]);
    }
    for step in [4, 2, 1] {
        for lane in 0..step {
            sums[lane] += sums[lane + step];
        }
    }
    sums[0]
}

#[test]
fn accepts_every_order_of_summation() {
    for (a, n) in [(sparse(40, 300, 0.5, 1), 7), (sparse(3, 20_000, 0.1, 2), 2), (sparse(50, 4, 0.5, 3), 33)]
    {
        let b = random_values(a.cols() * n, 4);
        let reference = spmm(&a, &b, n).unwrap();
        for sum in [forward, backward_fused, pairwise, lanes] {
            let report = reference.check(&multiply(&a, &b, n, sum)).unwrap();
            assert!(report.worst_over_bound > 0.0 && report.worst_over_bound <= 1.0, "{report:?}");
            assert_eq!(report.checked, a.rows() * n);
            assert!(report.worst_at.unwrap().0 < a.rows());
        }
    }
}

#[test]
fn exact_results_have_no_error() {
    let a = Csr::new(2, 3, vec![0, 2, 3], vec![0, 2, 1], vec![1.0f32, 2.0, -3.0]).unwrap();
    let b = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let reference = spmm(&a, &b, 2).unwrap();
    assert_eq!(reference.value(), [11.0, 14.0, -9.0, -12.0]);
    assert_eq!(reference.magnitude(), [11.0, 14.0, 9.0, 12.0]);
    assert_eq!((reference.terms(), reference.rows()), (&[2, 1][..], &[0, 1][..]));
    let report = reference.check(&[11.0, 14.0, -9.0, -12.0]).unwrap();
    assert_eq!((report.worst_over_bound, report.worst_at, report.checked), (0.0, None, 4));
}

#[test]
fn rejects_twice_the_bound() {
    let a = sparse(20, 300, 0.5, 5);
    let b = random_values(300 * 5, 6);
    let reference = spmm(&a, &b, 5).unwrap();
    let right = multiply(&a, &b, 5, forward);
    for (at, sign) in [(0, 1.0), (37, -1.0), (99, 1.0)] {
        let terms = f64::from(reference.terms()[at / 5]);
        let off = 2.0 * terms * 2f64.powi(-24) * reference.magnitude()[at];
        let mut wrong = right.clone();
        wrong[at] = (reference.value()[at] + sign * off) as f32;
        match reference.check(&wrong).unwrap_err() {
            Mismatch::Elements { failures, row, column, got, ratio, .. } => {
                assert_eq!((failures, row, column, got), (1, at / 5, at % 5, wrong[at]));
                assert!((1.9..2.1).contains(&ratio), "{ratio}");
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn rejects_results_that_forget_or_swap_something() {
    let a = sparse(20, 30, 0.5, 7);
    let b = random_values(30 * 8, 8);
    let reference = spmm(&a, &b, 8).unwrap();
    let forget_last = |factors: &[(f32, f32)]| forward(&factors[..factors.len().saturating_sub(1)]);
    assert!(reference.check(&multiply(&a, &b, 8, forget_last)).is_err());
    let mut swapped = multiply(&a, &b, 8, forward);
    swapped.swap(3, 4);
    let got = reference.check(&swapped).unwrap_err();
    assert!(matches!(got, Mismatch::Elements { failures: 2, .. }), "{got}");
    assert!(got.to_string().starts_with("2 of 160 elements are wrong; the worst is row 0, column "), "{got}");
}

#[test]
fn nan_stays_in_the_rows_that_meet_it() {
    // Row 0 meets row 0 of B, row 1 does not, row 2 has no nonzero.
    let a = Csr::new(3, 3, vec![0, 2, 3, 3], vec![0, 1, 2], vec![1.0f32, 1.0, 1.0]).unwrap();
    let reference = spmm(&a, &[f32::NAN, 1.0, 2.0], 1).unwrap();
    assert!(reference.check(&[f32::NAN, 2.0, 0.0]).is_ok());
    for wrong in [[1.0, 2.0, 0.0], [f32::NAN, f32::NAN, 0.0], [f32::NAN, 2.0, f32::NAN]] {
        let got = reference.check(&wrong).unwrap_err();
        assert!(matches!(got, Mismatch::Elements { failures: 1, ratio: f64::INFINITY, .. }), "{got}");
    }
}

#[test]
fn rows_without_nonzeros_are_plus_zero() {
    let a = Csr::<f32>::new(1, 1, vec![0, 0], vec![], vec![]).unwrap();
    let reference = spmm(&a, &[f32::NAN], 1).unwrap();
    assert!(reference.check(&[0.0]).is_ok());
    for wrong in [-0.0, 1e-45, f32::NAN] {
        assert!(reference.check(&[wrong]).is_err(), "{wrong}");
    }
}

#[test]
fn inputs_are_checked() {
    let a = sparse(2, 3, 0.0, 9);
    let got = spmm(&a, &[0.0; 5], 2).unwrap_err();
    assert_eq!(got, ReferenceError::DenseLength { rows: 3, cols: 2, got: 5 });
    assert!(matches!(spmm(&a, &[], usize::MAX).unwrap_err(), ReferenceError::DenseLength { .. }));
    let got = spmm_rows(&a, &[0.0; 6], 2, [0, 2]).unwrap_err();
    assert_eq!(got, ReferenceError::RowOutOfRange { row: 2, rows: 2 });
    let got = spmm(&a, &[0.0; 6], 2).unwrap().check(&[0.0; 6]).unwrap_err();
    assert_eq!(got, Mismatch::Length { rows: 2, cols: 2, got: 6 });
}

#[test]
fn results_that_fit_nowhere_are_refused() {
    // B is empty whatever N is.
    let a = sparse(3, 0, 0.0, 1);
    for n in [usize::MAX, usize::MAX / 3, isize::MAX as usize / 16] {
        assert_eq!(spmm(&a, &[], n).unwrap_err(), ReferenceError::ResultTooLarge { rows: 3, cols: n });
    }
    assert_eq!(spmm(&a, &[], 2).unwrap().value(), [0.0; 6]);
}

#[test]
fn too_long_sums_are_refused() {
    let terms = (1 << 22) + 1;
    let columns = (0..terms as u32).collect();
    let a = Csr::new(1, terms, vec![0, terms as u32], columns, vec![0.0f32; terms]).unwrap();
    let got = spmm(&a, &vec![0.0; terms], 1).unwrap_err();
    assert_eq!(got, ReferenceError::TooManyTerms { row: 0, terms, max: 1 << 22 });
}

#[test]
fn matrices_without_elements() {
    for (rows, cols, n) in [(0, 3, 2), (3, 0, 2), (3, 3, 0), (0, 0, 0)] {
        let a = Csr::<f32>::new(rows, cols, vec![0; rows + 1], vec![], vec![]).unwrap();
        let reference = spmm(&a, &vec![1.0; cols * n], n).unwrap();
        assert_eq!(reference.check(&vec![0.0; rows * n]).unwrap().checked, rows * n);
    }
}

#[test]
fn some_rows_are_those_of_the_whole() {
    let pattern = with_row_cov(50, 64, 16.0, 1.0, 10).unwrap();
    let values = random_values(pattern.nnz(), 11);
    let a = Csr::with_values(pattern, values).unwrap();
    let b = random_values(64 * 3, 12);
    let (whole, some) = (spmm(&a, &b, 3).unwrap(), spmm_rows(&a, &b, 3, [49, 7]).unwrap());
    assert_eq!(some.rows(), [49, 7]);
    assert_eq!(some.value()[..3], whole.value()[49 * 3..]);
    assert_eq!(some.value()[3..], whole.value()[7 * 3..8 * 3]);
    // Only those rows are judged, each against its own place in C.
    let mut c = multiply(&a, &b, 3, lanes);
    c[0] = f32::NAN;
    assert_eq!(some.check(&c).unwrap().checked, 6);
    c[7 * 3 + 1] += 1.0;
    let got = some.check(&c).unwrap_err();
    assert!(matches!(got, Mismatch::Elements { row: 7, column: 1, checked: 6, .. }), "{got}");
}
