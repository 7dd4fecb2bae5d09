//! Construction, its errors, and conversion.

use half::f16;
use lacuna_matrix::{Coo, Csr, Dense, FormatError, Pattern};

/// A pattern of 3 × 4 with an empty row.
fn pattern() -> Pattern {
    Pattern::new(3, 4, vec![0, 2, 2, 5], vec![1, 3, 0, 1, 2]).unwrap()
}

fn matrix() -> Csr<f32> {
    Csr::with_values(pattern(), vec![1.0, 2.0, 3.0, 4.0, 5.0]).unwrap()
}

#[test]
fn parts_come_back() {
    let a = matrix();
    assert_eq!((a.rows(), a.cols(), a.nnz()), (3, 4, 5));
    assert_eq!(a.row_offsets(), [0, 2, 2, 5]);
    assert_eq!(a.col_indices(), [1, 3, 0, 1, 2]);
    assert_eq!(a.row(0), (&[1, 3][..], &[1.0, 2.0][..]));
    assert_eq!(a.row(1), (&[][..], &[][..]));
    assert_eq!(a.row_lengths().collect::<Vec<_>>(), [2, 0, 3]);
}

#[test]
fn rows_are_picked_in_any_order() {
    assert_eq!(Pattern::of_rows(4, [&[1, 3][..], &[], &[0, 1, 2]]).unwrap(), pattern());
    let got = Pattern::of_rows(4, [[2, 1]]).unwrap_err();
    assert_eq!(got, FormatError::UnsortedColumns { row: 0, position: 1, previous: 2, column: 1 });
    let some = matrix().select_rows([2, 1, 2]).unwrap();
    assert_eq!((some.rows(), some.cols(), some.row_offsets()), (3, 4, &[0, 3, 3, 6][..]));
    assert_eq!(some.values(), [3.0, 4.0, 5.0, 3.0, 4.0, 5.0]);
    assert_eq!(pattern().select_rows([]).unwrap().rows(), 0);
}

#[test]
fn offsets_are_checked() {
    let new = |offsets: &[u32], columns: &[u32]| Pattern::new(2, 3, offsets.to_vec(), columns.to_vec());
    let got = new(&[0, 1], &[0]).unwrap_err();
    assert_eq!(got, FormatError::Length { what: "row offsets", expected: 3, got: 2 });
    assert_eq!(new(&[], &[]).unwrap_err(), FormatError::Length { what: "row offsets", expected: 3, got: 0 });
    assert_eq!(new(&[1, 1, 1], &[0]).unwrap_err(), FormatError::OffsetsStart { got: 1 });
    let got = new(&[0, 2, 1], &[0]).unwrap_err();
    assert_eq!(got, FormatError::OffsetsDecrease { row: 1, start: 2, end: 1 });
    assert_eq!(new(&[0, 1, 3], &[0]).unwrap_err(), FormatError::OffsetsEnd { expected: 1, got: 3 });
    assert_eq!(new(&[0, 9, 9], &[0]).unwrap_err(), FormatError::OffsetsEnd { expected: 1, got: 9 });
}

#[test]
fn columns_are_checked() {
    let new = |columns: &[u32]| Pattern::new(2, 3, vec![0, 1, 3], columns.to_vec());
    let got = new(&[0, 1, 3]).unwrap_err();
    assert_eq!(got, FormatError::ColumnOutOfRange { row: 1, position: 2, column: 3, cols: 3 });
    let got = new(&[0, 2, 1]).unwrap_err();
    assert_eq!(got, FormatError::UnsortedColumns { row: 1, position: 2, previous: 2, column: 1 });
    let got = new(&[0, 2, 2]).unwrap_err();
    assert_eq!(got, FormatError::Duplicate { row: 1, column: 2, position: 2 });
    // The last column of a row may be above the first of the next.
    assert!(new(&[2, 0, 1]).is_ok());
}

#[test]
fn sizes_are_checked() {
    let large = u32::MAX as usize + 1;
    let got = Pattern::new(large, 1, vec![], vec![]).unwrap_err();
    assert_eq!(got, FormatError::TooLarge { what: "rows", got: 1 << 32 });
    let got = Pattern::new(0, large, vec![0], vec![]).unwrap_err();
    assert_eq!(got, FormatError::TooLarge { what: "columns", got: 1 << 32 });
    let got = Csr::with_values(pattern(), vec![0.0f32; 4]).unwrap_err();
    assert_eq!(got, FormatError::Length { what: "values", expected: 5, got: 4 });
}

#[test]
fn signed_indices_are_checked() {
    let new = |offsets: &[i64], columns: &[i64]| Csr::from_signed(2, 3, offsets, columns, vec![1.0f32; 2]);
    assert_eq!(new(&[0, 1, 2], &[2, 0]).unwrap().col_indices(), [2, 0]);
    let got = new(&[0, -1, 2], &[2, 0]).unwrap_err();
    assert_eq!(got, FormatError::Negative { what: "row offsets", position: 1, got: -1 });
    let got = new(&[0, 1, 2], &[2, -7]).unwrap_err();
    assert_eq!(got, FormatError::Negative { what: "column indices", position: 1, got: -7 });
    let got = new(&[0, 1, 1 << 32], &[2, 0]).unwrap_err();
    assert_eq!(got, FormatError::TooLarge { what: "nonzeros", got: 1 << 32 });
    let got = new(&[0, 1, 2], &[2, 1 << 40]).unwrap_err();
    assert_eq!(got, FormatError::ColumnOutOfRange { row: 1, position: 1, column: 1 << 40, cols: 3 });
}

#[test]
fn from_unsorted_sorts_rows_and_keeps_the_other_checks() {
    let sorted = Pattern::from_unsorted(2, 4, vec![0, 3, 4], vec![3, 0, 2, 1]).unwrap();
    assert_eq!(sorted.col_indices(), [0, 2, 3, 1]);
    let got = Pattern::from_unsorted(2, 4, vec![0, 3, 4], vec![3, 0, 3, 1]).unwrap_err();
    assert_eq!(got, FormatError::Duplicate { row: 0, column: 3, position: 2 });
    assert!(Pattern::from_unsorted(2, 4, vec![0, 9, 4], vec![3, 0, 3, 1]).is_err());
}

#[test]
fn transposes() {
    let t = matrix().transpose();
    assert_eq!((t.rows(), t.cols()), (4, 3));
    assert_eq!(t.row_offsets(), [0, 1, 3, 4, 5]);
    assert_eq!(t.col_indices(), [2, 0, 2, 2, 0]);
    assert_eq!(t.values(), [3.0, 1.0, 4.0, 5.0, 2.0]);
    assert_eq!(t.pattern().as_ref(), &pattern().transpose());
}

#[test]
fn the_order_of_a_transposed_pattern_gathers_its_values() {
    let (transposed, order) = pattern().transpose_with_order();
    assert_eq!(order, [2, 0, 3, 4, 1]);
    let values: Vec<f32> = order.iter().map(|&position| matrix().values()[position as usize]).collect();
    assert_eq!(Csr::with_values(transposed, values).unwrap(), matrix().transpose());
}

#[test]
fn converted_values_share_the_pattern() {
    let a = matrix();
    let halves = a.map_values(f16::from_f32);
    assert!(std::sync::Arc::ptr_eq(a.pattern(), halves.pattern()));
    assert_eq!(halves.map_values(f16::to_f32), a);
}

#[test]
fn blocks_stand_on_the_diagonal() {
    let (a, b) = (matrix(), Csr::new(1, 2, vec![0, 1], vec![1], vec![6.0]).unwrap());
    let without_columns = Csr::new(1, 0, vec![0, 0], vec![], vec![]).unwrap();
    let all = Csr::block_diagonal(&[&b, &without_columns, &a, &b]).unwrap();
    assert_eq!((all.rows(), all.cols()), (6, 8));
    assert_eq!(all.row_offsets(), [0, 1, 1, 3, 3, 6, 7]);
    assert_eq!(all.col_indices(), [1, 3, 5, 2, 3, 4, 7]);
    assert_eq!(all.values(), [6.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(Csr::block_diagonal(&[&a]).unwrap(), a);
    let none = Csr::<f32>::block_diagonal(&[]).unwrap();
    assert_eq!((none.rows(), none.cols(), none.row_offsets()), (0, 0, &[0][..]));
}

#[test]
fn too_many_blocks_are_refused() {
    let wide = Pattern::new(0, u32::MAX as usize, vec![0], vec![]).unwrap();
    assert_eq!(Pattern::block_diagonal(&[&wide]).unwrap(), wide);
    let got = Pattern::block_diagonal(&[&wide, &wide]).unwrap_err();
    assert_eq!(got, FormatError::TooLarge { what: "columns", got: 2 * u64::from(u32::MAX) });
    let long = Pattern::new(1 << 24, 1, vec![0; (1 << 24) + 1], vec![]).unwrap();
    let got = Pattern::block_diagonal(&[&long; 256]).unwrap_err();
    assert_eq!(got, FormatError::TooLarge { what: "rows", got: 1 << 32 });
}

#[test]
fn dense_and_back() {
    let dense = matrix().to_dense().unwrap();
    assert_eq!(dense, [0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 3.0, 4.0, 5.0, 0.0]);
    assert_eq!(Csr::from_dense(3, 4, &dense).unwrap(), matrix());
    let got = Csr::from_dense(3, 5, &dense).unwrap_err();
    assert_eq!(got, FormatError::Length { what: "dense matrix", expected: 15, got: 12 });
    let got = Dense::new(usize::MAX, usize::MAX, vec![0.0f32]).unwrap_err();
    assert!(matches!(got, FormatError::Length { got: 1, .. }));
}

#[test]
fn too_large_for_dense_is_an_error() {
    // 2^20 rows of 2^32 - 1 columns: 2^54 bytes, more than an address space holds.
    let (rows, cols) = (1 << 20, u32::MAX as usize);
    let a = Csr::<f32>::new(rows, cols, vec![0; rows + 1], vec![], vec![]).unwrap();
    let got = a.to_dense().unwrap_err();
    assert_eq!(got, FormatError::OutOfMemory { elements: rows as u128 * cols as u128, bytes: 4 });
}

#[test]
fn coo_is_checked() {
    let got = Coo::new(2, 2, vec![0, 2], vec![0, 0], vec![1.0, 1.0]).unwrap_err();
    assert_eq!(got, FormatError::RowOutOfRange { position: 1, row: 2, rows: 2 });
    let got = Coo::new(2, 2, vec![0, 1], vec![0, 2], vec![1.0, 1.0]).unwrap_err();
    assert_eq!(got, FormatError::ColumnOutOfRange { row: 1, position: 1, column: 2, cols: 2 });
    let got = Coo::new(2, 2, vec![0, 1], vec![0], vec![1.0, 1.0]).unwrap_err();
    assert_eq!(got, FormatError::Length { what: "column indices", expected: 2, got: 1 });
    let got = Coo::new(2, 2, vec![0], vec![0], vec![1.0, 1.0]).unwrap_err();
    assert_eq!(got, FormatError::Length { what: "values", expected: 1, got: 2 });
}

#[test]
fn coo_sorts_into_csr() {
    let coo =
        Coo::new(3, 4, vec![2, 0, 2, 0, 2], vec![2, 3, 0, 1, 1], vec![5.0, 2.0, 3.0, 1.0, 4.0]).unwrap();
    assert_eq!(coo.to_csr().unwrap(), matrix());
    assert_eq!(coo.to_csr().unwrap().to_coo().to_csr().unwrap(), matrix());
}

#[test]
fn duplicates_are_an_error_or_summed() {
    // (0, 1) thrice; (1, 1) follows it in the next row and must stay apart.
    let coo = Coo::new(2, 2, vec![0, 1, 0, 0], vec![1, 1, 1, 1], vec![1.0, 8.0, 2.0, 4.0]).unwrap();
    assert_eq!(coo.to_csr().unwrap_err(), FormatError::Duplicate { row: 0, column: 1, position: 1 });
    let summed = Csr::new(2, 2, vec![0, 1, 2], vec![1, 1], vec![7.0, 8.0]).unwrap();
    assert_eq!(coo.to_csr_summing().unwrap(), summed);
}

#[test]
fn empty_matrices_are_matrices() {
    for (rows, cols) in [(0, 0), (0, 5), (5, 0), (3, 3)] {
        let a = Csr::<f32>::new(rows, cols, vec![0; rows + 1], vec![], vec![]).unwrap();
        assert_eq!(a.to_dense().unwrap().len(), rows * cols);
        assert_eq!(a.transpose().transpose(), a);
        assert_eq!(a.to_coo().to_csr().unwrap(), a);
        assert_eq!(a.to_coo().to_csr_summing().unwrap(), a);
        assert_eq!(a.pattern().rows_by_length().len(), rows);
    }
}

#[test]
fn row_swizzle_is_stable() {
    let lengths = [1, 3, 0, 3, 1];
    let mut offsets = vec![0];
    offsets.extend(lengths.iter().scan(0, |sum, length| {
        *sum += length;
        Some(*sum)
    }));
    let columns = lengths.iter().flat_map(|&length| 0..length).collect();
    let pattern = Pattern::new(5, 3, offsets, columns).unwrap();
    assert_eq!(pattern.rows_by_length(), [1, 3, 0, 4, 2]);
}

#[test]
fn matrices_share_a_pattern() {
    let a = matrix();
    let b = Csr::with_values(a.pattern().clone(), vec![0u8; 5]).unwrap();
    assert!(std::sync::Arc::ptr_eq(a.pattern(), b.pattern()));
}

#[test]
fn statistics_of_a_known_pattern() {
    let stats = pattern().stats();
    assert_eq!((stats.rows, stats.cols, stats.nnz, stats.empty_rows), (3, 4, 5, 1));
    assert_eq!((stats.min_row_length, stats.max_row_length), (0, 3));
    assert!((stats.sparsity - 7.0 / 12.0).abs() < 1e-15);
    assert!((stats.mean_row_length - 5.0 / 3.0).abs() < 1e-15);
    // The lengths 2, 0, 3: variance 14 / 9.
    assert!((stats.row_length_cov - (14.0f64 / 9.0).sqrt() / (5.0 / 3.0)).abs() < 1e-15);
}

#[test]
fn statistics_of_empty_patterns_are_finite() {
    for (rows, cols) in [(0, 0), (0, 4), (4, 0), (4, 4)] {
        let stats = Pattern::new(rows, cols, vec![0; rows + 1], vec![]).unwrap().stats();
        assert_eq!((stats.mean_row_length, stats.row_length_cov), (0.0, 0.0));
        assert_eq!(stats.sparsity, if rows * cols == 0 { 0.0 } else { 1.0 });
        assert_eq!(stats.empty_rows, rows);
    }
}
