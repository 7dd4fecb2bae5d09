//! A layer on a device: a plan, with all that it needs beside its values.

mod attention;
mod concat;
mod conv;
mod faster;
mod layer_norm;
mod maps;
mod moves;
mod pad;
mod pool;
mod shared;
mod sparse;
mod sum;
mod values;

use std::fmt::Debug;

use lacuna::conv::MapLayout;
use lacuna::{Device, SliceMut, Stream, Value};

pub(super) use self::shared::Shared;
use super::inputs::Inputs;
use super::options::SPARSE_ABOVE;
use super::{Held, LayerOptions, ModelError, Options};
use crate::memory::Memory;
use crate::network::{Convolution, Flatten, FlattenNhwc, Layer, Network, Operation};
use crate::weights::{Folded, Weights};

/// A layer that was planned.
pub(super) trait Step<T: Value>: Debug + Send + Sync {
    /// Gives the work to the stream. It allocates nothing, and can be recorded.
    fn run(&self, stream: &Stream, inputs: &Inputs<'_, T>, out: SliceMut<'_, T>) -> lacuna::Result<()>;

    /// What it is.
    fn about(&self) -> About;
}

/// A step, and the part of its layer's weights that is zero; none where it has none.
type WithZeros<T> = (Box<dyn Step<T>>, Option<f64>);

/// What a step tells of itself.
#[derive(Clone, Debug)]
pub(super) struct About {
    /// The kernel; none where nothing is done.
    pub(super) kernel: String,
    pub(super) splits: usize,
    pub(super) weight_bytes: usize,
    pub(super) workspace_bytes: usize,
}

impl About {
    /// A kernel without weights and memory of its own.
    fn kernel(kernel: impl Into<String>) -> Self {
        Self { kernel: kernel.into(), splits: 1, weight_bytes: 0, workspace_bytes: 0 }
    }
}

/// What layers are planned with.
#[derive(Debug)]
pub(super) struct Planning<'p, T: Value> {
    pub(super) device: &'p Device,
    pub(super) stream: &'p Stream,
    pub(super) network: &'p Network,
    pub(super) memory: &'p Memory,
    pub(super) weights: &'p Weights,
    pub(super) options: &'p Options,
    pub(super) shared: Shared<T>,
}

/// A layer with weights, to be planned.
#[derive(Debug)]
struct Weighted<'p, T: Value> {
    planning: &'p Planning<'p, T>,
    conv: Convolution,
    /// Rounded to the type of the model's values.
    folded: Folded,
    options: LayerOptions,
    /// Elements from one plane of the input to the next, and of the result, where there are gaps.
    plane_strides: [Option<usize>; 2],
}

impl<T: Value> Planning<'_, T> {
    /// The step of a layer.
    pub(super) fn step(&self, layer: &Layer) -> Result<WithZeros<T>, ModelError> {
        let of_library = |error| ModelError::of_layer(layer, error);
        let step = match &layer.operation {
            Operation::Conv(_) | Operation::Linear(_) | Operation::Scale(_) => {
                return self.weighted(layer);
            }
            Operation::LayerNorm(norm) => layer_norm::plan(self, layer, norm)?,
            Operation::Attention(of) => attention::plan(self, layer, of).map_err(of_library)?,
            Operation::Pool(pool) => pool::plan(self, layer, pool).map_err(of_library)?,
            Operation::Pad(pad) => pad::plan(self, layer, pad).map_err(of_library)?,
            Operation::PadChannels(pad) => pad::plan_channels(self, layer, pad).map_err(of_library)?,
            Operation::Add(add) => sum::plan(self, layer, add).map_err(of_library)?,
            Operation::Concat(_) => concat::plan(self, layer).map_err(of_library)?,
            Operation::DepthToSpace(of) => maps::depth_to_space(self, layer, of).map_err(of_library)?,
            Operation::Resize(resize) => maps::resize(self, layer, resize).map_err(of_library)?,
            Operation::FlattenNhwc(_) => {
                let of = self.network.shape(layer.inputs[0]);
                if FlattenNhwc::moves_nothing(of, self.options.layout) {
                    Box::new(moves::Move::new(self, layer))
                } else {
                    moves::transpose(self, [of.channels, of.pixels()], of.images).map_err(of_library)?
                }
            }
            Operation::Flatten(_) => {
                let of = self.network.shape(layer.inputs[0]);
                if Flatten::moves_nothing(of, self.options.layout) {
                    Box::new(moves::Move::new(self, layer))
                } else {
                    moves::transpose(self, [of.pixels(), of.channels], of.images).map_err(of_library)?
                }
            }
        };
        Ok((step, None))
    }

    fn weighted(&self, layer: &Layer) -> Result<WithZeros<T>, ModelError> {
        let name = || layer.name.clone();
        let of_library = |error| ModelError::of_layer(layer, error);
        let Some(conv) = self.network.convolution(layer) else {
            return Err(ModelError::UnknownLayer { layer: name() });
        };
        let folded = Folded::new(&conv, self.weights)
            .map_err(|source| ModelError::Weights { layer: name(), source })?;
        let folded = values::folded::<T>(layer, folded)?;
        let options = *self.options.of(&layer.name);
        let is_linear = conv.is_linear();
        let is_able = conv.may_be_sparse() && (is_linear || self.options.layout == MapLayout::Nchw);
        let zeros = folded.zeros();
        let is_sparse = match options.weights {
            Held::Dense => false,
            Held::Sparse if !is_able => {
                let expected = "a linear layer, or taps of 1×1 that reach all channels, in NCHW";
                return Err(ModelError::NotSparse { layer: name(), expected });
            }
            Held::Sparse => true,
            Held::SparseAbove(limit) => is_able && zeros > limit,
            Held::FasterAbove(_) if self.device.is_simulator() => is_able && zeros > SPARSE_ABOVE,
            Held::FasterAbove(limit) => is_able && zeros > limit,
        };
        let is_likely_zero = || self.network.has_zeros(layer.inputs[0]);
        let likely = options.zeros.or_else(|| (!is_likely_zero()).then_some(0.0));
        let options = LayerOptions { zeros: likely, ..options };
        let around = [layer.inputs[0], layer.output];
        let plane_strides = around.map(|value| self.memory.place(value).plane_stride);
        let weighted = Weighted { planning: self, conv, folded, options, plane_strides };
        let plan = |is_sparse: bool| -> lacuna::Result<Box<dyn Step<T>>> {
            Ok(match is_sparse {
                true if is_linear => Box::new(sparse::Linear::plan(&weighted)?),
                true => Box::new(sparse::Pointwise::plan(&weighted)?),
                false => Box::new(conv::Dense::plan(&weighted)?),
            })
        };
        let step = plan(is_sparse).map_err(of_library)?;
        if !is_sparse || !matches!(options.weights, Held::FasterAbove(_)) || self.device.is_simulator() {
            return Ok((step, Some(zeros)));
        }
        let dense = plan(false).map_err(of_library)?;
        let is_faster = faster::is_faster(self, layer, [&*dense, &*step]).map_err(of_library)?;
        Ok((if is_faster { dense } else { step }, Some(zeros)))
    }
}
