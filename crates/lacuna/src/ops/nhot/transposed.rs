//! The transposed bags: for each row of the table the bags that name it. Worked out on the device.
use lacuna_kernels::entries;
use lacuna_kernels::import::{Rows, RowsArgs};
use lacuna_kernels::transpose::bags::{
    BagsOfPlaces, BagsOfPlacesArgs, CountRows, NamedRows, NamedRowsArgs, SortedRows,
};
use lacuna_kernels::transpose::{ScanArgs, ScanColumns};

use super::bags::BagPattern;
use super::sort::Sort;
use super::{BagIndex, Mode, Options};
use crate::op::launch_kernel;
use crate::ops::import::{MAX_ROWS, grid};
use crate::ops::transpose::launch;
use crate::{Buffer, Error, Result, Slice, Stream};

/// For each row of the table the places where bags name it, in ascending order.
#[derive(Debug)]
pub(super) struct Transposed<I: BagIndex> {
    /// The rows that are named, ascending.
    pub(super) rows: Buffer<I>,
    /// Where each of these starts, and the end of the last.
    pub(super) offsets_of_named: Buffer<u32>,
    /// The same for all rows of the table; none where these are too many.
    offsets: Option<Buffer<u32>>,
    /// The bag of each nonzero; of those past the last row's end, any.
    pub(super) bags: Buffer<u32>,
    /// Its number among the indices.
    pub(super) places: Buffer<u32>,
    /// Nonzeros, without those of the padding index.
    pub(super) nnz: usize,
    /// Nonzeros of the row that is named most.
    pub(super) longest: usize,
}

impl<I: BagIndex> Transposed<I> {
    /// Waits until the device has done it.
    pub(super) fn new(pattern: &BagPattern<I>, padding: Option<usize>) -> Result<Self> {
        let (device, indices) = (pattern.indices.device(), pattern.indices.as_slice());
        let (nnz, table_rows) = (indices.len(), pattern.table_rows);
        let stream = &device.stream()?;
        if nnz == 0 {
            let offsets = if table_rows <= MAX_ROWS { Some(device.zeros(table_rows + 1)?) } else { None };
            return Ok(Self {
                rows: device.uninitialized(0)?,
                offsets_of_named: device.zeros(1)?,
                offsets,
                bags: device.uninitialized(0)?,
                places: device.uninitialized(0)?,
                nnz: 0,
                longest: 0,
            });
        }
        let mut sort = Sort::new(device, nnz, table_rows)?;
        let chunk = sort.chunk();
        let (sorted, places) = sort.run(stream, indices, padding)?;
        let offsets = row_offsets(stream, sorted, table_rows)?;

        // The rows that are named: counted, and then written.
        let chunks = (nnz as u32).div_ceil(chunk);
        let mut starting = device.uninitialized::<u32>(chunks as usize + 1)?;
        let of_chunks = SortedRows::<I> {
            rows: sorted.pointer(),
            offsets: starting.as_slice_mut().pointer(),
            nnz: nnz as u32,
            chunk,
            end: I::from_row(table_rows),
        };
        launch::<CountRows<I>>(stream, chunks, 1, &of_chunks)?;
        // The scan along columns looks at no counters.
        let scan =
            ScanArgs { counters: of_chunks.offsets, offsets: of_chunks.offsets, chunks: 1, cols: chunks };
        launch::<ScanColumns>(stream, chunks, 1, &scan)?;
        let named = starting.slice(chunks as usize..)?.download(stream)?[0] as usize;
        let mut rows = device.uninitialized::<I>(named)?;
        let mut offsets_of_named = device.uninitialized::<u32>(named + 1)?;
        let of_rows = NamedRowsArgs {
            sorted: of_chunks,
            named: rows.as_slice_mut().pointer(),
            starts: offsets_of_named.as_slice_mut().pointer(),
        };
        launch::<NamedRows<I>>(stream, chunks, 1, &of_rows)?;

        let mut bags = device.uninitialized::<u32>(nnz)?;
        let mut longest = device.zeros::<u32>(1)?;
        let of_places = BagsOfPlacesArgs {
            places: places.pointer(),
            bag_offsets: pattern.offsets.as_slice().pointer(),
            out: bags.as_slice_mut().pointer(),
            starts: offsets_of_named.as_slice().pointer(),
            longest: longest.as_slice_mut().pointer(),
            nnz: nnz as u32,
            bags: pattern.bags() as u32,
            rows: named as u32,
        };
        launch::<BagsOfPlaces>(stream, nnz as u32, 1, &of_places)?;
        // The downloads wait for the stream, so that others may use the result, and the sort's memory may go.
        let longest = longest.download(stream)?[0] as usize;
        let nnz = offsets_of_named.slice(named..)?.download(stream)?[0] as usize;
        let places = sort.into_places();
        Ok(Self { rows, offsets_of_named, offsets, bags, places, nnz, longest })
    }

    /// Where the nonzeros of each row of the table start, and the end of the last.
    pub(super) fn offsets(&self, table_rows: usize) -> Result<&Buffer<u32>> {
        let too_many = || Error::TooLarge {
            what: "the number of rows of the table, for its whole gradient",
            limit: MAX_ROWS as u64,
            got: table_rows as u64,
        };
        self.offsets.as_ref().ok_or_else(too_many)
    }
}

/// Where the nonzeros of each row of a table start among sorted ones, and the end of the last; none of too many rows.
fn row_offsets<I: BagIndex>(
    stream: &Stream,
    sorted: Slice<'_, I>,
    table_rows: usize,
) -> Result<Option<Buffer<u32>>> {
    if table_rows > MAX_ROWS {
        return Ok(None);
    }
    let device = stream.device();
    // One row more, after the last: that of the padding index.
    let mut offsets = device.uninitialized::<u32>(table_rows + 2)?;
    let mut verdict = device.zeros::<u32>(1)?;
    let args = RowsArgs::<I> {
        source: sorted.pointer(),
        row_offsets: offsets.as_slice_mut().pointer(),
        verdict: verdict.as_slice_mut().pointer(),
        rows: table_rows as u32 + 1,
        nnz: sorted.len() as u32,
    };
    launch_kernel::<Rows<I>>(stream, entries::import(), grid(args.nnz.max(args.rows + 1)), &args)?;
    Ok(Some(offsets))
}

/// What each bag's gradient is multiplied by: one over its number of nonzeros in a mean.
#[derive(Debug)]
pub(super) struct Scales(Option<Buffer<f32>>);

impl Scales {
    pub(super) fn new<I: BagIndex>(pattern: &BagPattern<I>, options: &Options) -> Result<Self> {
        if options.mode == Mode::Sum {
            return Ok(Self(None));
        }
        let device = pattern.indices.device();
        let stream = device.stream()?;
        let offsets = pattern.offsets.download(&stream)?;
        let indices = match options.padding_index {
            Some(_) => pattern.indices.download(&stream)?,
            None => Vec::new(),
        };
        let scale = |ends: &[u32]| {
            let [start, end] = [ends[0] as usize, ends[1] as usize];
            let bag = indices.get(start..end).unwrap_or(&[]);
            let padding = bag.iter().filter(|index| Some(index.to_row()) == options.padding_index).count();
            // As the kernel has it. Of a bag that names none, nothing is read.
            1.0 / (end - start - padding) as f32
        };
        let scales: Vec<f32> = offsets.windows(2).map(scale).collect();
        Ok(Self(Some(device.upload(&scales)?)))
    }

    /// The address of the first bag's; 0 where all are 1.
    pub(super) fn address(&self) -> u64 {
        self.0.as_ref().map_or(0, |scales| scales.as_slice().address())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bags, Device};

    fn transposed(
        table_rows: usize,
        offsets: &[usize],
        indices: &[u32],
        padding: Option<usize>,
    ) -> Transposed<u32> {
        let bags = Bags::new(&Device::simulator(), table_rows, offsets, indices).unwrap();
        Transposed::new(bags.pattern(), padding).unwrap()
    }

    fn numbers(buffer: &Buffer<u32>) -> Vec<u32> {
        buffer.download(&buffer.device().stream().unwrap()).unwrap()
    }

    #[test]
    fn rows_have_their_places_in_order() {
        // Bags: 4 1 | | 1 1 2 | 4. Row 2 is the padding.
        let made = transposed(6, &[0, 2, 2, 5, 6], &[4, 1, 1, 1, 2, 4], Some(2));
        assert_eq!(numbers(&made.rows), [1, 4]);
        assert_eq!(numbers(made.offsets(6).unwrap())[..7], [0, 0, 3, 3, 3, 5, 5]);
        assert_eq!(numbers(&made.offsets_of_named), [0, 3, 5]);
        assert_eq!(numbers(&made.places)[..5], [1, 2, 3, 0, 5]);
        assert_eq!(numbers(&made.bags)[..5], [0, 2, 2, 0, 3]);
        assert_eq!((made.nnz, made.longest), (5, 3));
    }

    #[test]
    fn nothing_is_sorted_too() {
        let made = transposed(0, &[0], &[], None);
        assert_eq!((numbers(made.offsets(0).unwrap()), numbers(&made.offsets_of_named)), (vec![0], vec![0]));
        let made = transposed(2, &[0, 0, 1], &[1], Some(1));
        assert_eq!(numbers(made.offsets(2).unwrap())[..3], [0, 0, 0]);
        assert_eq!((made.rows.len(), made.nnz, made.longest), (0, 0, 0));
        assert_eq!(numbers(&made.offsets_of_named), [0]);
    }

    /// More nonzeros than a chunk, rows that reach over chunks, and rows past the last that is named.
    #[test]
    fn rows_go_on_from_chunk_to_chunk() {
        let indices: Vec<u32> =
            (0..3000_u32).map(|at| (at.wrapping_mul(2_654_435_761) % 40).pow(2) + 3).collect();
        let made = transposed(5000, &[0, 1, 1, 1700, 3000], &indices, Some(7));
        let mut expected: Vec<u32> = (0..3000).filter(|&place| indices[place as usize] != 7).collect();
        expected.sort_by_key(|&place| indices[place as usize]);
        assert_eq!(made.nnz, expected.len());
        assert_eq!(numbers(&made.places)[..made.nnz], expected);
        let bag = |&place: &u32| [0, 1, 1, 1700].iter().filter(|&&start| start <= place).count() as u32 - 1;
        assert_eq!(numbers(&made.bags)[..made.nnz], expected.iter().map(bag).collect::<Vec<_>>());
        let starts = |row: u32| expected.partition_point(|&place| indices[place as usize] < row) as u32;
        let offsets = numbers(made.offsets(5000).unwrap());
        assert!((0..=5000).all(|row| offsets[row as usize] == starts(row)));
        let named: Vec<u32> = (0..5000).filter(|&row| starts(row + 1) > starts(row)).collect();
        assert_eq!(numbers(&made.rows), named);
        let longest = named.iter().map(|&row| starts(row + 1) - starts(row)).max().unwrap();
        assert_eq!(made.longest, longest as usize);
        let of_named: Vec<u32> =
            named.iter().map(|&row| starts(row)).chain([expected.len() as u32]).collect();
        assert_eq!(numbers(&made.offsets_of_named), of_named);
    }

    #[test]
    fn tables_of_more_rows_than_offsets_count_have_gradients_of_named_rows() {
        let rows = 1 << 40;
        let bags = Bags::<u64>::new(&Device::simulator(), rows, &[0, 3], &[1 << 39, 5, 1 << 39]).unwrap();
        let made = Transposed::new(bags.pattern(), None).unwrap();
        assert!(matches!(made.offsets(rows), Err(Error::TooLarge { got, .. }) if got == rows as u64));
        let stream = made.rows.device().stream().unwrap();
        assert_eq!(made.rows.download(&stream).unwrap(), [5, 1 << 39]);
        assert_eq!(numbers(&made.places), [1, 0, 2]);
    }
}
