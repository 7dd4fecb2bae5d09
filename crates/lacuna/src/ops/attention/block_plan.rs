//! Plans for masks that are given as blocks.
use std::marker::PhantomData;

use super::choose::{Choice, Problem};
use super::frame::{Frame, tells_operands};
use super::{MaskBlocks, OPERATION, Operands, Options, TilingCounts};
use crate::op::{MAX_GRID_YZ, Selection, tunes_selection};
use crate::ops::spmm::LONG_ROWS;
use crate::tune::Tunable;
use crate::{Buffer, Device, Error, Result, Slice, SliceMut, Stream, Value};

/// As [`SparseAttention`](crate::SparseAttention), for a mask that is given as [blocks](MaskBlocks), and not as a CSR pattern: on tensor
/// cores, by [`WgmmaTile`](super::Algorithm::WgmmaTile) or [`MmaTile`](super::Algorithm::MmaTile) alone. Operands, options and results are the same, bit by bit
/// where both take the same algorithm by tiles of as many queries.
///
/// It is for GPUs from compute capability 8.0 on, and the simulator. Values of `T` are `f16` or `bf16`, of rows of d elements, a multiple of 8 up to 256;
/// or `f32`, where the [precision](Options::precision) allows products in parts, of rows of a multiple of 4 up to 256.
/// Strides and addresses are multiples of 16 bytes; the scale is above 0, or there is a soft cap. Everything else is [`Error::NeedsPattern`].
///
/// ```
/// use half::f16;
/// use lacuna::{BlockAttention, Device, attention};
///
/// # fn main() -> lacuna::Result<()> {
/// // Two heads of 16; two sequences of 40 and 24 tokens, each token sees itself and the 7 before it in its own sequence.
/// let window = attention::Mask::sliding_window(64, 8)?;
/// let mask = attention::Mask::documents(&[40, 24])?.and(&window)?;
/// let device = Device::simulator();
/// let stream = device.stream()?;
/// let blocks = attention::MaskBlocks::new(&device, &mask)?;
///
/// let plan = BlockAttention::<f16>::plan_with(&blocks, 16, attention::Options::default().batch(2))?;
/// let values: Vec<f16> = (0..2 * 64 * 16).map(|i| f16::from_f32(i as f32 / 1024.0 % 1.0)).collect();
/// let (q, k, v) = (device.upload(&values)?, device.upload(&values)?, device.upload(&values)?);
/// let mut o = device.zeros::<f16>(plan.output_len())?;
/// plan.run(&stream, q.as_slice(), k.as_slice(), v.as_slice(), o.as_slice_mut())?;
/// // The first token of the second sequence sees itself alone.
/// let row = 40 * 16..41 * 16;
/// assert_eq!(o.download(&stream)?[row.clone()], values[row]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct BlockAttention<T: Value> {
    pub(super) blocks: MaskBlocks,
    pub(super) frame: Frame,
    selection: Selection<Problem>,
    values: PhantomData<T>,
}

impl<T: Value> BlockAttention<T> {
    /// A plan for one head with this mask (queries × keys), and rows of `dim` elements.
    ///
    /// # Errors
    /// As [`plan_with`](Self::plan_with).
    pub fn plan(mask: &MaskBlocks, dim: usize) -> Result<Self> {
        Self::plan_with(mask, dim, Options::default())
    }

    /// As [`plan`](Self::plan), with options.
    ///
    /// # Errors
    /// [`Error::Parameter`] and [`Error::TooLarge`] as [`SparseAttention::plan_with`](crate::SparseAttention::plan_with) has them;
    /// [`Error::NeedsPattern`] for what kernels by blocks do not take; [`Error::Illegal`] for another algorithm than
    /// [`WgmmaTile`](super::Algorithm::WgmmaTile) and [`MmaTile`](super::Algorithm::MmaTile).
    pub fn plan_with(mask: &MaskBlocks, dim: usize, options: Options) -> Result<Self> {
        let frame = Frame::new::<T>(mask.device(), [mask.queries(), mask.keys()], dim, options)?;
        let nnz = usize::try_from(mask.elements()).unwrap_or(usize::MAX);
        let problem = Problem { blocks: Some(*mask.counts()), ..frame.problem::<T>(nnz, None) };
        let selection = frame.selection(&problem);
        if selection.first().is_none() {
            if selection.is_auto() || selection.legal()[0].is_empty() {
                return Err(needs_pattern(&problem));
            }
            return Err(selection.illegal(format!("it does not take a mask given as blocks with d = {dim}")));
        }
        Ok(Self { blocks: mask.clone(), frame, selection, values: PhantomData })
    }

    /// The kernel that runs.
    pub fn choice(&self) -> &Choice {
        self.selection.best()
    }
    /// The kernels that can do it, in the order of the cost model.
    pub fn legal(&self) -> Vec<Choice> {
        let [aligned, ..] = self.selection.legal();
        aligned
    }
    /// The mask.
    pub fn mask(&self) -> &MaskBlocks {
        &self.blocks
    }

    /// Gives the work to the stream, and returns at once. Work on other streams that uses the operands meanwhile must be
    /// ordered with this: see [`Stream`].
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::OtherDevice`] for operands that do not fit; [`Error::NeedsPattern`] for addresses that are no
    /// multiples of 16 bytes; [`Error::Launch`] or, on the simulator, its findings.
    pub fn run_with(&self, stream: &Stream, operands: Operands<'_, T>) -> Result<()> {
        self.frame.check(stream, &operands)?;
        if self.output_len() == 0 {
            return Ok(());
        }
        let choice = self.selection.at(operands.addresses(), "Q, K, V or O is");
        let why = || "Q, K, V or O is not aligned to 16 bytes".into();
        let Choice { entry, .. } =
            *choice.map_err(|_| Error::NeedsPattern { operation: OPERATION, why: why() })?;
        let entry = self.frame.kernel(entry, operands.alibi_slopes);
        self.frame.launch(&operands, |heads, operands| self.blocks.launch(stream, entry, heads, operands))
    }
}

tells_operands!(BlockAttention<T: Value>);

/// The error that says what kernels by blocks want, and what there is.
fn needs_pattern(problem: &Problem) -> Error {
    let Problem { value, dim, vector, has_positive_scale, queries, nnz, precision, sm, .. } = *problem;
    let sign = if has_positive_scale { "above 0" } else { "not above 0" };
    let keys = nnz / queries.max(1);
    let why = format!(
        "its kernels take GPUs from compute capability 8.0 on, f16 and bf16 with d of multiples of 8 up to 256, and f32 with d of multiples of 4 \
         up to 256 (with Precision::Single d and keys a query of {LONG_ROWS} on average at least, with Precision::Tf32 any), strides of multiples of 16 bytes, a scale above 0 or a soft cap, and queries of up to {MAX_GRID_YZ} tiles; here are {value}, {precision:?}, d = {dim}, {keys} keys a query, \
         strides of multiples of {vector} elements, a scale {sign}, {queries} queries, and compute capability {}.{}",
        sm / 10,
        sm % 10
    );
    Error::NeedsPattern { operation: OPERATION, why }
}

impl<T: Value> Tunable for BlockAttention<T> {
    type Subject = MaskBlocks;
    /// Q, K, V and O.
    type Scratch = [Buffer<T>; 4];
    const NAME: &'static str = "attention";

    fn device(&self) -> &Device {
        &self.frame.device
    }
    fn describe(&self, mask: &MaskBlocks) -> Option<String> {
        let [TilingCounts { entries, longest, .. }, ..] = mask.counts().tilings;
        if !self.selection.is_auto() || self.output_len() == 0 || entries == 0 {
            return None;
        }
        let (value, queries, keys) = (T::TYPE, mask.queries(), mask.keys());
        let (dim, batch) = (self.frame.dim, self.frame.options.batch);
        Some(format!(
            "{value} {queries}×{keys} in {entries} blocks, up to {longest} for 64 queries; d {dim}, batch {batch}{}",
            self.frame.asked::<T>()
        ))
    }
    tunes_selection!();
    fn with_candidate(&self, mask: &MaskBlocks, name: &str) -> Result<Self> {
        let options = self.frame.options.algorithm(self.selection.algorithm_of(name));
        Self::plan_with(mask, self.frame.dim, options)
    }
    fn scratch(&self, _mask: &MaskBlocks) -> Result<Self::Scratch> {
        self.frame.scratch()
    }
    fn run_on(&self, stream: &Stream, _mask: &MaskBlocks, [q, k, v, o]: &mut Self::Scratch) -> Result<()> {
        self.run(stream, q.as_slice(), k.as_slice(), v.as_slice(), o.as_slice_mut())
    }
}
