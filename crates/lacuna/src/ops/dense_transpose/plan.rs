//! Plans: what is worked out once for a shape.
use std::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Scalar};
use lacuna_kernels::dense_transpose::DenseTransposeArgs;

use super::{Choice, OPERATION, Options, Problem};
use crate::op::{
    Layout, MAX_GRID_YZ, MAX_WIDTH, Selection, launch, spans, strides, tells_choice, tunes_selection,
};
use crate::tune::{Tunable, drawn};
use crate::{Buffer, Device, Error, Result, Slice, SliceMut, Stream, Value};

/// The transposes of dense matrices of one shape, with values of `T`: a batch of matrices, rows × columns, to columns × rows,
/// both row-major with any strides.
///
/// It takes feature maps from NCHW to NHWC (images are the batch, channels the rows, pixels the columns) and back, and heads from
/// d × tokens to tokens × d. Values are copied bit for bit, NaN with its payload and −0 too. The result has memory of its own: it
/// is never in place.
///
/// ```
/// use lacuna::{DenseTranspose, Device};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let stream = device.stream()?;
/// let matrix = device.upload(&[1.0_f32, 2.0, 3.0, /* row 1: */ 4.0, 5.0, 6.0])?;
/// let mut out = device.zeros::<f32>(6)?;
/// DenseTranspose::plan(&device, 2, 3)?.run(&stream, matrix.as_slice(), out.as_slice_mut())?;
/// assert_eq!(out.download(&stream)?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DenseTranspose<T: Value = f32> {
    device: Device,
    rows: usize,
    columns: usize,
    options: Options,
    input: Layout,
    out: Layout,
    selection: Selection<Problem>,
    values: PhantomData<T>,
}

impl<T: Value> DenseTranspose<T> {
    /// A plan for one matrix of `rows` rows and `columns` columns without gaps, to a result without gaps.
    ///
    /// # Errors
    /// As [`plan_with`](Self::plan_with).
    pub fn plan(device: &Device, rows: usize, columns: usize) -> Result<Self> {
        Self::plan_with(device, rows, columns, Options::default())
    }

    /// As [`plan`](Self::plan), with options.
    ///
    /// # Errors
    /// [`Error::TooLarge`] from 2³⁰ rows or columns on, for a row's stride of 4 GiB, and where no buffer can hold the batch;
    /// [`Error::Parameter`] for a stride below a row's elements, and for batch strides that let results overlap;
    /// [`Error::Illegal`] for an algorithm that cannot do this problem.
    pub fn plan_with(device: &Device, rows: usize, columns: usize, options: Options) -> Result<Self> {
        Error::expect_at_most("the number of rows", MAX_WIDTH, rows)?;
        Error::expect_at_most("the number of columns", MAX_WIDTH, columns)?;
        let Options { batch, input_stride, input_batch_stride, out_stride, out_batch_stride, .. } = options;
        let bytes = T::TYPE.bytes();
        let input = strides!(OPERATION, "the input", "columns", input_stride, batch, input_batch_stride);
        let input = Layout::new(rows, columns, bytes, input)?;
        let out = strides!(OPERATION, "the result", "rows", out_stride, batch, out_batch_stride);
        let out = Layout::new(columns, rows, bytes, out)?;
        out.expect_disjoint("the batch stride of the result")?;
        let problem = Problem { rows, columns, batch, value: T::TYPE, sm: device.info().sm };
        // One kernel does all alignments.
        let selection = Selection::new(options.algorithm, bytes, |_| problem)
            .expect_some(|| format!("values of {}", T::TYPE))?;
        let (device, values) = (device.clone(), PhantomData);
        Ok(Self { device, rows, columns, options, input, out, selection, values })
    }

    /// Elements that the input must have, up to the last of the last row. The gap after it may be there too.
    pub fn input_len(&self) -> usize {
        self.input.len()
    }

    /// Elements that the result must have, up to the last of the last row. The gap after it may be there too.
    pub fn output_len(&self) -> usize {
        self.out.len()
    }

    /// Gives the work to the stream, and returns at once. It can be recorded in a graph. Without elements there is nothing to do.
    ///
    /// `input` has [`input_len`](Self::input_len) elements, `out` [`output_len`](Self::output_len).
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::OtherDevice`] for operands that do not fit; [`Error::Launch`] or, on the simulator, its
    /// findings.
    pub fn run(&self, stream: &Stream, input: Slice<'_, T>, out: SliceMut<'_, T>) -> Result<()> {
        self.device.expect_same(OPERATION, "the stream", stream.device())?;
        self.input.check("the input", &self.device, input)?;
        self.out.check("the result", &self.device, out.as_slice())?;
        let addresses = [input.address(), out.address()];
        match T::TYPE.bytes() {
            4 => self.launches::<u32>(stream, addresses),
            _ => self.launches::<u16>(stream, addresses),
        }
    }

    /// Launches, of elements that are moved as `W`.
    fn launches<W: Scalar>(&self, stream: &Stream, [input, out]: [u64; 2]) -> Result<()> {
        if self.output_len() == 0 {
            return Ok(());
        }
        let choice = self.selection.at(input | out, "the operands are")?;
        let tile = &choice.entry.tile;
        // Two elements of 16 bits are a word where all rows begin with one, and end with one.
        let pairs = |layout: &Layout, width: usize, address: u64| {
            u32::from(
                size_of::<W>() == 2
                    && layout.allows(2)
                    && width.is_multiple_of(2)
                    && address.is_multiple_of(4),
            )
        };
        let (input_pairs, out_pairs) =
            (pairs(&self.input, self.columns, input), pairs(&self.out, self.rows, out));
        let row_tiles = (self.rows as u32).div_ceil(tile.rows);
        for matrices in spans(self.options.batch, MAX_GRID_YZ) {
            for columns in spans(self.columns, MAX_GRID_YZ * tile.columns as usize) {
                let from = matrices.start * self.input.batch_stride + columns.start;
                let to = matrices.start * self.out.batch_stride + columns.start * self.out.stride;
                let args = DenseTransposeArgs::<W> {
                    input: GlobalPtr::from_address(input).add(from),
                    out: GlobalMut::from_address(out).add(to),
                    input_batch: self.input.batch_stride as u64,
                    out_batch: self.out.batch_stride as u64,
                    input_stride_bytes: self.input.stride_bytes,
                    out_stride_bytes: self.out.stride_bytes,
                    rows: self.rows as u32,
                    columns: columns.len() as u32,
                    input_pairs,
                    out_pairs,
                };
                let column_tiles = (columns.len() as u32).div_ceil(tile.columns);
                launch(stream, choice.entry, [row_tiles, column_tiles, matrices.len() as u32], &args)?;
            }
        }
        Ok(())
    }
}

tells_choice!(DenseTranspose<T: Value>);

impl<T: Value> Tunable for DenseTranspose<T> {
    type Subject = ();
    /// The input and the result.
    type Scratch = (Buffer<T>, Buffer<T>);
    const NAME: &'static str = "dense_transpose";

    fn device(&self) -> &Device {
        &self.device
    }
    fn describe(&self, _nothing: &()) -> Option<String> {
        if !self.selection.is_auto() || self.output_len() == 0 {
            return None;
        }
        let Problem { rows, columns, batch, value, .. } = *self.selection.problem();
        Some(format!("{value} {rows}×{columns}, batch {batch}"))
    }
    tunes_selection!();
    fn with_candidate(&self, _nothing: &(), name: &str) -> Result<Self> {
        let algorithm = self.selection.algorithm_of(name);
        Self::plan_with(&self.device, self.rows, self.columns, self.options.algorithm(algorithm))
    }
    fn scratch(&self, _nothing: &()) -> Result<Self::Scratch> {
        Ok((drawn(&self.device, self.input_len())?, self.device.zeros(self.output_len())?))
    }
    fn run_on(&self, stream: &Stream, _nothing: &(), (input, out): &mut Self::Scratch) -> Result<()> {
        self.run(stream, input.as_slice(), out.as_slice_mut())
    }
}
