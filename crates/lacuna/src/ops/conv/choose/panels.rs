//! [`WgmmaPanels`](super::Algorithm::WgmmaPanels): for what it is, how its work is cut, and what it costs.
use lacuna_kernels::Entry;
use lacuna_kernels::conv::{PANEL_CHANNELS, PANEL_TAPS, Scheme, Tile};

use super::{Cut, MAX_JOINED, MAX_PARTIAL, MAX_SPLITS, Problem, reduce_cost};
use crate::op::elements;
use crate::ops::conv::MapLayout;
use crate::ops::conv::model::CostModel;

/// Channels and filters come in eights: 16 bytes.
const EIGHT: usize = 8;
/// Products of 16 channels in a step.
const SIXTEENS: f64 = (PANEL_CHANNELS / 16) as f64;

impl Problem {
    /// Whether maps lie as panels need them. Addresses do not matter: what is not aligned is copied number by number.
    pub(super) fn suits_panels(&self) -> bool {
        let shape = &self.shape;
        // Kernels count bytes from the corner of the padding on.
        let [rows, columns] = shape.padding;
        let of_rows = elements([2, shape.channels, shape.size[1], rows]);
        let padding = of_rows.saturating_add(elements([2, shape.channels, columns, 1]));
        let input = shape.input_len().saturating_add(padding);
        let bytes = input.max(shape.output_len()).saturating_mul(self.value.bytes() as usize);
        self.layout == MapLayout::Nhwc
            && !shape.is_depthwise()
            && self.allows_mma()
            && shape.filter_taps() <= PANEL_TAPS as usize
            && shape.channels.is_multiple_of(EIGHT)
            && shape.filters.is_multiple_of(EIGHT)
            && bytes <= MAX_JOINED
    }

    /// Steps of a tile: 64 channels at a tap.
    pub(in crate::ops::conv) fn panel_steps(&self) -> usize {
        self.shape.channels.div_ceil(PANEL_CHANNELS as usize).saturating_mul(self.shape.filter_taps())
    }

    /// Blocks that share the tiles of a group of filters, where `columns` of blocks do so side by side: such that a multiprocessor has the least to do, and then the fewest.
    pub(in crate::ops::conv) fn panel_blocks(
        &self,
        entry: &Entry<Tile>,
        tiles: usize,
        columns: usize,
    ) -> usize {
        let places = (self.multiprocessors as usize * entry.bounds.min_blocks as usize).max(1);
        let most = (tiles * columns).div_ceil(places).clamp(1, tiles.max(1));
        let blocks = |of_block: usize| tiles.div_ceil(of_block);
        let work = |of_block: usize| (blocks(of_block) * columns).div_ceil(places) * of_block;
        blocks((1..=most).rev().min_by_key(|&of_block| work(of_block)).unwrap_or(1))
    }

    /// How a kernel's work is cut.
    pub(super) fn panel_cut(
        &self,
        model: &CostModel,
        entry: &Entry<Tile>,
        [pixels, filters]: [u32; 2],
    ) -> Cut {
        let [tiles, groups] = self.panel_tiles(pixels, filters);
        let steps = self.panel_steps();
        let elements = (tiles * groups) as u64 * u64::from(pixels * filters);
        // Partial sums are counted in 32 bits.
        let most = steps.clamp(1, MAX_SPLITS).min((MAX_PARTIAL / elements.max(1)).max(1) as usize);
        let cost = |splits: usize| self.panel_cost(model, entry, splits);
        let splits = match self.splits {
            Some(splits) => splits.clamp(1, most),
            None => (1..=most).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(1),
        };
        // Splits without steps are left out.
        let splits = steps.div_ceil(self.panel_split(splits)).max(1);
        Cut { tiles_x: 0, tiles, groups, splits, images: 1 }
    }

    /// Steps of a split.
    pub(in crate::ops::conv) fn panel_split(&self, splits: usize) -> usize {
        self.panel_steps().div_ceil(splits).max(1)
    }

    /// Runs of pixels, and groups of filters.
    fn panel_tiles(&self, pixels: u32, filters: u32) -> [usize; 2] {
        let [rows, columns] = self.shape.out_size();
        let of_images = self.shape.batch.saturating_mul(rows.saturating_mul(columns));
        [of_images.div_ceil(pixels as usize), self.shape.filters.div_ceil(filters as usize)]
    }

    /// Cycles with so many splits: a multiprocessor's blocks take one tile after another. A step takes what tensor cores need, or what copying its panels takes.
    pub(super) fn panel_cost(&self, model: &CostModel, entry: &Entry<Tile>, splits: usize) -> f64 {
        let Scheme::WgmmaPanels { pixels, filters } = entry.tile.scheme else { return f64::INFINITY };
        let [tiles, groups] = self.panel_tiles(pixels, filters);
        let of_split = self.panel_split(splits);
        let splits = self.panel_steps().div_ceil(of_split).max(1);
        let columns = groups * splits;
        let blocks = self.panel_blocks(entry, tiles, columns);
        let resident = f64::from(entry.bounds.min_blocks);
        let all = (blocks * columns) as f64 / f64::from(self.multiprocessors);
        let waves = (all / resident).ceil();
        // Blocks of a multiprocessor at once, on average.
        let together = all.ceil().min(resident);
        let of_block = tiles.div_ceil(blocks.max(1)) as f64;
        let elements = f64::from(pixels * filters);
        let of = &model.wgmma_panels;
        let products = elements / 128.0 * SIXTEENS * of.product;
        let copies = f64::from(pixels + filters) * of.row;
        let step = (together * products.max(copies)).max(of.wait);
        let tile = of_split as f64 * step + of.tile + together * elements * of.write;
        let reduce = reduce_cost(model, splits, (tiles * columns) as f64 * elements);
        model.common.launch + waves * (of.block + of_block * tile) + reduce
    }
}
