//! Stores to the shared memory of other blocks of a cluster.
//!
//! A store to another block is there at once; whoever uses the place, or has used it, without a barrier of the cluster between is
//! found.
use lacuna_gpu::WARP;

use crate::execution::context::Context;
use crate::memory::bits::Words;
use crate::memory::cells::Storer;
use crate::memory::shared::{SharedAccess, SharedMemory};
use crate::order::clock::Passed;
use crate::report::finding::FindingKind;
use crate::report::site::SiteId;

/// A store on its way to another block.
pub(crate) struct ClusterStore {
    access: SharedAccess,
    by: Storer,
    passed: Passed,
    site: SiteId,
}

/// What became of it.
pub(crate) enum Received {
    /// The line of an access that nothing orders with it, if there is one.
    There(Option<SiteId>),
    /// The block has ended.
    Over,
}

impl ClusterStore {
    /// A thread stores to block `block` of its cluster. Gives what goes there, if it may.
    pub(crate) fn start(
        context: &mut Context<'_>,
        shared: &SharedMemory,
        access: SharedAccess,
        block: u32,
    ) -> Option<Self> {
        let site = shared.locate(context, &access)?;
        let (thread, cluster) = (access.thread, context.launch.geometry.cluster);
        if block >= cluster {
            let detail = format!("block {block} of a cluster of {cluster}");
            context.report(FindingKind::BadArgument, site, thread, None, None, detail);
            return None;
        }
        let passed = context.clocks.passed((thread / WARP) as usize);
        if passed.waited == 0 {
            shared.report(context, FindingKind::AbsentBlock, site, &access, None);
        }
        let by = ((context.block % u64::from(cluster)) as u32, thread);
        Some(Self { access, by, passed, site })
    }

    /// Stores, on the side of the block that it goes to.
    pub(crate) fn receive(&self, context: &Context<'_>, shared: &mut SharedMemory, value: Words) -> Received {
        if context.is_over {
            return Received::Over;
        }
        let Self { access, by, passed, site } = *self;
        Received::There(shared.cells.receive(access.offset, access.bytes, (by, passed, site), value))
    }

    /// Reports what was wrong, on the side of the block that it came from.
    pub(crate) fn end(self, context: &mut Context<'_>, shared: &SharedMemory, received: Received) {
        match received {
            Received::Over => shared.report(context, FindingKind::AbsentBlock, self.site, &self.access, None),
            // One that may come too early is at odds with everything.
            Received::There(rival) if rival.is_some() && self.passed.waited > 0 => {
                shared.report(context, FindingKind::RaceInCluster, self.site, &self.access, rival);
            }
            Received::There(_) => {}
        }
    }
}
