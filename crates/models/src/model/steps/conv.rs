//! Layers with dense weights.
use lacuna::conv::{Filters, MapLayout, Operands, Options, Shape};
use lacuna::{Buffer, Conv, Result, SliceMut, Stream, Value};

use super::values::rounded;
use super::{About, Inputs, Step, Weighted};

/// A convolution with its filters packed.
#[derive(Debug)]
pub(super) struct Dense<T: Value> {
    plan: Conv<T>,
    filters: Filters<T>,
    bias: Option<Buffer<T>>,
    has_residual: bool,
}

impl<T: Value> Dense<T> {
    pub(super) fn plan(layer: &Weighted<'_, T>) -> Result<Self> {
        let Weighted { planning, conv, folded, options, plane_strides } = layer;
        let mut plan_options = Options::default()
            .activation(conv.activation)
            .layout(planning.options.layout)
            .algorithm(options.algorithm)
            .precision(options.precision);
        if let Some(zeros) = options.zeros {
            plan_options = plan_options.zeros(zeros);
        }
        [plan_options.input_channel_stride, plan_options.out_channel_stride] = *plane_strides;
        let mut shape = conv.shape;
        if conv.is_linear() {
            shape = rows_as_pixels(shape);
            plan_options = plan_options.layout(MapLayout::Nhwc);
        }
        let plan = Conv::plan(planning.device, shape, plan_options)?;
        let filters = planning.device.upload(&rounded::<T>(&folded.filters))?;
        let filters = plan.pack(planning.stream, filters.as_slice())?;
        // What is packed is dropped now, and must have been read.
        planning.stream.synchronize()?;
        let bias = folded.bias.as_ref().map(|bias| planning.device.upload(&rounded(bias))).transpose()?;
        Ok(Self { plan, filters, bias, has_residual: conv.residual })
    }
}

/// The rows of a matrix as pixels of one map with channels last, so that tiles of pixels have several rows. Taps of 1×1 do not know rows of
/// pixels from columns: where they can be, they are eight in a row, as tiles have them.
fn rows_as_pixels(shape: Shape) -> Shape {
    let rows = shape.batch;
    let size = if rows.is_multiple_of(8) { [rows / 8, 8] } else { [1, rows] };
    Shape::new(shape.channels, size, shape.filters, [1, 1])
}

impl<T: Value> Step<T> for Dense<T> {
    fn run(&self, stream: &Stream, inputs: &Inputs<'_, T>, out: SliceMut<'_, T>) -> Result<()> {
        let residual = if self.has_residual { Some(inputs.at(1)?) } else { None };
        let bias = self.bias.as_ref().map(Buffer::as_slice);
        let operands = Operands::new(inputs.at(0)?, &self.filters, out);
        self.plan.run(stream, Operands { bias, residual, ..operands })
    }

    fn about(&self) -> About {
        let bias = self.bias.as_ref().map_or(0, |bias| bias.len() * size_of::<T>());
        let kernel = self.plan.choice().entry.name;
        let kernel = match self.plan.cudnn_algorithm() {
            Some(algorithm) => format!("cudnn {algorithm} + {kernel}"),
            None => kernel.to_owned(),
        };
        About {
            kernel,
            splits: self.plan.splits(),
            weight_bytes: self.filters.bytes() + bias,
            workspace_bytes: self.plan.workspace_bytes(),
        }
    }
}
