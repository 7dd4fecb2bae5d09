//! The transposed pattern: counted, scanned and scattered on the device.
use lacuna_kernels::transpose::{
    Chunks, Count, Offsets, OffsetsArgs, ScanArgs, ScanChunks, ScanColumns, Scatter, ScatterArgs,
};

use super::launch;
use crate::pattern::padded;
use crate::{Buffer, Index, Result, Slice, Stream};

/// What is worked out once for a pattern.
pub(super) struct Built<I: Index> {
    /// Where each row of Aᵀ starts, and the end of the last, on the host.
    pub(super) row_offsets: Vec<u32>,
    /// The columns of Aᵀ, then zeros to spare.
    pub(super) columns: Buffer<I>,
    /// For each element of Aᵀ its index in A.
    pub(super) permutation: Buffer<u32>,
}

/// The counters take no more room than this, or than the columns and the permutation where those are more.
const COUNTER_BYTES: usize = 64 << 20;

/// Transposes a pattern, and waits until the device has done it.
pub(super) fn build<I: Index>(
    stream: &Stream,
    rows: usize,
    cols: usize,
    nnz: usize,
    row_table: Slice<'_, u32>,
    columns: Slice<'_, I>,
) -> Result<Built<I>> {
    let device = stream.device();
    let mut transposed = device.zeros::<I>(padded(nnz))?;
    let mut permutation = device.uninitialized::<u32>(nnz)?;
    if nnz == 0 {
        return Ok(Built { row_offsets: vec![0; cols + 1], columns: transposed, permutation });
    }
    let mut row_offsets = device.uninitialized::<u32>(rows + 1)?;
    let mut offsets = device.uninitialized::<u32>(cols + 1)?;
    let chunk_rows = chunk_rows(rows, cols, built_bytes::<I>(nnz));
    let chunks = rows.div_ceil(chunk_rows);
    let mut counters = device.zeros::<u32>(chunks * cols)?;

    // Sizes fit 32 bits: the matrix was checked when it was made.
    let (rows, cols, chunks) = (rows as u32, cols as u32, chunks as u32);
    let offsets_args = OffsetsArgs {
        row_table: row_table.pointer(),
        row_offsets: row_offsets.as_slice_mut().pointer(),
        rows,
    };
    launch::<Offsets>(stream, rows, 1, &offsets_args)?;
    let count = Chunks {
        row_offsets: row_offsets.as_slice().pointer(),
        columns: columns.pointer::<I::Device>(),
        counters: counters.as_slice_mut().pointer(),
        rows,
        cols,
        chunk_rows: chunk_rows as u32,
    };
    launch::<Count<I::Device>>(stream, chunks, 1, &count)?;
    let scan = ScanArgs { counters: count.counters, offsets: offsets.as_slice_mut().pointer(), chunks, cols };
    launch::<ScanChunks>(stream, cols, 1, &scan)?;
    launch::<ScanColumns>(stream, cols, 1, &scan)?;
    let scatter = ScatterArgs {
        chunks: count,
        offsets: offsets.as_slice().pointer(),
        rows: transposed.as_slice_mut().pointer::<I::Device>(),
        permutation: permutation.as_slice_mut().pointer(),
    };
    launch::<Scatter<I::Device>>(stream, chunks, 1, &scatter)?;
    // The download waits for the stream, so that others may use the result at once.
    Ok(Built { row_offsets: offsets.download(stream)?, columns: transposed, permutation })
}

/// Bytes of the columns and the permutation.
fn built_bytes<I>(nnz: usize) -> usize {
    nnz.saturating_mul(size_of::<I>() + size_of::<u32>())
}

/// Rows of a chunk. Few chunks are long passes, many are a long scan: both wait for memory at each step, the scan for
/// eight steps together. Their sum is least with a few times the root of the number of rows.
fn chunk_rows(rows: usize, cols: usize, built_bytes: usize) -> usize {
    let room = COUNTER_BYTES.max(built_bytes) / size_of::<u32>();
    let wanted = 4 * rows.isqrt();
    let chunks = wanted.min(room / cols.max(1)).clamp(1, rows.max(1));
    rows.div_ceil(chunks).max(1)
}

#[cfg(test)]
mod tests {
    use lacuna_matrix::{Pattern, generate};

    use super::*;
    use crate::Device;
    use crate::pattern::{RowOrder, row_table};

    /// Transposes on the simulator, with indices of type `I`, and compares with the host.
    fn check<I: Index>(pattern: &Pattern) {
        let device = Device::simulator();
        let stream = device.stream().unwrap();
        let (rows, cols, nnz) = (pattern.rows(), pattern.cols(), pattern.nnz());
        let table =
            device.upload(row_table(pattern.row_offsets(), RowOrder::default()).as_flattened()).unwrap();
        let columns: Vec<I> = pattern.col_indices().iter().map(|&column| I::from_column(column)).collect();
        let columns = device.upload(&columns).unwrap();
        let built = build(&stream, rows, cols, nnz, table.as_slice(), columns.as_slice()).unwrap();

        let expected = pattern.transpose();
        assert_eq!(built.row_offsets, expected.row_offsets());
        let mut got: Vec<u32> =
            built.columns.download(&stream).unwrap().into_iter().map(Index::to_column).collect();
        assert!(got.drain(nnz..).all(|padding| padding == 0));
        assert_eq!(got, expected.col_indices());
        let permutation = built.permutation.download(&stream).unwrap();
        let mut seen = vec![false; nnz];
        for (place, &source) in permutation.iter().enumerate() {
            let source = source as usize;
            assert!(!std::mem::replace(&mut seen[source], true), "index {source} is there twice");
            assert!(pattern.row_range(got[place] as usize).contains(&source));
            assert!(expected.row_range(pattern.col_indices()[source] as usize).contains(&place));
        }
    }

    #[test]
    fn both_widths_of_indices() {
        for pattern in [
            generate::uniform(70, 90, 0.8, 1).unwrap(),
            generate::power_law(200, 150, 4.0, 2.2, 2).unwrap(),
            // Rows of more than a warp's lanes, and numbers above 2^15.
            generate::uniform(3, 65_000, 0.999, 3).unwrap(),
            Pattern::new(2, 3, vec![0, 0, 0], vec![]).unwrap(),
        ] {
            check::<u32>(&pattern);
            check::<u16>(&pattern);
        }
    }

    #[test]
    fn counters_keep_to_their_room() {
        for (rows, cols, nnz) in
            [(8192, 2048, 1_677_722), (1 << 20, 1 << 20, 1 << 24), (1, 1 << 30, 5), (100, 1, 100)]
        {
            let built = built_bytes::<u32>(nnz);
            let chunk_rows = chunk_rows(rows, cols, built);
            let chunks = rows.div_ceil(chunk_rows);
            assert!((1..=rows).contains(&chunks) && (1..=rows).contains(&chunk_rows));
            let bytes = 4 * chunks * cols;
            assert!(chunks == 1 || bytes <= COUNTER_BYTES.max(built), "{bytes} bytes");
        }
        assert_eq!(8192usize.div_ceil(chunk_rows(8192, 2048, built_bytes::<u32>(1_677_722))), 357);
        // No rows and no columns: no kernel runs, and nothing divides by zero.
        assert_eq!(chunk_rows(0, 0, 0), 1);
    }
}
