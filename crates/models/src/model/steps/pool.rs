//! Poolings.
use lacuna::pool::{Operands, Options};
use lacuna::{Pool, Result, SliceMut, Stream};

use super::{About, Inputs, Planning, Step};
use crate::network::{self, Layer};

pub(super) fn plan(planning: &Planning<'_>, layer: &Layer, pool: &network::Pool) -> Result<Box<dyn Step>> {
    let shape = pool.shape(planning.network.shape(layer.inputs[0]));
    let options = Options::default().mode(pool.mode).layout(planning.options.layout);
    let plan: Pool = Pool::plan(planning.device, shape, options)?;
    Ok(Box::new(plan))
}

impl Step for Pool {
    fn run(&self, stream: &Stream, inputs: &Inputs<'_>, out: SliceMut<'_, f32>) -> Result<()> {
        Self::run(self, stream, Operands { input: inputs.at(0)?, out })
    }

    fn about(&self) -> About {
        About::kernel(self.choice().entry.name)
    }
}
