//! Plans: what is worked out once for a pattern of weights and a shape.
use std::sync::Arc;

use super::gather::Gather;
use super::{OPERATION, Options};
use crate::conv::Shape;
use crate::op::{Layout, strides};
use crate::pattern::DevicePattern;
use crate::{Autotuner, CsrMatrix, Device, Error, Index, Result, Slice, SliceMut, Spmm, Stream, Value, spmm};

/// out = act(w·x + bias) of feature maps, by taps of 1×1 whose weights are sparse: N filters × C channels as a [`CsrMatrix`].
///
/// Maps are NCHW. Each image is a matrix of C channels × H·W pixels, row by row, and its result is the product of the weights with it: one
/// launch of [`Spmm`](crate::Spmm)'s kernels for the whole batch, bias and activation included. In NHWC pixels are the rows of a matrix, and it would be a product
/// with a sparse matrix on the right, which this is not: there is no such option.
///
/// With strides, or with padding, the pixels that are used are first copied into memory of the plan's own ([`workspace_bytes`](Self::workspace_bytes)), by a launch
/// more: runs of such a plan belong on one stream at a time. Otherwise the input is read where it lies.
///
/// Input and result may be parts of wider maps ([`Options`]). Each sum runs over the filter's nonzeros alone, in `f32`, and is rounded once, and the same
/// operands give the same bits in every run, by the plan and the addresses' alignment. Values that are not finite flow as IEEE 754 says: a NaN of the input shows in the
/// filters that have a weight for its channel, and a weight that is not finite makes NaN of the zeros that it meets, those of the padding too.
///
/// ```
/// use lacuna::matrix::Csr;
/// use lacuna::{CsrMatrix, Device, SparsePointwiseConv, conv, pointwise};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let stream = device.stream()?;
/// // Two filters of three channels: 2·x₂, and x₀ - x₁.
/// let weights = Csr::new(2, 3, vec![0, 1, 3], vec![2, 0, 1], vec![2.0_f32, 1.0, -1.0])?;
/// let weights = CsrMatrix::new(&device, &weights)?;
/// let shape = conv::Shape::new(3, [1, 2], 2, [1, 1]);
/// let plan = SparsePointwiseConv::plan(&weights, shape, pointwise::Options::default().relu())?;
/// let x = device.upload(&[1.0_f32, 2.0, /* channel 1: */ 4.0, 1.0, /* channel 2: */ 5.0, 6.0])?;
/// let mut out = device.zeros::<f32>(plan.output_len())?;
/// plan.run(&stream, pointwise::Operands { weights: &weights, input: x.as_slice(), bias: None, out: out.as_slice_mut() })?;
/// assert_eq!(out.download(&stream)?, [10.0, 12.0, 0.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SparsePointwiseConv<T: Value = f32, I: Index = u32> {
    device: Device,
    pattern: Arc<DevicePattern<I>>,
    shape: Shape,
    options: Options,
    input: Layout,
    out: Layout,
    gather: Option<Gather<T>>,
    product: Spmm<T, I>,
}

/// What a run works on.
#[derive(Debug)]
pub struct Operands<'o, T: Value = f32, I: Index = u32> {
    /// The weights, filters × channels, of the pattern that was planned for.
    pub weights: &'o CsrMatrix<T, I>,
    /// x: [`input_len`](SparsePointwiseConv::input_len) elements.
    pub input: Slice<'o, T>,
    /// What is added to each channel of the result: as many elements as there are filters.
    pub bias: Option<Slice<'o, T>>,
    /// The result: [`output_len`](SparsePointwiseConv::output_len) elements. Where the plan [accumulates](Options::accumulate), it
    /// holds what is added.
    pub out: SliceMut<'o, T>,
}

impl<T: Value, I: Index> SparsePointwiseConv<T, I> {
    /// A plan for the pattern of `weights`, and a shape with as many filters and channels as it has rows and columns, taps of 1×1 and one group.
    ///
    /// # Errors
    /// [`Error::Parameter`] for other taps and groups, weights that do not fit the shape, a batch of weights, strides of 0, a clamp's limits out of order, channels that overlap,
    /// and images of the result that do; [`Error::TooLarge`] for images of 2 GiB, and other sizes that kernels cannot count; [`Error::Illegal`] for an
    /// algorithm that cannot do the shape; what the device says where there is no room for the pixels that are gathered, or for what tile kernels need of the pattern.
    pub fn plan(weights: &CsrMatrix<T, I>, shape: Shape, options: Options) -> Result<Self> {
        let Shape { batch, channels, size: [rows, columns], filters, taps, groups, .. } = shape;
        let expected = || "[1, 1]; for others, and dense filters, there is Conv";
        Error::expect(taps == [1, 1], OPERATION, "the size of the taps", expected, format!("{taps:?}"))?;
        let expected = || "1; for a filter a channel there is Conv, with Shape::depthwise";
        Error::expect(groups == 1, OPERATION, "the number of groups", expected, groups)?;
        shape.check(size_of::<T>())?;
        options.activation.check(OPERATION)?;
        let (expected, got) = ([filters, channels], [weights.rows(), weights.cols()]);
        let as_shape = || format!("{expected:?}, the shape's");
        Error::expect(
            got == expected,
            OPERATION,
            "filters and channels of the weights",
            as_shape,
            format!("{got:?}"),
        )?;
        expect_one(weights)?;

        let bytes = T::TYPE.bytes();
        let pixels = rows * columns;
        let Options { input_channel_stride: channel, input_image_stride: image, .. } = options;
        let input = strides!(OPERATION, "the input", "H·W", channel, batch, image);
        let input = Layout::new(channels, pixels, bytes, input)?;
        let [rows, columns] = shape.out_size();
        let out_pixels = rows * columns;
        let Options { out_channel_stride: channel, out_image_stride: image, .. } = options;
        let out = strides!(OPERATION, "the result", "H·W", channel, batch, image);
        let out = Layout::new(filters, out_pixels, bytes, out)?;
        out.expect_disjoint("the image stride of the result")?;

        let device = weights.device().clone();
        let gather = Gather::new(&device, &shape, &input)?;
        let mut of_product = options.of_product(batch);
        if gather.is_none() {
            of_product.b_stride = options.input_channel_stride;
            of_product.b_batch_stride = options.input_image_stride;
        }
        let product = Spmm::plan_with(weights, out_pixels, of_product)?;
        let pattern = Arc::clone(weights.pattern());
        Ok(Self { device, pattern, shape, options, input, out, gather, product })
    }

    /// This plan, with the product's kernel that was measured to be the fastest: see [`Autotuner::tune`]. It shares its choices with [`Spmm`](crate::Spmm).
    ///
    /// # Errors
    /// As [`Autotuner::tune`].
    pub fn tuned(self, tuner: &Autotuner, stream: &Stream, weights: &CsrMatrix<T, I>) -> Result<Self> {
        let product = tuner.tune(stream, self.product, weights)?;
        Ok(Self { product, ..self })
    }

    /// The sizes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The options that were planned with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The product's kernel, where the addresses of input and result are multiples of 16 bytes, as those of whole buffers are.
    pub fn choice(&self) -> &spmm::Choice {
        self.product.choice()
    }

    /// The product's kernels that are legal for each alignment of the addresses, the best alignment first; each list in the order of the cost model.
    pub fn legal(&self) -> [Vec<spmm::Choice>; 4] {
        self.product.legal()
    }

    /// Elements that the input must have, up to the last of the last image. The gap after it may be there too.
    pub fn input_len(&self) -> usize {
        self.input.len()
    }

    /// Elements that the result must have, up to the last of the last image. The gap after it may be there too.
    pub fn output_len(&self) -> usize {
        self.out.len()
    }

    /// Bytes of the plan's own memory on the device: of the pixels that are used, where there are strides or padding, and otherwise 0.
    pub fn workspace_bytes(&self) -> usize {
        self.gather.as_ref().map_or(0, Gather::bytes)
    }

    /// Gives the work to the stream, and returns at once. It can be recorded in a graph.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::OtherPattern`], [`Error::NotPrepacked`], [`Error::OtherDevice`], [`Error::Parameter`] (for a batch of weights) for operands
    /// that do not fit; [`Error::Illegal`] where the algorithm asked for needs other alignment; [`Error::Launch`] or, on the simulator, its findings.
    pub fn run(&self, stream: &Stream, operands: Operands<'_, T, I>) -> Result<()> {
        let Operands { weights, input, bias, out } = operands;
        let device = &self.device;
        if !Arc::ptr_eq(&self.pattern, weights.pattern()) {
            return Err(Error::OtherPattern { operation: OPERATION });
        }
        expect_one(weights)?;
        device.expect_same(OPERATION, "the stream", stream.device())?;
        self.input.check("the input", device, input)?;
        self.out.check("the result", device, out.as_slice())?;
        if let Some(bias) = bias {
            let shape = || "one a filter".into();
            device.expect_operand(OPERATION, "the bias", bias, shape, self.shape.filters)?;
        }
        if self.output_len() == 0 {
            return Ok(());
        }
        let pixels = match &self.gather {
            Some(gather) => gather.run(stream, input)?,
            None => input,
        };
        self.product.run_with(stream, spmm::Operands { a: weights, b: pixels, c: out, bias })
    }
}

/// Whether all images have the same weights.
fn expect_one<T: Value, I: Index>(weights: &CsrMatrix<T, I>) -> Result<()> {
    let batch = weights.batch();
    Error::expect(batch == 1, OPERATION, "the batch of the weights", || "1, for all images", batch)
}

#[cfg(test)]
mod tests {
    use lacuna_matrix::{Csr, generate};

    use super::*;

    /// Elements that a lane loads at once: whole vectors want whole vectors of pixels, and strides.
    #[test]
    fn maps_of_whole_vectors_of_pixels_allow_vectors() {
        let device = Device::simulator();
        let pattern = generate::uniform(64, 64, 0.9, 1).unwrap();
        let values = generate::random_values(pattern.nnz(), 2);
        let weights = CsrMatrix::new(&device, &Csr::with_values(pattern, values).unwrap()).unwrap();
        let widest = |size, options| {
            let shape = Shape::new(64, size, 64, [1, 1]).batch(4);
            let plan: SparsePointwiseConv = SparsePointwiseConv::plan(&weights, shape, options).unwrap();
            plan.legal()[0].iter().map(|choice| choice.entry.tile.vector).max().unwrap()
        };
        let usual = Options::default();
        assert_eq!(widest([7, 7], usual), 1);
        assert_eq!(widest([7, 7], usual.input_channel_stride(52).out_channel_stride(52)), 1);
        assert_eq!(widest([1, 52], usual), 4);
        assert_eq!(widest([1, 52], usual.out_channel_stride(53)), 1);
    }
}
