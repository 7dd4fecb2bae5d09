//! What kernels cost that go row by row.
use lacuna_gpu::WARP;
use lacuna_kernels::Entry;
use lacuna_kernels::spmm::{QUAD, Tile};

use super::choose::Problem;
use super::cost::mean_length;
use super::grid::{Extent, is_hybrid, is_persistent, resident_blocks, subwarp_share};
use super::model::{CostModel, RowSplitConstants};
use super::rows::Rows;

/// Lines of 128 bytes that L1 has for B, of 256 KiB that it shares with shared memory.
const L1_LINES: f64 = 1536.0;
/// What L2, of 50 MB in two halves, keeps of B's tile of columns beside all else that passes through it.
const L2_BYTES: f64 = 25e6;
/// Bytes of a line.
const LINE: f64 = 128.0;
/// Cycles of a multiprocessor for a line from memory: its part of 3.35 TB/s.
const DRAM_LINE: f64 = 10.0;
/// What part of the shorter of both is waited for beside the longer, traffic from L2 and from memory.
const NOT_HIDDEN_BY_MEMORY: f64 = 0.25;
/// Registers of a multiprocessor.
const REGISTERS: f64 = 65_536.0;
/// With more registers a thread its loads do not wait less.
const ENOUGH_REGISTERS: f64 = 85.0;
/// The part of a row's latency that is left where it has at most a nonzero a lane, and goes without a stage: by times of an H100
/// (docs/log/spmm.md, "Short rows, and N in fours").
const WITHOUT_STAGE: f64 = 0.65;
/// Where a larger part of all rows is empty, the last that run are.
const MANY_EMPTY: f64 = 0.1;

/// A kernel of the row-split scheme on a problem.
pub(super) struct RowSplit<'a> {
    pub(super) model: &'a CostModel,
    pub(super) problem: &'a Problem,
    pub(super) entry: &'a Entry<Tile>,
    pub(super) lanes: u32,
    pub(super) split: u32,
    pub(super) rows: Rows<'a>,
}

impl RowSplit<'_> {
    /// Cycles: the larger of what keeps L1 busy and what warps wait, and a part of the smaller.
    pub(super) fn cost(&self) -> f64 {
        let [busy, waiting] = if is_persistent(&self.entry.tile) { self.persistent() } else { self.once() };
        busy.max(waiting) + self.constants().not_hidden * busy.min(waiting)
    }

    /// Cycles in which L1 is busy, and those that warps wait, where each block takes its rows and ends.
    fn once(&self) -> [f64; 2] {
        let (constants, Self { problem, .. }) = (self.constants(), self);
        let sms = f64::from(problem.multiprocessors);
        let block_warps = f64::from(self.entry.threads / 32);
        let resident_warps = self.resident_warps();
        let b_lines = self.b_lines(resident_warps / block_warps);
        let traffic = self.traffic() + b_lines * constants.b_line;
        let memory = self.memory_lines(b_lines) * DRAM_LINE;
        let traffic = traffic.max(memory) + NOT_HIDDEN_BY_MEMORY * traffic.min(memory);
        let blocks_per_sm = (self.warps() / block_warps).ceil() / sms;
        let imbalance = blocks_per_sm.ceil() / blocks_per_sm.max(f64::MIN_POSITIVE);
        let busy = traffic / sms * imbalance.min(constants.most_imbalance);

        // Rows come longest first: the last wave has the shortest.
        let waves = self.warps() / (sms * resident_warps);
        let last = if self.rows.empty() > MANY_EMPTY * problem.rows as f64 {
            self.empty_chain()
        } else {
            self.chain(self.rows.shortest())
        };
        let average = self.mean_chain(|length| self.chain(length), self.empty_chain());
        let chains = average * waves + last * (waves.ceil() - waves);
        let waiting = chains.max(self.lone_chain(self.quads(self.problem.longest_row as f64)));
        // Where a multiprocessor holds one block at a time, the next begins when the last of its warps has ended.
        let begun = if block_warps >= resident_warps { constants.wide_block * waves.ceil() } else { 0.0 };
        [busy, waiting + begun]
    }

    /// The same of a persistent kernel. Nobody takes the rows of a block that has more or longer ones than others.
    fn persistent(&self) -> [f64; 2] {
        let (constants, Self { problem, entry, .. }) = (self.constants(), self);
        let (tile, ours) = (&entry.tile, &self.model.persistent);
        let sms = f64::from(problem.multiprocessors);
        let extent = [problem.rows, problem.n, problem.batch].map(|count| count as u64);
        let [rows, columns, products] = extent;
        let resident = resident_blocks(entry.bounds, problem.multiprocessors);
        let sharing = Extent { rows, columns, products }.sharing_blocks(tile, resident);
        let blocks = self.column_tiles() * sharing as f64;
        let rounds = (blocks / resident as f64).ceil();
        let block_rows = f64::from(tile.block_rows);
        let rows_each = problem.rows as f64 / sharing as f64;
        let turns = (rows_each / block_rows).ceil() * rounds;
        let (longest, shortest) = (problem.longest_row as f64, self.rows.shortest());

        // Of the rows of each turn the first block has the longest: what it has more of in all, next to the mean.
        let top = self.rows.length_at(block_rows.min(rows_each) / 2.0);
        // Where rows are nearly even, waiting for others hides it.
        let difference = (top - shortest).max(0.0);
        let mean_row = mean_length(problem).max(1.0);
        let felt = (ours.spread_share * difference / mean_row).min(1.0);
        let more = felt * difference / (mean_row * turns.max(1.0));
        let b_lines = self.b_lines_of(rows_each, block_rows.min(rows_each));
        let mean = problem.rows as f64 * self.column_tiles() / sms;
        let imbalance = (blocks / sms).ceil() * rows_each.ceil() / mean.max(f64::MIN_POSITIVE);
        let busy = (self.traffic() + blocks * b_lines * constants.b_line) / sms * imbalance * (1.0 + more);

        // A hybrid kernel splits a row that is longer than a subwarp's share of all; of the others each subwarp has one.
        let hybrid = is_hybrid(tile);
        let share = subwarp_share(tile, sharing, problem.nnz as u64) as f64;
        let is_whole = |length: f64| hybrid && length <= share;
        let split = if hybrid { f64::from(self.split) } else { 1.0 };
        let chain = |length: f64| {
            if is_whole(length) { self.whole_chain(length) / split } else { self.chain(length) }
        };
        let average = self.mean_chain(chain, self.empty_chain() / split);
        let quads = self.quads(difference) * constants.quad_latency * self.slowness();
        let uneven = match hybrid {
            true if longest > share => 0.0,
            _ => felt * quads * split,
        };
        let longest_quads = if is_whole(longest) { longest / f64::from(QUAD) } else { self.quads(longest) };
        let begun = ours.start * rounds * if hybrid { 2.0 } else { 1.0 };
        [busy, begun + (average * turns + uneven).max(self.lone_chain(longest_quads))]
    }

    /// Warps that a multiprocessor has at once.
    fn resident_warps(&self) -> f64 {
        let (most, block_warps) = (self.constants().resident_warps, f64::from(self.entry.threads / 32));
        match self.entry.bounds.min_blocks {
            0 => most.max(block_warps),
            blocks => (f64::from(blocks) * block_warps).min(most.max(block_warps)),
        }
    }

    /// Cycles in which the longest row runs on when all others have ended. Where all wait for L2 together, warps go on alike: by then
    /// it has got as far as a warp gets in the mean.
    pub(super) fn longest_row_alone(&self) -> f64 {
        let warps = f64::from(self.problem.multiprocessors) * self.resident_warps();
        let done = self.warps() * self.mean_quads() / warps;
        let left = self.quads(self.problem.longest_row as f64) - done;
        self.slowness() * self.constants().lone_quad_latency * left.max(0.0)
    }

    /// Lines of B from memory, of so many that come from L2: what L2 does not keep of a tile of columns. Far beyond its size it keeps
    /// nothing. Less than a line takes as long as one.
    fn memory_lines(&self, b_lines: f64) -> f64 {
        let Self { problem, entry, .. } = self;
        let width = f64::from(entry.tile.block_columns).min(problem.n as f64);
        let value_bytes = f64::from(problem.value.bytes());
        let row_bytes = width * value_bytes;
        // A line is kept whole.
        let kept_bytes = row_bytes.max(LINE).min(problem.n as f64 * value_bytes);
        let kept = L2_BYTES / (problem.cols as f64 * kept_bytes).max(1.0);
        let missed = if kept < 0.5 { 1.0 } else { 1.0 - kept.min(1.0) };
        missed * b_lines * (LINE / row_bytes.max(1.0)).max(1.0)
    }

    fn constants(&self) -> &RowSplitConstants {
        &self.model.row_split
    }

    /// By how much longer loads take than in a kernel with enough registers: fewer are under way at once.
    fn slowness(&self) -> f64 {
        let constants = self.constants();
        let registers = match self.entry.bounds.min_blocks {
            0 => constants.registers,
            blocks => (REGISTERS / f64::from(blocks * self.entry.threads)).min(ENOUGH_REGISTERS),
        };
        (ENOUGH_REGISTERS / registers).powf(constants.register_exponent)
    }

    /// Cycles of a row of this length, from its record to its last product.
    fn chain(&self, length: f64) -> f64 {
        let constants = self.constants();
        let reduction = if self.split > 1 { constants.reduction } else { 0.0 };
        let quads = self.quads(length).max(1.0).ceil() + reduction;
        let staging = if self.lanes == WARP && self.split == 1 && length <= f64::from(WARP) {
            WITHOUT_STAGE
        } else {
            1.0
        };
        self.slowness() * constants.quad_latency * quads + staging * constants.row_latency
    }

    /// The same of a row that one subwarp takes alone.
    fn whole_chain(&self, length: f64) -> f64 {
        let quads = (length / f64::from(QUAD)).max(1.0).ceil();
        self.slowness() * self.constants().quad_latency * quads + self.constants().row_latency
    }

    /// The same of a row of so many quads that runs alone in the end.
    fn lone_chain(&self, quads: f64) -> f64 {
        self.slowness() * self.constants().lone_quad_latency * quads.ceil() + self.constants().row_latency
    }

    /// The same of a row without nonzeros.
    fn empty_chain(&self) -> f64 {
        self.constants().row_latency * self.constants().empty_row
    }

    /// The mean of all rows' chains.
    fn mean_chain(&self, chain: impl Fn(f64) -> f64, empty: f64) -> f64 {
        let all: f64 = self.rows.classes().map(|(count, length)| count * chain(length)).sum();
        (all + self.rows.empty() * empty) / self.problem.rows.max(1) as f64
    }

    /// Cycles of all multiprocessors for loads of B from L1, and for A from L2.
    fn traffic(&self) -> f64 {
        let (constants, Self { problem, .. }) = (self.constants(), self);
        let [vector, lanes] = [self.entry.tile.vector, self.lanes].map(f64::from);
        // A lane's part of a row of B, in words of four bytes.
        let words = vector * f64::from(problem.value.bytes()) / 4.0;
        let lines = 32.0 / lanes * (lanes * words / 32.0).max(1.0);
        let quads = self.mean_quads();
        let request = constants.issue + constants.cache_line * lines;
        let nonzero_bytes = f64::from(problem.value.bytes() + problem.index.bytes());
        let a_lines = problem.nnz as f64 * nonzero_bytes * self.column_tiles() / 128.0;
        self.warps() * quads * f64::from(QUAD) * request + a_lines * constants.a_line
    }

    /// Lines of B from L2 to L1, of all multiprocessors. Rows that run on one at the same time, over the same columns, share
    /// them: those of a block, and of all resident blocks unless several tiles of columns run at once.
    fn b_lines(&self, resident_blocks: f64) -> f64 {
        let Self { problem, entry, .. } = self;
        let rows = problem.rows.max(1) as f64;
        let block_rows = f64::from(entry.tile.block_rows);
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
        let Self { problem, entry, .. } = self;
        let width = f64::from(entry.tile.block_columns).min(problem.n as f64);
        let row_lines = width * f64::from(problem.value.bytes()) / 128.0;
        let kept = (L1_LINES / (problem.cols as f64 * row_lines).max(1.0)).min(1.0);
        let each_time = rows / at_once.max(1.0) * self.distinct(at_once);
        (kept * self.distinct(rows).min(each_time) + (1.0 - kept) * each_time) * row_lines
    }

    /// Rows of B that so many rows of A meet together.
    fn distinct(&self, rows: f64) -> f64 {
        let cols = self.problem.cols.max(1) as f64;
        let density = (mean_length(self.problem) / cols).min(1.0);
        cols * (1.0 - (1.0 - density).powf(rows))
    }

    /// Tiles of columns, those of all products together: a batch is like one B as wide as all of them.
    fn column_tiles(&self) -> f64 {
        let tiles = (self.problem.n as f64 / f64::from(self.entry.tile.block_columns)).ceil();
        tiles * self.problem.batch as f64
    }

    /// Warps that the problem makes.
    fn warps(&self) -> f64 {
        let group = f64::from(self.lanes * self.split);
        (self.problem.rows as f64 * group / 32.0).ceil() * self.column_tiles()
    }

    /// Quads of a subwarp in the mean row, of which each that is not empty has one at least.
    fn mean_quads(&self) -> f64 {
        let quads = self.rows.classes().map(|(count, length)| count * self.quads(length).max(1.0));
        quads.sum::<f64>() / self.problem.rows.max(1) as f64
    }

    /// Quads of a subwarp in a row of this length.
    fn quads(&self, length: f64) -> f64 {
        length / f64::from(QUAD * self.split)
    }
}
