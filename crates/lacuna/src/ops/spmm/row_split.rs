//! What a kernel of the row-split scheme costs.
use lacuna_kernels::Entry;
use lacuna_kernels::spmm::{QUAD, Tile};

use super::choose::Problem;
use super::cost::{CostModel, mean_length};
use super::grid::{Extent, ahead_rows, is_hybrid, resident_blocks, subwarp_share};

/// Lines of 128 bytes that L1 has for B, of 256 KiB that it shares with shared memory.
const L1_LINES: f64 = 1536.0;

/// What persistent blocks have to do.
pub(super) struct PersistentWork {
    /// How many share a tile of columns.
    sharing: u64,
    /// How many there are.
    blocks: f64,
    /// Rows of each.
    rows: f64,
    /// Blocks that a place on a multiprocessor has in turn.
    rounds: f64,
    /// Rows that a group of lanes takes one after the other, in all blocks that a place on a multiprocessor has in turn.
    turns: f64,
    /// Whether a block has fewer warps than it may have.
    has_fewer_warps: bool,
    /// The part of B that comes into L1 ahead.
    ahead: f64,
}

/// A kernel of the row-split scheme on a problem.
pub(super) struct RowSplit<'a> {
    pub(super) model: &'a CostModel,
    pub(super) problem: &'a Problem,
    pub(super) tile: &'a Tile,
    pub(super) lanes: u32,
    pub(super) split: u32,
}

impl RowSplit<'_> {
    /// Cycles in which L1 is busy: loads of B, A again for each tile of columns, and B again for rows apart.
    pub(super) fn busy(&self, block_warps: f64, resident_warps: f64) -> f64 {
        let Self { model, problem, .. } = *self;
        let sms = f64::from(problem.multiprocessors);
        let b_lines = self.b_lines(resident_warps / block_warps);
        let traffic = self.traffic() + b_lines * model.b_traffic;
        let blocks_per_sm = (self.warps() / block_warps).ceil() / sms;
        let imbalance = blocks_per_sm.ceil() / blocks_per_sm.max(f64::MIN_POSITIVE);
        traffic / sms * imbalance.min(model.most_imbalance)
    }

    /// The same of persistent blocks. Nobody takes the rows of a multiprocessor that has more than others.
    pub(super) fn busy_persistent(&self, work: &PersistentWork) -> f64 {
        let Self { model, problem, .. } = *self;
        let sms = f64::from(problem.multiprocessors);
        let b_lines = self.b_lines_of(work.rows, f64::from(self.tile.block_rows).min(work.rows));
        let traffic = self.traffic() + work.blocks * b_lines * model.persistent_b_traffic;
        let mean = problem.rows as f64 * self.column_tiles() / sms;
        let imbalance = (work.blocks / sms).ceil() * work.rows.ceil() / mean.max(f64::MIN_POSITIVE);
        traffic / sms * imbalance
    }

    /// Cycles of all multiprocessors for loads of B from L1, and for A from L2.
    fn traffic(&self) -> f64 {
        let Self { model, problem, .. } = *self;
        let [vector, lanes] = [self.tile.vector, self.lanes].map(f64::from);
        // A lane's part of a row of B, in words of four bytes.
        let words = vector * f64::from(problem.value.bytes()) / 4.0;
        let lines = 32.0 / lanes * (lanes * words / 32.0).max(1.0);
        let request = words.max(model.line_cost * lines);
        let loads = self.warps() * self.subwarp_quads(mean_length(problem)) * f64::from(QUAD) * request;
        let nonzero_bytes = f64::from(problem.value.bytes() + problem.index.bytes());
        let a_lines = problem.nnz as f64 * nonzero_bytes * self.column_tiles() / 128.0;
        loads + a_lines * model.a_traffic
    }

    /// Waves of resident warps.
    pub(super) fn waves(&self, resident_warps: f64) -> f64 {
        (self.warps() / (f64::from(self.problem.multiprocessors) * resident_warps)).ceil()
    }

    /// Cycles of a chain of loads, each `slower` than it may be: that of an average row, and that of the longest.
    fn chains(&self, slower: f64) -> [f64; 2] {
        let Self { model, problem, .. } = *self;
        let joining = if self.split > 1 { model.joining } else { 0.0 };
        let quads = self.subwarp_quads(mean_length(problem)).ceil() + joining;
        let average = slower * model.quad_latency * quads + model.row_latency;
        let longest_quads = self.subwarp_quads(problem.longest_row as f64).ceil();
        [average, slower * model.lone_quad * longest_quads + model.row_latency]
    }

    /// Cycles that warps wait: the chain of an average row for each of `waves`, because rows are about equally long; or that
    /// of the longest row.
    pub(super) fn waiting(&self, waves: f64) -> f64 {
        let [average, longest] = self.chains(1.0);
        (average * waves).max(longest)
    }

    /// The same of persistent blocks. Where subwarps share long rows only, those of more than a subwarp's share of all, the others take
    /// as many turns as a subwarp has of them; where most rows are long, it is as if all were.
    pub(super) fn waiting_persistent(&self, work: &PersistentWork) -> f64 {
        let Self { model, problem, tile, .. } = *self;
        let (mean, longest) = (mean_length(problem), problem.longest_row as f64);
        let share = subwarp_share(tile, work.sharing, problem.nnz as u64) as f64;
        let slower = model.persistent_latency
            * if work.has_fewer_warps { model.fewer_warps } else { 1.0 }
            * (1.0 - model.ahead_gain.min(1.0) * work.ahead);
        let begun = model.persistent_start * work.rounds * if is_hybrid(tile) { 2.0 } else { 1.0 };
        if !is_hybrid(tile) || share < mean {
            let [average, longest] = self.chains(slower);
            return begun + (average * work.turns).max(longest);
        }
        let turns = (share / mean.max(1.0)).ceil();
        let average =
            turns * (slower * model.quad_latency * (mean / f64::from(QUAD)).ceil() + model.row_latency);
        let subwarps = if longest > share { self.split } else { 1 };
        let lone = (longest / f64::from(QUAD * subwarps)).ceil();
        begun + average.max(slower * model.lone_quad * lone + model.row_latency)
    }

    /// What persistent blocks have to do.
    pub(super) fn persistent_work(&self, entry: &Entry<Tile>) -> PersistentWork {
        let Self { problem, tile, .. } = *self;
        let [rows, columns, products] = [problem.rows, problem.n, problem.batch].map(|count| count as u64);
        let resident = resident_blocks(entry.bounds, problem.multiprocessors);
        let sharing = Extent { rows, columns, products }.sharing_blocks(tile, resident);
        let blocks = self.column_tiles() * sharing as f64;
        let rows = problem.rows as f64 / sharing as f64;
        let rounds = (blocks / resident as f64).ceil();
        let turns = (rows / f64::from(tile.block_rows)).ceil() * rounds;
        let ahead = ahead_rows(tile, sharing, problem.cols as u64, problem.nnz as u64) as f64;
        let ahead = ahead / problem.cols.max(1) as f64;
        PersistentWork { sharing, blocks, rows, rounds, turns, has_fewer_warps: entry.threads < 1024, ahead }
    }

    /// Lines of B from L2 to L1, of all multiprocessors. Rows that run on one at the same time, over the same columns, share
    /// them: those of a block, and of all resident blocks unless several tiles of columns run at once.
    fn b_lines(&self, resident_blocks: f64) -> f64 {
        let Self { problem, tile, .. } = *self;
        let rows = problem.rows.max(1) as f64;
        let block_rows = f64::from(tile.block_rows);
        let column_tiles = self.column_tiles();
        let several =
            column_tiles > 1.0 && rows / block_rows < f64::from(problem.multiprocessors) * resident_blocks;
        let sharing = if several { block_rows } else { block_rows * resident_blocks }.min(rows);
        let sms = f64::from(problem.multiprocessors);
        let of_one = (rows * column_tiles / sms).max(sharing);
        rows * column_tiles / of_one * self.b_lines_of(of_one, sharing)
    }

    /// Lines of B that a multiprocessor fetches for so many rows of A, over a tile of columns, of which it has `at_once` at a
    /// time: what fits into L1 once for all, the rest for each of these.
    fn b_lines_of(&self, rows: f64, at_once: f64) -> f64 {
        let Self { problem, tile, .. } = *self;
        let width = f64::from(tile.block_columns).min(problem.n as f64);
        let row_lines = width * f64::from(problem.value.bytes()) / 128.0;
        let kept = (L1_LINES / (problem.cols as f64 * row_lines).max(1.0)).min(1.0);
        let again = rows / at_once.max(1.0) * self.distinct(at_once);
        (kept * self.distinct(rows).min(again) + (1.0 - kept) * again) * row_lines
    }

    /// Rows of B that so many rows of A meet together.
    fn distinct(&self, rows: f64) -> f64 {
        let cols = self.problem.cols.max(1) as f64;
        let density = (mean_length(self.problem) / cols).min(1.0);
        cols * (1.0 - (1.0 - density).powf(rows))
    }

    /// Tiles of columns, those of all products together: a batch is like one B as wide as all of them.
    fn column_tiles(&self) -> f64 {
        (self.problem.n as f64 / f64::from(self.tile.block_columns)).ceil() * self.problem.batch as f64
    }

    /// Warps that the problem makes.
    fn warps(&self) -> f64 {
        let group = f64::from(self.lanes * self.split);
        (self.problem.rows as f64 * group / 32.0).ceil() * self.column_tiles()
    }

    /// Quads of a subwarp in a row of this length.
    fn subwarp_quads(&self, length: f64) -> f64 {
        length / f64::from(QUAD * self.split)
    }
}
