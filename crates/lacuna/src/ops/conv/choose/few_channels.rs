//! First layers of networks, of up to four channels: for what their kernels are, and what they cost.
use lacuna_kernels::Entry;
use lacuna_kernels::conv::{FEW_CHANNELS, FEW_COLUMNS, Scheme, Tile};

use super::{Cut, Problem};
use crate::ops::conv::MapLayout;
use crate::ops::conv::model::CostModel;

/// Filters of a lane on tensor cores.
const EIGHT: usize = 8;

impl Problem {
    /// Whether maps lie as [`FewChannelsMma`](super::Algorithm::FewChannelsMma) needs them. Addresses do not matter.
    pub(super) fn suits_few_channels_mma(&self) -> bool {
        self.layout == MapLayout::Nhwc
            && !self.shape.is_depthwise()
            && self.allows_mma()
            && self.shape.channels <= FEW_CHANNELS as usize
            && self.shape.filters.is_multiple_of(EIGHT)
    }

    /// Cycles of [`FewChannels`](super::Algorithm::FewChannels): a scheduler has a warp of each block, whose products and loads it issues one after another.
    pub(super) fn few_channels_cost(&self, entry: &Entry<Tile>, thread: [u32; 2]) -> f64 {
        let Cut { tiles, groups, images, .. } = self.cut(CostModel::hopper(), entry);
        let blocks = (images * tiles * groups) as f64 / f64::from(self.multiprocessors);
        let terms = (self.shape.channels * self.shape.filter_taps()) as f64;
        let results = f64::from(thread[0] * thread[1]);
        FEW_START + terms * FEW_FILTERS + blocks.ceil() * results * (FEW_RESULT + terms * FEW_TERM)
    }

    /// Cycles of [`FewChannelsMma`](super::Algorithm::FewChannelsMma): blocks take one tile after another, and those of a multiprocessor share it.
    pub(super) fn few_channels_mma_cost(&self, entry: &Entry<Tile>) -> f64 {
        let Scheme::FewChannelsMma { rows, filters, .. } = entry.tile.scheme else { return f64::INFINITY };
        let Cut { tiles, groups, images, .. } = self.cut(CostModel::hopper(), entry);
        let tiles = images * tiles;
        let blocks = self.panel_blocks(entry, tiles, groups);
        let of_block = tiles.div_ceil(blocks.max(1)) as f64;
        let together = ((blocks * groups) as f64 / f64::from(self.multiprocessors)).ceil();
        let results = f64::from(rows * FEW_COLUMNS * filters);
        let products = self.shape.filter_taps() as f64;
        let tile = MMA_TILE + results * (MMA_INPUT + together * (MMA_RESULT + products * MMA_TERM));
        MMA_START + of_block * tile
    }
}

/// Cycles from the launch of a kernel of few channels to its end, without what follows; for each term of a sum, whose taps each block loads; for a result
/// of a thread; and for a term of it. Set by hand from times on an H100 (docs/log/conv.md, "First layers").
const FEW_START: f64 = 3700.0;
const FEW_FILTERS: f64 = 38.0;
const FEW_RESULT: f64 = 45.0;
const FEW_TERM: f64 = 2.1;
/// Cycles of the launch of a kernel on tensor cores without its tiles, of a tile, of bringing the input of a result, and of a multiprocessor for a result and a tap of
/// it. Set by hand from times on an H100 (docs/log/conv.md, "First layers on tensor cores").
const MMA_START: f64 = 4100.0;
const MMA_TILE: f64 = 1200.0;
const MMA_INPUT: f64 = 0.045;
const MMA_RESULT: f64 = 0.11;
const MMA_TERM: f64 = 0.0032;
