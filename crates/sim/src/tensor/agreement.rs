//! Whether the warps of a warpgroup come to the same operations, with the same A and B.
use std::mem;

use lacuna_gpu::WARP;

use crate::execution::context::Context;
use crate::report::finding::FindingKind;
use crate::report::site::SiteId;
use crate::tensor::product::Operand;
use crate::tensor::warpgroup::{Operands, WARPS, WarpgroupCall};

#[derive(Debug, Default)]
pub(crate) struct Agreement {
    /// Steps of its warpgroup that each warp has come to; none after one at which it was at odds with the others.
    came: Vec<Option<usize>>,
    /// The steps of each warpgroup, as its first warp came to them: line, A and B, and the warp.
    steps: Vec<Vec<(SiteId, Operands, usize)>>,
}

impl Agreement {
    pub(crate) fn start_block(&mut self, warps: usize) {
        self.came.clear();
        self.came.resize(warps, Some(0));
        self.steps.clear();
        self.steps.resize(warps.div_ceil(WARPS), Vec::new());
    }

    /// Compares a warp's step with that of the first warp of its warpgroup that came to it.
    pub(crate) fn compare(
        &mut self,
        context: &mut Context<'_>,
        warp: usize,
        call: WarpgroupCall,
        site: SiteId,
        operands: Operands,
    ) {
        let Some(count) = self.came[warp] else { return };
        let steps = &mut self.steps[warp / WARPS];
        if count == steps.len() {
            steps.push((site, operands, warp));
        }
        let (other, others, first) = steps[count];
        let meets = (other, others) == (site, operands);
        self.came[warp] = meets.then_some(count + 1);
        if !meets {
            let detail = if other == site {
                let [[a, b], [other_a, other_b]] =
                    [operands, others].map(|operands| operands.map(Operand::words));
                format!(
                    "warp {warp} gives A at {a:?} and B at {b:?}, warp {first} at {other_a:?} and {other_b:?}"
                )
            } else {
                format!("warp {warp} comes to {}, where warp {first} came to another line", call.name())
            };
            let thread = warp as u32 * WARP;
            context.report(FindingKind::MismatchedWarpgroup, site, thread, None, Some(other), detail);
        }
    }

    /// All threads have exited: warps that never came to a step of their warpgroup will not.
    pub(crate) fn check_end(&mut self, context: &mut Context<'_>) {
        for (group, steps) in mem::take(&mut self.steps).into_iter().enumerate() {
            for warp in group * WARPS..(group + 1) * WARPS {
                // A warp that the block does not have came to none.
                let came = self.came.get(warp).copied().unwrap_or(Some(0));
                if let Some(&(site, _, first)) = came.and_then(|came| steps.get(came)) {
                    let detail = format!("warp {warp} of the warpgroup never came here");
                    let thread = first as u32 * WARP;
                    context.report(FindingKind::MismatchedWarpgroup, site, thread, None, None, detail);
                }
            }
        }
    }
}
