//! Layers with dense weights.
use lacuna::conv::{Filters, MapLayout, Operands, Options, Shape};
use lacuna::{Buffer, Conv, Result, SliceMut, Stream};

use super::{About, Inputs, Step, Weighted};

/// A convolution with its filters packed.
#[derive(Debug)]
pub(super) struct Dense {
    plan: Conv,
    filters: Filters,
    bias: Option<Buffer<f32>>,
    has_residual: bool,
}

impl Dense {
    pub(super) fn plan(layer: &Weighted<'_>) -> Result<Self> {
        let Weighted { planning, conv, folded, options } = layer;
        let mut plan_options = Options::default()
            .activation(conv.activation)
            .layout(planning.options.layout)
            .algorithm(options.algorithm)
            .precision(options.precision);
        if let Some(zeros) = options.zeros {
            plan_options = plan_options.zeros(zeros);
        }
        let mut shape = conv.shape;
        if conv.is_linear() {
            shape = rows_as_pixels(shape);
            plan_options = plan_options.layout(MapLayout::Nhwc);
        }
        let plan = Conv::plan(planning.device, shape, plan_options)?;
        let filters = planning.device.upload(&folded.filters)?;
        let filters = plan.pack(planning.stream, filters.as_slice())?;
        // What is packed is dropped now, and must have been read.
        planning.stream.synchronize()?;
        let bias = folded.bias.as_ref().map(|bias| planning.device.upload(bias)).transpose()?;
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

impl Step for Dense {
    fn run(&self, stream: &Stream, inputs: &Inputs<'_>, out: SliceMut<'_, f32>) -> Result<()> {
        let residual = if self.has_residual { Some(inputs.at(1)?) } else { None };
        let bias = self.bias.as_ref().map(Buffer::as_slice);
        let operands = Operands::new(inputs.at(0)?, &self.filters, out);
        self.plan.run(stream, Operands { bias, residual, ..operands })
    }

    fn about(&self) -> About {
        let bias = self.bias.as_ref().map_or(0, |bias| bias.len() * size_of::<f32>());
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
