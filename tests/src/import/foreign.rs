//! Products on memory that no buffer made, on a stream that the library did not make.
use anyhow::{Result, ensure};
use lacuna::matrix::generate;
use lacuna::{CsrMatrix, Error, ForeignIndex, Slice, SliceMut, Spmm, Stream};

use super::lender::lender;
use crate::expect::{refused, same_bits};
use crate::spmm::{Problem, product};
use crate::{Case, Context};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "import/foreign/spmm",
            "index arrays, values, B and C of another library, on its stream",
            spmm,
        ),
        Case::new(
            "import/foreign/wrong",
            "index arrays that are no pattern, by the first wrong element",
            wrong,
        ),
        Case::new(
            "import/foreign/coordinates",
            "row and column indices in place of row offsets, and such that are no pattern",
            coordinates,
        ),
        Case::new("import/foreign/refusals", "addresses and streams that cannot be", refusals),
    ]
}

/// The bytes of numbers, as the device has them.
fn bytes<N: Copy, const B: usize>(
    numbers: impl IntoIterator<Item = N>,
    of: impl Fn(N) -> [u8; B],
) -> Vec<u8> {
    numbers.into_iter().flat_map(of).collect()
}

fn spmm(cx: &Context<'_>) -> Result<f64> {
    // Of rows that differ in length, some of them empty; large enough on a GPU for several blocks of the import.
    let (rows, cols, n) = if cx.device.is_simulator() { (45, 70, 24) } else { (700, 900, 128) };
    let problem = Problem::generated(generate::uniform(rows, cols, 0.9, cx.seed), n, cx.seed)?;
    let ours = CsrMatrix::new(cx.device, &problem.a)?;
    let plan = Spmm::plan(&ours, n)?;
    let (worst, expected) = product(cx, &plan, &ours, &problem.a, &problem.b, n)?;

    let mut theirs = lender(cx.device)?;
    let floats = |numbers: &[f32]| bytes(numbers.iter().copied(), f32::to_ne_bytes);
    let (offsets, columns) = (problem.a.row_offsets(), problem.a.col_indices());
    let offsets = theirs.lend(&bytes(offsets.iter().map(|&n| i64::from(n)), i64::to_ne_bytes))?;
    let columns = theirs.lend(&bytes(columns.iter().map(|&n| i64::from(n)), i64::to_ne_bytes))?;
    // What stands after the last value must not matter.
    let mut values = problem.a.values().to_vec();
    values.resize(ours.values_stride(), f32::NAN);
    let (values, b) = (theirs.lend(&floats(&values))?, theirs.lend(&floats(&problem.b))?);
    let c = theirs.lend(&floats(&vec![f32::NAN; rows * n]))?;
    // SAFETY: the lender keeps its stream and all memory until the end of this function, and waits before it reads C.
    unsafe {
        let stream = Stream::from_raw(cx.device, theirs.stream())?;
        let offsets = Slice::<i64>::from_raw(cx.device, offsets, rows + 1)?;
        let columns = Slice::<i64>::from_raw(cx.device, columns, problem.a.nnz())?;
        let pattern = CsrMatrix::<f32>::from_indices(&stream, [rows, cols], offsets, columns)?;
        ensure!(pattern.stats() == ours.stats(), "the pattern has other statistics");
        let a = pattern.with_foreign_values::<f32>(1, values)?;
        let b = Slice::from_raw(cx.device, b, problem.b.len())?;
        let c = SliceMut::from_raw(cx.device, c, rows * n)?;
        Spmm::plan(&a, n)?.run(&stream, &a, b, c)?;
    }
    let c: Vec<f32> = theirs.read(4)?.as_chunks().0.iter().map(|&word| f32::from_ne_bytes(word)).collect();
    same_bits("buffers, then foreign memory", &expected, &c, n)?;
    Ok(worst)
}

/// The import of these arrays as a 3×10 matrix.
fn import<S: ForeignIndex>(cx: &Context<'_>, offsets: &[S], columns: &[S]) -> lacuna::Result<CsrMatrix> {
    let (offsets, columns) = (cx.device.upload(offsets)?, cx.device.upload(columns)?);
    CsrMatrix::from_indices(cx.stream, [3, 10], offsets.as_slice(), columns.as_slice())
}

fn wrong(cx: &Context<'_>) -> Result<f64> {
    let is_format = |error: &Error| matches!(error, Error::Format(_)) && error.is_usage();
    let of = |columns: [i64; 5]| import(cx, &[0, 2, 2, 5], &columns);
    ensure!(of([1, 9, 0, 1, 2])?.nnz() == 5, "a pattern was not taken as it is");
    refused("past the last column", of([1, 10, 0, 1, 99]), is_format, &["row 0 at position 1", "got 10"])?;
    refused("a negative column", of([1, 2, -7, 1, 2]), is_format, &["got -7 at position 2"])?;
    refused("columns that fall", of([1, 2, 5, 4, 99]), is_format, &["row 2 at position 3", "above 5"])?;
    refused("a column twice", of([3, 3, 5, 6, 7]), is_format, &["row 0 at position 1: column 3"])?;
    refused("64 bits", of([1, 2, 3, 4, 1 << 40]), is_format, &["got 1099511627776"])?;
    let offsets = import(cx, &[0_i32, 3, 2, 5], &[1, 2, 3, 4, 5]);
    refused("offsets that fall", offsets, is_format, &["row 1 to end at 3 or later"])?;
    Ok(0.0)
}

fn coordinates(cx: &Context<'_>) -> Result<f64> {
    let (rows, cols, n) = if cx.device.is_simulator() { (300, 40, 8) } else { (9000, 900, 64) };
    let problem = Problem::generated(generate::uniform(rows, cols, 0.97, cx.seed), n, cx.seed)?;
    let ours = CsrMatrix::new(cx.device, &problem.a)?;
    let (worst, expected) = product(cx, &Spmm::plan(&ours, n)?, &ours, &problem.a, &problem.b, n)?;
    let ends = problem.a.row_offsets().windows(2).enumerate();
    let row_indices: Vec<i64> =
        ends.flat_map(|(row, ends)| vec![row as i64; (ends[1] - ends[0]) as usize]).collect();
    let columns: Vec<i64> = problem.a.col_indices().iter().map(|&column| column.into()).collect();
    let import = |rows_of: &[i64]| {
        let (rows_of, columns) = (cx.device.upload(rows_of)?, cx.device.upload(&columns)?);
        CsrMatrix::<f32>::from_coo(cx.stream, [rows, cols], rows_of.as_slice(), columns.as_slice())
    };
    let a = import(&row_indices)?.with_values(problem.a.values())?;
    ensure!(a.stats() == ours.stats(), "the pattern has other statistics");
    let (b, mut c) = (cx.device.upload(&problem.b)?, cx.device.zeros::<f32>(rows * n)?);
    Spmm::plan(&a, n)?.run(cx.stream, &a, b.as_slice(), c.as_slice_mut())?;
    same_bits("row offsets, then coordinates", &expected, &c.download(cx.stream)?, n)?;

    let is_format = |error: &Error| matches!(error, Error::Format(_)) && error.is_usage();
    let middle = row_indices.len() / 2;
    let changed = |row: i64| {
        let mut changed = row_indices.clone();
        changed[middle] = row;
        import(&changed)
    };
    let at = format!("position {middle}");
    refused("a row past the last", changed(rows as i64), is_format, &[&at, "row index"])?;
    refused("a negative row", changed(-3), is_format, &[&at, "got -3"])?;
    refused("rows that fall", changed(0), is_format, &[&at, "coalesce"])?;
    Ok(worst)
}

fn refusals(cx: &Context<'_>) -> Result<f64> {
    let is_parameter = |error: &Error| matches!(error, Error::Parameter { .. }) && error.is_usage();
    let theirs = lender(cx.device)?.lend(&[0; 256])?;
    let a = import(cx, &[0, 1, 1, 1], &[5])?;
    // SAFETY: nothing is run on them.
    unsafe {
        let odd = Slice::<f32>::from_raw(cx.device, theirs + 2, 4);
        refused("an odd address", odd, is_parameter, &["a multiple of 4"])?;
        refused("no address", Slice::<f32>::from_raw(cx.device, 0, 4), is_parameter, &["0x0"])?;
        refused(
            "no room",
            Slice::<f32>::from_raw(cx.device, theirs, usize::MAX / 4),
            is_parameter,
            &["room"],
        )?;
        ensure!(Slice::<f32>::from_raw(cx.device, 0, 0)?.is_empty(), "nothing has no address");
        let values = a.with_foreign_values::<f32>(1, theirs + 4);
        refused("values that are not aligned", values, is_parameter, &["16 bytes"])?;
    }
    if !cx.device.is_simulator() {
        return Ok(0.0);
    }
    // Another device's memory is nobody's here, and its streams have no handles.
    // SAFETY: the simulator refuses what is not its own.
    unsafe {
        let stream = Stream::from_raw(cx.device, 64 as *mut _);
        refused("a stream of a GPU", stream, is_parameter, &["simulator"])?;
        let b = Slice::from_raw(cx.device, 0x7fff_0000_0000, 20)?;
        let mut c = cx.device.zeros::<f32>(6)?;
        let run = Spmm::plan(&a.with_values(&[1.0])?, 2)?;
        let run = run.run(cx.stream, &a.with_values(&[1.0])?, b, c.as_slice_mut());
        refused("memory of nobody", run, |error| matches!(error, Error::Simulator(_)), &[])?;
    }
    Ok(0.0)
}
