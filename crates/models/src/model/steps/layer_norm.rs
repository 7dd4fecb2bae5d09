//! Layer norms.
use lacuna::conv::MapLayout;
use lacuna::layer_norm::{Operands, Options, Shape};
use lacuna::{Buffer, LayerNorm, Result, SliceMut, Stream, Value};

use super::values::{expect_finite, rounded};
use super::{About, Inputs, Planning, Step};
use crate::model::ModelError;
use crate::network::{self, Layer};

/// A plan with its factors and sums.
#[derive(Debug)]
struct Norm<T: Value> {
    plan: LayerNorm<T>,
    weight: Buffer<T>,
    bias: Buffer<T>,
}

pub(super) fn plan<T: Value>(
    planning: &Planning<'_, T>,
    layer: &Layer,
    norm: &network::LayerNorm,
) -> std::result::Result<Box<dyn Step<T>>, ModelError> {
    let shape = planning.network.shape(layer.output);
    let of_library = |error| ModelError::of_layer(layer, error);
    let tensor = |name: &str| {
        let tensor = planning.weights.get(name, &[shape.channels]);
        let tensor = tensor.map_err(|source| ModelError::Weights { layer: layer.name.clone(), source })?;
        expect_finite::<T>(layer, tensor.values())?;
        planning.device.upload(&rounded(tensor.values())).map_err(of_library)
    };
    let [weight, bias] = network::LayerNorm::tensors(&layer.name);
    let (weight, bias) = (tensor(&weight)?, tensor(&bias)?);
    let (images, channels, pixels) = (shape.images, shape.channels, shape.pixels());
    let of = match planning.options.layout {
        MapLayout::Nhwc => Shape::Rows { rows: images * pixels, features: channels },
        _ if pixels == 1 => Shape::Rows { rows: images, features: channels },
        _ => Shape::Maps { images, channels, pixels },
    };
    let options = Options::default().epsilon(norm.epsilon);
    let plan = LayerNorm::plan_with(planning.device, of, options).map_err(of_library)?;
    Ok(Box::new(Norm { plan, weight, bias }))
}

impl<T: Value> Step<T> for Norm<T> {
    fn run(&self, stream: &Stream, inputs: &Inputs<'_, T>, out: SliceMut<'_, T>) -> Result<()> {
        let (weight, bias) = (Some(self.weight.as_slice()), Some(self.bias.as_slice()));
        self.plan.run(stream, Operands { input: inputs.at(0)?, weight, bias, out })
    }

    fn about(&self) -> About {
        let weight_bytes = (self.weight.len() + self.bias.len()) * size_of::<T>();
        About { weight_bytes, ..About::kernel(self.plan.choice().entry.name) }
    }
}
