//! Launches of a lookup over as many bags as there are.
use std::ptr;

use lacuna_kernels::DeviceValue;
use lacuna_kernels::nhot::{LookupArgs, TableIndex};

use super::Choice;
use crate::backend::Launch;
use crate::{Result, Stream};

/// CUDA's limit on blocks along x.
const MAX_GRID: usize = i32::MAX as usize;

/// Launches `choice` over `bags` bags, in as many launches as the grid's limit asks for. `args` describes all of them; its
/// `bags` and `parts` are filled in here.
pub(super) fn lookup<T: DeviceValue, I: TableIndex>(
    stream: &Stream,
    choice: &Choice,
    bags: usize,
    args: LookupArgs<T, I>,
) -> Result<()> {
    let parts = (args.columns).div_ceil(choice.block_columns);
    if bags == 0 || parts == 0 {
        return Ok(());
    }
    let block_bags = choice.block_bags as usize;
    let most = MAX_GRID / parts as usize * block_bags;
    for first in (0..bags).step_by(most) {
        let count = most.min(bags - first);
        let mut args = LookupArgs { bags: count as u32, parts, ..args };
        args.nonzeros.offsets = args.nonzeros.offsets.add(first);
        let step = if args.transposed != 0 { 1 } else { args.out_stride as usize };
        args.out = args.out.add(first * step);
        stream.launch(&Launch {
            entry: choice.entry,
            grid: [count.div_ceil(block_bags) as u32 * parts, 1, 1],
            threads: choice.threads,
            shared_bytes: choice.shared_bytes,
            args: &args,
            args_pointer: ptr::from_ref(&args).cast(),
        })?;
    }
    Ok(())
}
