//! The oracle of the greatest and the least product: what it accepts, and what it does not.

use lacuna_matrix::Csr;
use lacuna_reference::{
    Epilogue, Extremum, Mismatch, ReferenceError, spmm, spmm_extremum, spmm_extremum_gradient,
    spmm_extremum_rows,
};

/// Rows of products [2, -6, 2], [], [NaN, NaN, 1], and B of one column.
fn example() -> (Csr<f32>, Vec<f32>) {
    let values = vec![1.0, -2.0, 0.5, f32::NAN, f32::NAN, 1.0];
    let a = Csr::new(3, 4, vec![0, 3, 3, 6], vec![0, 1, 2, 0, 1, 3], values);
    (a.unwrap(), vec![2.0, 3.0, 4.0, 1.0])
}

#[test]
fn the_first_of_equal_products_wins_and_the_first_nan() {
    let (a, b) = example();
    let greatest = spmm_extremum(&a, &b, 1, Extremum::Greatest).unwrap();
    assert_eq!(greatest.winners(), [0, u32::MAX, 3]);
    let plain = Epilogue::default();
    assert_eq!(greatest.check_with(&plain, &[2.0, 0.0, f32::NAN]).unwrap().worst_over_bound, 0.0);
    for wrong in [[2.0, -0.0, f32::NAN], [2.0, 0.0, 1.0], [2.0_f32.next_up(), 0.0, f32::NAN]] {
        assert!(matches!(greatest.check_with(&plain, &wrong), Err(Mismatch::Elements { .. })), "{wrong:?}");
    }
    let least = spmm_extremum(&a, &b, 1, Extremum::Least).unwrap();
    assert_eq!(least.winners(), [1, u32::MAX, 3]);
    assert!(least.check_with(&plain, &[-6.0, 0.0, f32::NAN]).is_ok());
}

#[test]
fn some_rows_are_told_by_their_place_in_c() {
    let (a, b) = example();
    let reference = spmm_extremum_rows(&a, &b, 1, Extremum::Greatest, [2, 1]).unwrap();
    let plain = Epilogue::default();
    assert!(reference.check_with(&plain, &[7.0, 0.0, f32::NAN]).is_ok(), "row 0 is not checked");
    let Err(Mismatch::Elements { row, .. }) = reference.check_with(&plain, &[2.0, 0.0, 5.0]) else {
        panic!()
    };
    assert_eq!(row, 2);
    let outside = spmm_extremum_rows(&a, &b, 1, Extremum::Greatest, [3]);
    assert!(matches!(outside, Err(ReferenceError::RowOutOfRange { row: 3, rows: 3 })));
}

#[test]
fn gradients_go_to_winners_alone() {
    let (a, b) = example();
    let [values, of_b] = spmm_extremum_gradient(&a, &b, 1, &[2, u32::MAX, 5], &[10.0, 20.0, 30.0]);
    assert!(values.check(&[0.0, 0.0, 40.0, 0.0, 0.0, 30.0]).is_ok());
    assert!(values.check(&[20.0, 0.0, 40.0, 0.0, 0.0, 30.0]).is_err());
    assert!(of_b.check(&[0.0, 0.0, 5.0, 30.0]).is_ok());
    assert!(of_b.check(&[0.0, 0.0, 5.0, 0.0]).is_err());
}

#[test]
fn means_are_sums_over_the_number_of_products() {
    let a = Csr::new(2, 3, vec![0, 3, 3], vec![0, 1, 2], vec![1.0_f32; 3]).unwrap();
    let reference = spmm(&a, &[1.0, 2.0, 4.0], 1).unwrap().mean();
    assert!(reference.check(&[7.0 / 3.0, 0.0]).is_ok());
    assert!(reference.check(&[7.0 * (1.0 / 3.0), 0.0]).is_ok());
    assert!(reference.check(&[7.0, 0.0]).is_err());
    let epilogue = Epilogue { alpha: 3.0, ..Epilogue::default() };
    assert!(reference.check_with(&epilogue, &[7.0, 0.0]).is_ok());
}
