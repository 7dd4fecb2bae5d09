//! What holds for all matrices and all bytes.

use lacuna_matrix::io::{mtx, npy, smtx};
use lacuna_matrix::{Coo, Csr, Dense, Pattern};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

/// Any value but NaN, which is not equal to itself.
fn value() -> impl Strategy<Value = f32> {
    any::<f32>().prop_filter("NaN", |value| !value.is_nan())
}

/// Matrices of up to 12 × 12, empty ones among them.
fn matrices() -> impl Strategy<Value = Csr<f32>> {
    (0..=12usize, 0..=12usize)
        .prop_flat_map(|(rows, cols)| {
            let places = btree_set(0..(rows * cols).max(1), 0..=rows * cols);
            (Just((rows, cols)), places, vec(value(), rows * cols + 1))
        })
        .prop_map(|((rows, cols), places, values)| {
            let places: Vec<usize> = places.into_iter().filter(|_| rows * cols > 0).collect();
            let row_indices = places.iter().map(|place| (place / cols) as u32).collect();
            let col_indices = places.iter().map(|place| (place % cols) as u32).collect();
            let values = values[..places.len()].to_vec();
            Coo::new(rows, cols, row_indices, col_indices, values).unwrap().to_csr().unwrap()
        })
}

/// Texts that come near to a file: numbers, separators and words of the formats.
fn texts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => (0..6u32).prop_map(|number| number.to_string()),
        4 => Just(" ".to_string()),
        3 => Just("\n".to_string()),
        1 => Just(", ".to_string()),
        1 => Just("-1".to_string()),
        1 => Just("4294967295".to_string()),
        1 => Just("%".to_string()),
        1 => any::<f32>().prop_map(|number| number.to_string()),
    ];
    vec(part, 0..40).prop_map(|parts| parts.concat())
}

const BANNERS: [&str; 3] = [
    "%%MatrixMarket matrix coordinate real general\n",
    "%%MatrixMarket matrix coordinate pattern symmetric\n",
    "%%MatrixMarket matrix coordinate integer skew-symmetric\n",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = smtx::read(&bytes[..]);
        let _ = mtx::read(&bytes[..]);
        let _ = npy::read(&bytes[..]);
    }

    #[test]
    fn texts_never_panic(text in texts(), banner in 0..3usize) {
        let _ = smtx::read(text.as_bytes());
        let _ = mtx::read([BANNERS[banner], &text].concat().as_bytes());
    }

    #[test]
    fn damaged_npy_never_panics(at in 0..100usize, byte in any::<u8>(), cut in 0..100usize) {
        let mut file = Vec::new();
        npy::write(&Dense::new(2, 3, vec![1.0; 6]).unwrap(), &mut file).unwrap();
        file[at] = byte;
        file.truncate(file.len() - cut);
        let _ = npy::read(&file[..]);
    }

    #[test]
    fn constructors_never_panic(
        rows in 0..5usize,
        cols in 0..5usize,
        offsets in vec(0..6u32, 0..6),
        columns in vec(0..6u32, 0..6),
    ) {
        if let Ok(pattern) = Pattern::new(rows, cols, offsets.clone(), columns.clone()) {
            prop_assert_eq!(pattern.row_lengths().sum::<u32>() as usize, columns.len());
            prop_assert_eq!(Pattern::from_unsorted(rows, cols, offsets, columns).unwrap(), pattern);
        }
    }

    #[test]
    fn files_round_trip(a in matrices()) {
        let mut file = Vec::new();
        smtx::write(a.pattern(), &mut file).unwrap();
        prop_assert_eq!(&smtx::read(&file[..]).unwrap(), a.pattern().as_ref());

        let mut file = Vec::new();
        mtx::write(&a, &mut file).unwrap();
        prop_assert_eq!(&mtx::read(&file[..]).unwrap(), &a);

        let dense = Dense::new(a.rows(), a.cols(), a.to_dense().unwrap()).unwrap();
        let mut file = Vec::new();
        npy::write(&dense, &mut file).unwrap();
        prop_assert_eq!(npy::read(&file[..]).unwrap(), dense);
    }

    #[test]
    fn conversions_round_trip(a in matrices()) {
        prop_assert_eq!(&a.to_coo().to_csr().unwrap(), &a);
        prop_assert_eq!(&a.to_coo().to_csr_summing().unwrap(), &a);
        prop_assert_eq!(&a.transpose().transpose(), &a);
        let (dense, transposed) = (a.to_dense().unwrap(), a.transpose().to_dense().unwrap());
        for row in 0..a.rows() {
            for column in 0..a.cols() {
                prop_assert_eq!(dense[row * a.cols() + column], transposed[column * a.rows() + row]);
            }
        }
    }

    /// Kernels count on it.
    #[test]
    fn columns_of_a_row_ascend_strictly(a in matrices(), b in matrices()) {
        let joined = Csr::block_diagonal(&[&a, &b, &a.transpose()]).unwrap();
        let unsorted = a.col_indices().iter().rev().copied().collect();
        let one_row = Pattern::from_unsorted(1, a.cols().max(1), vec![0, a.nnz() as u32], unsorted).ok();
        let summed = a.to_coo().to_csr_summing().unwrap();
        let patterns = [a.pattern(), joined.pattern(), summed.pattern()].map(|pattern| (**pattern).clone());
        for pattern in patterns.into_iter().chain([a.pattern().transpose()]).chain(one_row) {
            for row in 0..pattern.rows() {
                prop_assert!(pattern.row_columns(row).windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }

    #[test]
    fn blocks_lie_where_they_should(a in matrices(), b in matrices()) {
        let joined = Csr::block_diagonal(&[&a, &b]).unwrap();
        let (whole, cols) = (joined.to_dense().unwrap(), a.cols() + b.cols());
        prop_assert_eq!((joined.rows(), joined.cols()), (a.rows() + b.rows(), cols));
        let (a_dense, b_dense) = (a.to_dense().unwrap(), b.to_dense().unwrap());
        for (at, &value) in whole.iter().enumerate() {
            let expected = match (at / cols, at % cols) {
                (row, column) if row < a.rows() && column < a.cols() => a_dense[row * a.cols() + column],
                (row, column) if row >= a.rows() && column >= a.cols() => {
                    b_dense[(row - a.rows()) * b.cols() + column - a.cols()]
                }
                _ => 0.0,
            };
            prop_assert_eq!(value, expected);
        }
    }

    #[test]
    fn row_order_descends_and_is_complete(a in matrices()) {
        let lengths: Vec<u32> = a.row_lengths().collect();
        let order = a.pattern().rows_by_length();
        let keys: Vec<_> = order.iter().map(|&row| (std::cmp::Reverse(lengths[row as usize]), row)).collect();
        prop_assert!(keys.is_sorted());
        prop_assert_eq!(order.len(), a.rows());
    }
}
