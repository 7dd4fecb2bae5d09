//! Poolings.
use lacuna::pool::{Operands, Options};
use lacuna::{Pool, Result, SliceMut, Stream, Value};

use super::{About, Inputs, Planning, Step};
use crate::network::{self, Layer};

pub(super) fn plan<T: Value>(
    planning: &Planning<'_, T>,
    layer: &Layer,
    pool: &network::Pool,
) -> Result<Box<dyn Step<T>>> {
    let shape = pool.shape(planning.network.shape(layer.inputs[0]));
    let mut options = Options::default().mode(pool.mode).layout(planning.options.layout);
    options.input_channel_stride = planning.memory.place(layer.inputs[0]).plane_stride;
    let plan: Pool<T> = Pool::plan(planning.device, shape, options)?;
    Ok(Box::new(plan))
}

impl<T: Value> Step<T> for Pool<T> {
    fn run(&self, stream: &Stream, inputs: &Inputs<'_, T>, out: SliceMut<'_, T>) -> Result<()> {
        Self::run(self, stream, Operands { input: inputs.at(0)?, out })
    }

    fn about(&self) -> About {
        About::kernel(self.choice().entry.name)
    }
}
