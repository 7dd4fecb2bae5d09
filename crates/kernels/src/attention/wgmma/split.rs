//! The warps that fill stages with numbers in parts: all of them each stage.
use lacuna_gpu::{FULL_WARP, Gpu, WARP};

use super::block::{BLOCK, BlockEntry};
use super::{PANEL, WgmmaTiles, WgmmaValue, Work};
use crate::common::{PASSES, Rows};

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
                T::load::<G, PASSES>(gpu, &rows, [64 * panel, head.dim])
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
                let slot = Self::bitmap_stage(first / Self::UNITS, stage);
                Self::copy_bitmaps(work, [slot, 0], &entries[0], [producer, 4]);
                if Self::UNITS == 2 {
                    Self::copy_bitmaps(work, [slot, 1], &entries[1], [producer, 4]);
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
                    T::store::<G, PASSES>(gpu, &k, Self::K + to, Self::KV_PART);
                    if MODIFIES {
                        v = load(head.v, part(panel));
                        T::store::<G, PASSES>(gpu, &v, to, Self::KV_PART);
                        k = load(head.k, part(panel + 1));
                    } else {
                        k = load(head.k, part(panel + 1));
                        T::store::<G, PASSES>(gpu, &v, to, Self::KV_PART);
                        v = load(head.v, part(panel + 1));
                    }
                }
                Self::fill_ends(gpu, Self::FULL + stage * GROUPS);
                (first, stage) = (later, if stage + 1 == STAGES { 0 } else { stage + 1 });
            }
        }
    }

    /// The same where there is one stage: K of the next step is filled while V of this one is read. Two panels are loaded ahead.
    ///
    /// # Safety
    /// As for [`produce_parts`](Self::produce_parts).
    #[inline(always)]
    pub(super) unsafe fn produce_halves<G: Gpu>(work: &Work<T, G>, producer: u32) {
        let (gpu, head) = (work.gpu, &work.head);
        // The compiler is not to see how many panels there are: it would keep addresses of all.
        let panels = gpu.warp_shuffle_idx(FULL_WARP, Self::PANELS, 0, WARP);
        // SAFETY: as promised by the caller; a half is filled when all groups have left it.
        unsafe {
            // Panel `at` of an entry: those of K come first.
            let load = |entry: &BlockEntry, is_there: bool, at: u32| {
                let (matrix, panel) = if at < panels { (head.k, at) } else { (head.v, at - panels) };
                let end = if is_there { head.cols } else { 0 };
                let rows = Rows { matrix, first: entry.key_block * BLOCK, end, stride_bytes: head.kv_stride };
                T::load::<G, PASSES>(gpu, &rows, [64 * panel, head.dim])
            };
            let mut next = BlockEntry::load(gpu, work.entries, 0, work.count);
            let (mut even, mut odd) = (load(&next, work.count > 0, 0), load(&next, work.count > 0, 1));
            let mut index = 0;
            while index < work.count {
                let entry = next;
                next = BlockEntry::load(gpu, work.entries, index + 1, work.count);
                let mut at = 0;
                while at < 2 * panels {
                    let is_of_values = at >= panels;
                    if index > 0 && at % panels == 0 {
                        let empty = if is_of_values { Self::EMPTY } else { Self::EMPTY_OF_KEYS };
                        gpu.barrier_sync(empty, Self::AT_EMPTY);
                    }
                    if at == 0 {
                        Self::copy_bitmaps(work, [Self::bitmap_stage(index, 0), 0], &entry, [producer, 4]);
                    }
                    let to = if is_of_values { 0 } else { Self::K } + at % panels * PANEL;
                    let (of, is_there, ahead) = if at + 2 < 2 * panels {
                        (&entry, true, at + 2)
                    } else {
                        (&next, index + 1 < work.count, 0)
                    };
                    T::store::<G, PASSES>(gpu, &even, to, Self::KV_PART);
                    even = load(of, is_there, ahead);
                    T::store::<G, PASSES>(gpu, &odd, to + PANEL, Self::KV_PART);
                    odd = load(of, is_there, ahead + 1);
                    at += 2;
                    if at == panels {
                        Self::fill_ends(gpu, Self::FULL_OF_KEYS);
                    }
                }
                Self::fill_ends(gpu, Self::FULL);
                index += 1;
            }
        }
    }
}
