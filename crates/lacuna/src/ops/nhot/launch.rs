//! Launches of a lookup over as many bags as there are.
use lacuna_kernels::DeviceValue;
use lacuna_kernels::nhot::{LookupArgs, TableIndex};

use super::Choice;
use crate::op::{MAX_GRID_X, launch, spans};
use crate::{Result, Stream};

/// Launches `choice` over `bags` bags, in as many launches as the grid's limit asks for. `args` describes all of them; its
/// `bags` and `parts` are filled in here.
pub(super) fn lookup<T: DeviceValue, I: TableIndex>(
    stream: &Stream,
    choice: &Choice,
    bags: usize,
    args: LookupArgs<T, I>,
) -> Result<()> {
    let tile = &choice.entry.tile;
    let parts = (args.columns).div_ceil(tile.block_columns);
    if bags == 0 || parts == 0 {
        return Ok(());
    }
    let block_bags = tile.block_bags as usize;
    for span in spans(bags, MAX_GRID_X / parts as usize * block_bags) {
        let mut args = LookupArgs { bags: span.len() as u32, parts, ..args };
        args.nonzeros.offsets = args.nonzeros.offsets.add(span.start);
        let step = if args.transposed != 0 { 1 } else { args.out_stride as usize };
        args.out = args.out.add(span.start * step);
        let grid = [span.len().div_ceil(block_bags) as u32 * parts, 1, 1];
        launch(stream, choice.entry, grid, &args)?;
    }
    Ok(())
}
