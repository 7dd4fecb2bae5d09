//! The warps that fill stages with numbers in parts: all of them each stage.
use lacuna_gpu::{FULL_WARP, Gpu, WARP};

use super::block::{BLOCK, BlockEntry};
use super::{PANEL, WgmmaTiles, WgmmaValue, Work};
use crate::common::Rows;

impl<
    T: WgmmaValue,
    const L: usize,
    const PARTS: usize,
    const PIECES: usize,
    const SCORES: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
> WgmmaTiles<T, L, PARTS, PIECES, SCORES, GROUPS, STAGES, MODIFIES>
{
    /// Panels of 64 keys that K of a step has, and V.
    const PANELS: u32 = Self::UNITS * Self::DIM / 64;

    /// Splits K and V into every stage, by all producers, a panel of each after the other. What comes next of K is loaded while V is split, and
    /// of V while the stage is handed on; but kernels that change scores have no registers for V.
    ///
    /// # Safety
    /// All producers are here, a warpgroup; head and entries are live.
    #[inline(always)]
    pub(super) unsafe fn produce_parts<G: Gpu>(work: &Work<T, G>, producer: u32) {
        let (gpu, head) = (work.gpu, &work.head);
        let (mut first, mut stage) = (0, 0);
        // Where registers are few, the compiler is not to see how many panels of long rows there are: it would keep addresses of all.
        let panels = if MODIFIES && Self::DIM > 64 {
            gpu.warp_shuffle_idx(FULL_WARP, Self::PANELS, 0, WARP)
        } else {
            Self::PANELS
        };
        // SAFETY: as promised by the caller; a stage is filled when all groups have left it.
        unsafe {
            let entry = |index: u32| BlockEntry::load(gpu, work.entries, index, work.count);
            let load = |matrix, (entry, is_there, panel): (&BlockEntry, bool, u32)| {
                let end = if is_there { head.cols } else { 0 };
                let rows = Rows { matrix, first: entry.key_block * BLOCK, end, stride_bytes: head.kv_stride };
                T::load(gpu, &rows, [64 * panel, head.dim])
            };
            let mut next = [entry(0), entry(1)];
            let mut k = load(head.k, (&next[0], work.count > 0, 0));
            let mut v = load(head.v, (&next[0], work.count > 0, 0));
            while first < work.count {
                let entries = next;
                let later = first + Self::UNITS;
                next = [entry(later), entry(later + 1)];
                if first >= STAGES * Self::UNITS {
                    gpu.barrier_sync(Self::EMPTY + stage, Self::AT_EMPTY);
                }
                Self::copy_bitmaps(work, [stage, 0], &entries[0], [producer, 4]);
                if Self::UNITS == 2 {
                    Self::copy_bitmaps(work, [stage, 1], &entries[1], [producer, 4]);
                }
                let part = |panel: u32| {
                    let column = panel % Self::PANELS / Self::UNITS;
                    if panel == Self::PANELS {
                        (&next[0], later < work.count, column)
                    } else if panel.is_multiple_of(Self::UNITS) {
                        (&entries[0], true, column)
                    } else {
                        (&entries[1], first + 1 < work.count, column)
                    }
                };
                for panel in 0..panels {
                    let to = stage * Self::KV_BYTES + panel * PANEL;
                    T::store(gpu, &k, Self::K + to, Self::KV_PART);
                    if MODIFIES {
                        v = load(head.v, part(panel));
                        T::store(gpu, &v, to, Self::KV_PART);
                        k = load(head.k, part(panel + 1));
                    } else {
                        k = load(head.k, part(panel + 1));
                        T::store(gpu, &v, to, Self::KV_PART);
                        v = load(head.v, part(panel + 1));
                    }
                }
                Self::fill_ends(gpu, stage);
                (first, stage) = (later, if stage + 1 == STAGES { 0 } else { stage + 1 });
            }
        }
    }
}
