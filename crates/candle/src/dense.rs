//! How dense operands lie.
use candle_core::{Layout, Result, bail};

/// A matrix, or a batch of them, with rows that have no gaps within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dense {
    pub(crate) batch: Option<usize>,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// Elements from one row to the next.
    pub(crate) stride: usize,
    /// Elements from one matrix to the next; 0 where all are one.
    pub(crate) batch_stride: usize,
}

impl Dense {
    /// What this layout is, of (rows, columns) or (batch, rows, columns).
    pub(crate) fn of(operation: &str, what: &str, layout: &Layout) -> Result<Self> {
        let (dims, strides) = (layout.dims(), layout.stride());
        let (batch, rows, cols) = match *dims {
            [rows, cols] => (None, rows, cols),
            [batch, rows, cols] => (Some(batch), rows, cols),
            _ => bail!(
                "{operation}: {what} has shape {dims:?}, but two dimensions are expected, or three with a batch"
            ),
        };
        // What the stride of a single element or row is does not matter.
        let [row_stride, element_stride] = strides.last_chunk().copied().unwrap_or([cols, 1]);
        let stride = if rows > 1 { row_stride } else { cols };
        if (cols > 1 && element_stride != 1) || stride < cols {
            bail!(
                "{operation}: {what} of shape {dims:?} has strides {strides:?}, but rows without gaps, one after another, are \
                 expected; call contiguous()"
            )
        }
        let batch_stride = match batch {
            Some(count) if count > 1 => strides[0],
            _ => rows * stride,
        };
        Ok(Self { batch, rows, cols, stride, batch_stride })
    }

    /// How many matrices there are.
    pub(crate) fn count(&self) -> usize {
        self.batch.unwrap_or(1)
    }

    /// An error unless a matrix is so large.
    pub(crate) fn expect(&self, operation: &str, what: &str, [rows, cols]: [usize; 2]) -> Result<()> {
        if [self.rows, self.cols] != [rows, cols] {
            bail!("{operation}: {what} is {}×{}, but {rows}×{cols} is expected", self.rows, self.cols)
        }
        Ok(())
    }
}

/// The elements from the first of a layout to its last.
pub(crate) fn extent(layout: &Layout) -> usize {
    if layout.shape().elem_count() == 0 {
        return 0;
    }
    let last = |(&dim, &stride): (&usize, &usize)| (dim - 1) * stride;
    1 + layout.dims().iter().zip(layout.stride()).map(last).sum::<usize>()
}
