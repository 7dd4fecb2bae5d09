//! Sums of two values.
use lacuna::bias_act::{Activation, Operands, Options};
use lacuna::{BiasAct, Result, SliceMut, Stream, Value, conv};

use super::{About, Inputs, Planning, Step};
use crate::network::{Add, Layer};

pub(super) fn plan<T: Value>(
    planning: &Planning<'_, T>,
    layer: &Layer,
    add: &Add,
) -> Result<Box<dyn Step<T>>> {
    let shape = planning.network.shape(layer.output);
    let activation = match add.activation {
        conv::Activation::Relu => Activation::Relu,
        conv::Activation::Clamp { lo, hi } => Activation::Clamp { lo, hi },
        _ => Activation::Identity,
    };
    let options = Options::default().activation(activation);
    Ok(Box::new(Sum(BiasAct::plan_with(planning.device, shape.images, shape.image_len(), options)?)))
}

/// The second value is a residual of the first.
#[derive(Debug)]
struct Sum<T: Value>(BiasAct<T>);

impl<T: Value> Step<T> for Sum<T> {
    fn run(&self, stream: &Stream, inputs: &Inputs<'_, T>, out: SliceMut<'_, T>) -> Result<()> {
        let residual = Some(inputs.at(1)?);
        self.0.run(stream, Operands { input: inputs.at(0)?, bias: None, residual, out })
    }

    fn about(&self) -> About {
        About::kernel(self.0.choice().entry.name)
    }
}
