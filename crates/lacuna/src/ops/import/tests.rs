use lacuna_matrix::generate;
use proptest::prelude::*;

use super::*;
use crate::pattern::row_table;
use crate::{Bags, Device, Spmm};

/// Imports on the simulator what a host pattern has, with indices of type `S` to `I`.
fn import<S: ForeignIndex, I: Index>(
    [rows, cols]: [usize; 2],
    offsets: &[S],
    columns: &[S],
) -> Result<Vec<u32>> {
    let device = Device::simulator();
    let stream = device.stream()?;
    let (offsets, columns) = (device.upload(offsets)?, device.upload(columns)?);
    let a = CsrMatrix::<f32, I>::from_indices(&stream, [rows, cols], offsets.as_slice(), columns.as_slice())?;
    assert_eq!((a.rows(), a.cols(), a.nnz(), a.batch()), (rows, cols, columns.len(), 0));
    let mut copied: Vec<u32> =
        a.pattern().columns.download(&stream)?.into_iter().map(Index::to_column).collect();
    assert!(copied.drain(columns.len()..).all(|padding| padding == 0));
    Ok(copied)
}

fn message(result: Result<Vec<u32>>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn columns_of_all_types_arrive() {
    let host = generate::uniform(37, 300, 0.8, 1).unwrap();
    let shape = [37, 300];
    let (offsets, columns) = (host.row_offsets(), host.col_indices());
    let wide = |numbers: &[u32]| numbers.iter().map(|&n| n.into()).collect::<Vec<i64>>();
    let signed = |numbers: &[u32]| numbers.iter().map(|&n| n as i32).collect::<Vec<i32>>();
    assert_eq!(import::<u32, u32>(shape, offsets, columns).unwrap(), columns);
    assert_eq!(import::<i64, u32>(shape, &wide(offsets), &wide(columns)).unwrap(), columns);
    assert_eq!(import::<i64, u16>(shape, &wide(offsets), &wide(columns)).unwrap(), columns);
    assert_eq!(import::<i32, u16>(shape, &signed(offsets), &signed(columns)).unwrap(), columns);
}

#[test]
fn empty_rows_and_empty_matrices_are_patterns() {
    assert!(import::<i32, u32>([0, 0], &[0], &[]).unwrap().is_empty());
    assert!(import::<i32, u32>([3, 0], &[0; 4], &[]).unwrap().is_empty());
    // Columns fall at a row that follows empty ones, and rise over a row's start.
    assert_eq!(import::<i64, u32>([5, 9], &[0, 0, 2, 2, 3, 4], &[3, 8, 0, 1]).unwrap(), [3, 8, 0, 1]);
}

#[test]
fn the_first_wrong_element_is_named() {
    let of = |columns: &[i64]| message(import::<i64, u32>([3, 10], &[0, 2, 2, 5], columns));
    assert_eq!(of(&[1, 10, 0, 1, 2]), "column index of row 0 at position 1: expected less than 10, got 10");
    assert_eq!(of(&[1, 2, -1, 1, 99]), "column indices: expected no negative number, got -1 at position 2");
    assert!(of(&[1, 2, 5, 4, 99]).starts_with("row 2 at position 3: expected a column above 5"));
    assert!(of(&[1, 1, 5, 4, 99]).starts_with("row 0 at position 1: column 1 was given before"));
    // A column of more than 32 bits whose lower half is a good one.
    assert!(of(&[1, 2, 3, 4, (1 << 32) + 5]).contains("got 4294967301"));
    // Without its sign it would be below so many columns, and rows of a table.
    let huge = message(import::<i32, u32>([1, 4_000_000_000], &[0, 2], &[5, -1_000_000_000]));
    assert_eq!(huge, "column indices: expected no negative number, got -1000000000 at position 1");
    let of_table = import_bags::<i32, u64>(1 << 40, &[0, 1], &[-7]).unwrap_err().to_string();
    assert!(of_table.contains("got -7") || of_table.contains("-7 (number 0 of 1)"), "{of_table}");
    let of_lists = import_lists::<i32, u32>([1, 4_000_000_000], &[-5], 1, None).unwrap_err().to_string();
    assert!(of_lists.contains("got -5 at position 0"), "{of_lists}");
    let rows = import_coo::<i32>([3_000_000_000, 1], &[0], &[0]).unwrap_err().to_string();
    assert!(rows.contains("the number of rows that such indices count"), "{rows}");
    let narrow = message(import::<i32, u16>([1, 10], &[0, 2], &[-70_000, 3]));
    assert_eq!(narrow, "column indices: expected no negative number, got -70000 at position 0");
}

#[test]
fn row_offsets_are_checked() {
    let of = |offsets: &[i32]| message(import::<i32, u32>([2, 4], offsets, &[0, 1]));
    assert!(of(&[1, 1, 2]).contains("expected 0 at the start, got 1"));
    assert!(of(&[0, 2, 1]).contains("expected row 1 to end at 2 or later"));
    assert!(of(&[0, 1, 3]).contains("expected the last to be the number of column indices, 2, got 3"));
    assert!(of(&[0, -1, 2]).contains("got -1 at position 1"));
    assert!(of(&[0, 2]).contains("the row offsets has 2 elements, but 3 are expected"));
    let many = message(import::<i64, u32>([1, 4], &[0, 1 << 33], &[0, 1]));
    assert!(many.contains("8589934592"), "{many}");
    let columns = message(import::<u32, u16>([1, 65_536], &[0, 0], &[]));
    assert!(columns.contains("at most 65535"), "{columns}");
}

/// Imports on the simulator what is given by coordinates, and gives the records of its rows, and its columns.
fn import_coo<S: ForeignIndex>(shape: [usize; 2], rows: &[S], columns: &[S]) -> Result<(Vec<u32>, Vec<u32>)> {
    let device = Device::simulator();
    let stream = device.stream()?;
    let (rows, columns) = (device.upload(rows)?, device.upload(columns)?);
    let a = CsrMatrix::<f32>::from_coo(&stream, shape, rows.as_slice(), columns.as_slice())?;
    assert_eq!((a.rows(), a.cols(), a.nnz(), a.batch()), (shape[0], shape[1], columns.len(), 0));
    let mut copied = a.pattern().columns.download(&stream)?;
    copied.truncate(columns.len());
    Ok((a.pattern().row_table.download(&stream)?, copied))
}

#[test]
fn coordinates_are_the_pattern_of_their_rows() {
    // Rows of several blocks of threads, some empty; the last ones, too.
    let host = generate::uniform(600, 40, 0.97, 3).unwrap();
    let rows_of = |offsets: &[u32]| {
        let rows = offsets.windows(2).enumerate();
        rows.flat_map(|(row, ends)| vec![row as i64; (ends[1] - ends[0]) as usize]).collect::<Vec<_>>()
    };
    let mut offsets = host.row_offsets().to_vec();
    offsets.extend(vec![host.nnz() as u32; 300]);
    let (rows, columns) = (rows_of(&offsets), host.col_indices());
    let wide: Vec<i64> = columns.iter().map(|&n| n.into()).collect();
    let records = |offsets: &[u32]| row_table(offsets, RowOrder::default()).as_flattened().to_vec();
    let expected = (records(&offsets), columns.to_vec());
    assert_eq!(import_coo([900, 40], &rows, &wide).unwrap(), expected);
    let [narrow_rows, narrow] = [&rows, &wide].map(|n| n.iter().map(|&n| n as i32).collect::<Vec<_>>());
    assert_eq!(import_coo([900, 40], &narrow_rows, &narrow).unwrap(), expected);
    assert_eq!(import_coo::<i64>([2, 3], &[], &[]).unwrap(), (records(&[0; 3]), vec![]));
    assert_eq!(import_coo::<i32>([0, 0], &[], &[]).unwrap(), (records(&[0]), vec![]));
}

#[test]
fn wrong_coordinates_are_named() {
    let of = |rows: &[i64]| import_coo([3, 10], rows, &[0, 1, 2]).unwrap_err().to_string();
    assert_eq!(of(&[0, 1, 3]), "row index at position 2: expected less than 3, got 3");
    assert_eq!(of(&[-1, 1, 2]), "row indices: expected no negative number, got -1 at position 0");
    let unsorted = of(&[0, 2, 1]);
    assert!(unsorted.starts_with("row index at position 2: expected 2, the one before, or more, got 1"));
    assert!(unsorted.contains("coalesce"), "{unsorted}");
    // After a negative row, which is the first that is wrong.
    assert!(of(&[0, -5, 1]).contains("got -5 at position 1"));
    assert!(of(&[0, 1 << 40, 1]).contains("got 1099511627776"));
    assert!(of(&[0, 1]).contains("the row indices has 2 elements, but 3 are expected"));
    let twice = import_coo([3, 10], &[0_i32, 1, 1], &[4, 4, 4]).unwrap_err().to_string();
    assert!(twice.starts_with("row 1 at position 2: column 4 was given before"), "{twice}");
}

#[test]
fn products_of_imported_patterns_are_those_of_their_values() {
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let (offsets, columns) = (device.upload(&[0_i32, 1, 3]).unwrap(), device.upload(&[1_i32, 0, 2]).unwrap());
    let pattern =
        CsrMatrix::<f32, u16>::from_indices(&stream, [2, 3], offsets.as_slice(), columns.as_slice()).unwrap();
    let a = pattern.with_values(&[2.0, 3.0, 5.0]).unwrap();
    let (b, mut c) = (device.upload(&[1.0, 10.0, 100.0]).unwrap(), device.zeros(2).unwrap());
    Spmm::plan(&a, 1).unwrap().run(&stream, &a, b.as_slice(), c.as_slice_mut()).unwrap();
    assert_eq!(c.download(&stream).unwrap(), [20.0, 503.0]);
}

/// Rows of the pattern that lists on the simulator give.
fn import_lists<S: ForeignIndex, I: Index>(
    [rows, cols]: [usize; 2],
    lists: &[S],
    length: usize,
    diagonal: Option<i64>,
) -> Result<Vec<Vec<u32>>> {
    let device = Device::simulator();
    let stream = device.stream()?;
    let on_device = device.upload(lists)?;
    let shape = [rows, cols];
    let a = CsrMatrix::<f32, I>::from_lists(&stream, shape, on_device.as_slice(), length, diagonal)?;
    assert_eq!((a.rows(), a.cols(), a.batch()), (rows, cols, 0));
    let columns: Vec<u32> =
        a.pattern().columns.download(&stream)?.into_iter().map(Index::to_column).collect();
    assert!(columns[a.nnz()..].iter().all(|&padding| padding == 0));
    let mut found = vec![vec![]; rows];
    for record in a.pattern().row_table.download(&stream)?.chunks_exact(4) {
        found[record[0] as usize] = columns[record[1] as usize..record[2] as usize].to_vec();
    }
    Ok(found)
}

#[test]
fn lists_are_sorted_and_named_once() {
    let lists = [5_i64, 2, 2, -1, 0, 0, 0, 0, -1, -1, -1, -1, 6, 5, 4, 3];
    let expected = [vec![2, 5], vec![0], vec![], vec![3, 4, 5, 6]];
    assert_eq!(import_lists::<i64, u32>([4, 7], &lists, 4, None).unwrap(), expected);
    assert_eq!(import_lists::<i64, u16>([4, 7], &lists, 4, None).unwrap(), expected);
    let narrow = lists.map(|column| column as u32);
    assert_eq!(import_lists::<u32, u32>([4, 7], &narrow, 4, None).unwrap(), expected);
    let causal: [Vec<u32>; 4] = [vec![], vec![0], vec![], vec![3]];
    assert_eq!(import_lists::<i64, u32>([4, 7], &lists, 4, Some(0)).unwrap(), causal);
    let shifted = [vec![2], vec![0], vec![], vec![3, 4, 5]];
    assert_eq!(import_lists::<i64, u32>([4, 7], &lists, 4, Some(2)).unwrap(), shifted);
    let before = import_lists::<i64, u32>([4, 7], &lists, 4, Some(-3)).unwrap();
    assert!(before.iter().all(Vec::is_empty));
    assert!(import_lists::<i32, u32>([0, 7], &[], 4, None).unwrap().is_empty());
    let empty: [Vec<u32>; 2] = Default::default();
    assert_eq!(import_lists::<i32, u32>([2, 0], &[-1, -1], 1, None).unwrap(), empty);
    assert_eq!(import_lists::<i32, u32>([2, 9], &[], 0, None).unwrap(), empty);
}

#[test]
fn lists_longer_than_a_block_are_sorted() {
    // 700 of 5,000 columns in three rows, some of them more than once.
    let column = |at: u32| at.wrapping_mul(2_654_435_761) % 5000;
    let lists: Vec<u32> = (0..2100).map(|at| if at % 13 == 0 { u32::MAX } else { column(at) }).collect();
    let rows = lists.chunks(700).map(|list| {
        let mut list: Vec<u32> = list.iter().copied().filter(|&column| column != u32::MAX).collect();
        list.sort_unstable();
        list.dedup();
        list
    });
    let expected: Vec<_> = rows.collect();
    assert_eq!(import_lists::<u32, u32>([3, 5000], &lists, 700, None).unwrap(), expected);
}

#[test]
fn wrong_lists_are_named() {
    let of = |lists: &[i64]| import_lists::<i64, u32>([2, 10], lists, 3, None).unwrap_err().to_string();
    assert_eq!(
        of(&[0, 1, 2, 3, 10, -5]),
        "column index of row 1 at position 4: expected less than 10, got 10"
    );
    assert!(of(&[0, 1, 2, 3, -5, 99]).contains("got -5 at position 4"));
    assert!(of(&[0, 1, 2, 3, (1 << 32) + 1, 1]).contains("got 4294967297"));
    assert!(of(&[0, 1, 2, 3, 4]).contains("the lists has 5 elements, but 6 are expected"));
    let long = import_lists::<i32, u32>([0, 10], &[], 4097, None).unwrap_err().to_string();
    assert!(long.contains("the elements of a list") && long.contains("4096"), "{long}");
}

fn import_bags<S: ForeignIndex, I: crate::nhot::BagIndex>(
    table_rows: usize,
    offsets: &[S],
    indices: &[S],
) -> Result<(Vec<u32>, Vec<I>)> {
    let device = Device::simulator();
    let stream = device.stream()?;
    let (offsets, indices) = (device.upload(offsets)?, device.upload(indices)?);
    let bags = Bags::<I>::from_indices(&stream, table_rows, offsets.as_slice(), indices.as_slice())?;
    assert_eq!(bags.pattern().longest, 3);
    Ok((bags.pattern().offsets.download(&stream)?, bags.pattern().indices.download(&stream)?))
}

#[test]
fn bags_of_all_types_arrive() {
    let expected = vec![0, 0, 3, 4];
    assert_eq!(
        import_bags::<i32, u32>(10, &[0, 0, 3, 4], &[9, 1, 9, 0]).unwrap(),
        (expected.clone(), vec![9, 1, 9, 0])
    );
    assert_eq!(
        import_bags::<u64, u32>(10, &[0, 0, 3, 4], &[9, 1, 9, 0]).unwrap(),
        (expected.clone(), vec![9, 1, 9, 0])
    );
    assert_eq!(
        import_bags::<u32, u64>(10, &[0, 0, 3, 4], &[9, 1, 9, 0]).unwrap(),
        (expected.clone(), vec![9, 1, 9, 0])
    );
    let far = 1 << 40;
    assert_eq!(
        import_bags::<i64, u64>(far + 1, &[0, 0, 3, 4], &[far as i64, 1, 9, 0]).unwrap(),
        (expected, vec![far as u64, 1, 9, 0])
    );
}

#[test]
fn wrong_bags_are_named() {
    let of = |offsets: &[i64], indices: &[i64]| {
        import_bags::<i64, u32>(10, offsets, indices).unwrap_err().to_string()
    };
    let wrong = of(&[0, 4], &[1, 10, -1, 2]);
    assert!(
        wrong.contains("below 10, the rows of the table") && wrong.contains("10 (number 1 of 4)"),
        "{wrong}"
    );
    assert!(of(&[0, 2], &[1, -1]).contains("-1 (number 1 of 2)"));
    // Of more than 32 bits, with a good lower half.
    assert!(of(&[0, 1], &[(1 << 32) + 5]).contains("4294967301"));
    assert!(of(&[0, -2, 2], &[1, 1]).contains("-2 (number 1)"));
    assert!(of(&[0, 2, 1, 2], &[1, 1]).contains("in ascending order"));
    assert!(of(&[0, 1], &[1, 1]).contains("from 0 to 2, the number of indices"));
    assert!(of(&[], &[]).contains("one more than bags"));
    let many = import_bags::<i64, u32>(1 << 32, &[0], &[]).unwrap_err().to_string();
    assert!(many.contains("rows of the table"), "{many}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// The device finds what the host finds, of arrays with at most one changed element.
    #[test]
    fn verdicts_are_the_hosts(seed in 0..1000_u64, place in any::<prop::sample::Index>(), column in -2..30_i64) {
        let host = generate::uniform(9, 24, 0.6, seed).unwrap();
        let wide = |numbers: &[u32]| numbers.iter().map(|&n| n.into()).collect::<Vec<i64>>();
        let (offsets, mut columns) = (wide(host.row_offsets()), wide(host.col_indices()));
        let place = place.index(columns.len());
        columns[place] = column;
        let ours = import::<i64, u32>([9, 24], &offsets, &columns).map_err(|error| error.to_string());
        let values = vec![0.0_f32; columns.len()];
        let hosts = lacuna_matrix::Csr::from_signed(9, 24, &offsets, &columns, values);
        prop_assert_eq!(ours.is_ok(), hosts.is_ok(), "{:?} {:?}", ours, hosts);
    }
}
