//! Rows far longer than the mean, cut into pieces: when, and a plan's tables and room for them.
use std::sync::Arc;

use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::spmm::{ExtremumArgs, JoinPieces, JoinPiecesArgs, PIECE, Partial, QUAD, Scheme, Tile};
use lacuna_kernels::{DeviceValue, Entry, Kernel, RowRecord, entries};

use super::choose::Problem;
use super::cost::mean_length;
use super::model::CostModel;
use super::rows::Rows;
use crate::op::{Turn, launch_kernel};
use crate::pattern::{DevicePattern, RowLengths};
use crate::{Buffer, Index, Result, Stream, Value};

/// How many times the mean a row must have for the library to think of cutting it.
const FAR_LONGER: f64 = 16.0;
/// Nonzeros that the library cuts no piece below.
const SHORTEST_PIECE: usize = 32;
/// Of lengths whose costs differ by no more the shortest is taken: pieces that run together then meet a smaller part of B, which
/// the cost does not know.
const ALIKE: f64 = 1.01;
/// Rows stay whole where cutting them is not estimated to gain so much.
const LEAST_GAIN: f64 = 0.9;
/// Numbers in `f32` of all pieces at most: 256 MiB.
const MOST_NUMBERS: usize = 1 << 26;
/// Cycles of the second launch: about a microsecond and a half at 2 GHz.
const LAUNCH: f64 = 3000.0;
/// Cycles of a load of pieces that waits for one before, and numbers of a column that are under way together: four in each of eight
/// groups of lanes; with few columns, of more groups (`kernels/src/spmm/pieces.rs`).
const JOIN_LATENCY: f64 = 800.0;
const JOINED_AT_ONCE: f64 = 32.0;
/// Cycles of a wave of blocks that join, about a microsecond and a half; blocks of a multiprocessor, and columns of one.
const JOIN_WAVE: f64 = 3000.0;
const JOIN_BLOCKS: f64 = 10.0;
const JOIN_COLUMNS: usize = <JoinPieces<f32, false, false> as Kernel>::TILE.block_columns as usize;
/// Rows of a table whose rows' highest bit says that they are pieces.
const MOST_ROWS: usize = PIECE as usize;

impl Problem {
    /// Whether rows are to be cut, or are so long that the library thinks of it.
    pub(super) fn may_be_cut(&self) -> bool {
        match self.longest_piece {
            Some(length) => self.longest_row > length,
            None => self.longest_row as f64 >= FAR_LONGER * mean_length(self).max(1.0),
        }
    }

    /// Into pieces of how many nonzeros this kernel's long rows are cut; none where all stay whole.
    pub(super) fn piece_length(&self, entry: &Entry<Tile>) -> Option<usize> {
        self.pieces(entry, CostModel::hopper()).map(|(length, _)| length)
    }

    /// The same, by a model, and what the product costs then.
    pub(super) fn pieces(&self, entry: &Entry<Tile>, model: &CostModel) -> Option<(usize, f64)> {
        let is_able = match entry.tile.scheme {
            Scheme::RowSplit { pieces, .. } => pieces,
            Scheme::Extremum { .. } => true,
            _ => false,
        };
        if !is_able || self.rows >= MOST_ROWS || self.n == 0 {
            return None;
        }
        if !self.may_be_cut() {
            return None;
        }
        if let Some(length) = self.longest_piece {
            return Some((length, self.cut_cost(entry, model, length)));
        }
        let whole = model.whole_rows_cost(self, entry);
        let lengths = (0..).map(|power| SHORTEST_PIECE << power);
        let costs = lengths.take_while(|length| 2 * length <= self.longest_row).map(|length| {
            let numbers = self.cut_rows(length) as usize * self.n.next_multiple_of(8);
            let fits = numbers <= MOST_NUMBERS;
            (length, if fits { self.cut_cost(entry, model, length) } else { f64::INFINITY })
        });
        let costs: Vec<(usize, f64)> = costs.collect();
        shortest_of_cheapest(&costs).filter(|&(_, cost)| cost < LEAST_GAIN * whole)
    }

    /// About how many pieces rows longer than `length` become.
    fn cut_rows(&self, length: usize) -> f64 {
        let pieces = |(count, mean): (f64, f64)| {
            if mean > length as f64 { count * (mean / length as f64).ceil() } else { 0.0 }
        };
        Rows::of(self).classes().map(pieces).sum()
    }

    /// The cost with rows cut into pieces of at most `length` nonzeros, and joined.
    fn cut_cost(&self, entry: &Entry<Tile>, model: &CostModel, length: usize) -> f64 {
        let pieces = self.cut_rows(length);
        let long = f64::from(self.lengths.longer(length as u64));
        let more = (pieces - long).max(0.0) as u32;
        let counts: Vec<u32> = (0..32)
            .map_while(|power| {
                let count = self.lengths.counts().nth(power).unwrap_or(0);
                (1_usize << power < length).then(|| count.saturating_add(more))
            })
            .collect();
        let [rows, nonempty] =
            [self.lengths.rows(), self.lengths.nonempty()].map(|count| count.saturating_add(more));
        let cut = Self {
            rows: rows as usize,
            longest_row: length.min(self.longest_row),
            lengths: RowLengths::from_counts(rows, nonempty, &counts),
            ..*self
        };
        let row_lines = (4.0 * self.n as f64 / 128.0).max(1.0) * self.batch as f64;
        let traffic = 2.0 * pieces * row_lines * model.row_split.b_line / f64::from(self.multiprocessors);
        let joins = long * self.n.div_ceil(JOIN_COLUMNS) as f64 * self.batch as f64;
        let waves = joins / (f64::from(self.multiprocessors) * JOIN_BLOCKS);
        let turns = (self.longest_row as f64 / (length as f64 * JOINED_AT_ONCE)).ceil();
        // A product of the batch is a launch, and a second for its pieces.
        let launches = (2 * self.batch.max(1) - 1) as f64;
        let last = model.longest_row_alone(&cut, entry);
        let joining = LAUNCH * launches + traffic + JOIN_WAVE * waves + JOIN_LATENCY * (turns + 1.0);
        model.whole_rows_cost(&cut, entry) + last + joining
    }
}

/// The first of these lengths with a cost that is about the least.
fn shortest_of_cheapest(costs: &[(usize, f64)]) -> Option<(usize, f64)> {
    let least = costs.iter().map(|&(_, cost)| cost).fold(f64::INFINITY, f64::min);
    costs.iter().copied().find(|&(_, cost)| cost <= ALIKE * least)
}

/// A plan's rows in pieces: tables, and room for what pieces come to.
#[derive(Debug)]
pub(super) struct Pieces {
    /// [`RowRecord`]s of pieces, and then of rows that stay whole, longest first if the pattern's are.
    table: Buffer<u32>,
    /// A record for each row that was cut: its slots.
    cut: Buffer<u32>,
    values: Buffer<f32>,
    /// Of extrema.
    winners: Option<Buffer<u32>>,
    /// Elements from one slot to the next.
    stride: usize,
    /// For runs, which write pieces and then join them.
    pub(super) turn: Turn,
}

impl Pieces {
    /// Cuts rows longer than `length` of a problem's pattern. It reads the row table, and waits for that.
    pub(super) fn new<I: Index>(
        pattern: &DevicePattern<I>,
        problem: &Problem,
        length: usize,
    ) -> Result<Arc<Self>> {
        let device = pattern.row_table.device();
        let table = pattern.row_table.download(&device.stream()?)?;
        let Cut { records, cut } = cut(table.chunks_exact(RowRecord::WORDS), length);
        let slots = cut.last().map_or(0, |&[_, _, end, _]| end as usize);
        let stride = problem.n.next_multiple_of(8);
        let numbers = slots * stride;
        let winners = problem.reduce.is_extremum().then(|| device.uninitialized(numbers)).transpose()?;
        Ok(Arc::new(Self {
            table: device.upload(records.as_flattened())?,
            cut: device.upload(cut.as_flattened())?,
            values: device.uninitialized(numbers)?,
            winners,
            stride,
            turn: Turn::default(),
        }))
    }

    /// The row table, and how many records it has.
    pub(super) fn table(&self) -> (GlobalPtr<u32>, usize) {
        (self.table.as_slice().pointer(), self.table.len() / RowRecord::WORDS)
    }

    /// Where pieces go.
    pub(super) fn partial(&self) -> Partial {
        let winners = self.winners.as_ref().map_or(0, |winners| winners.as_slice().address());
        Partial {
            values: GlobalMut::from_address(self.values.as_slice().address()),
            winners: GlobalMut::from_address(winners),
            stride: self.stride as u32,
        }
    }

    /// Makes rows of the pieces that a launch with these arguments wrote.
    pub(super) fn join<T: Value, I: Index>(
        &self,
        stream: &Stream,
        args: &ExtremumArgs<T::Device, I::Device>,
        is_extremum: bool,
    ) -> Result<()> {
        let ExtremumArgs { product, winners, winners_stride, is_least, .. } = *args;
        let args = JoinPiecesArgs {
            table: self.cut.as_slice().pointer(),
            partial: product.partial,
            output: product.output,
            winners,
            winners_stride,
            is_least,
            n: product.n,
        };
        let rows = (self.cut.len() / RowRecord::WORDS) as u32;
        match (is_extremum, winners.address()) {
            (false, _) => launch_join::<T::Device, false, false>(stream, rows, &args),
            (true, 0) => launch_join::<T::Device, true, false>(stream, rows, &args),
            (true, _) => launch_join::<T::Device, true, true>(stream, rows, &args),
        }
    }
}

fn launch_join<T: DeviceValue, const EXTREMUM: bool, const WINNERS: bool>(
    stream: &Stream,
    rows: u32,
    args: &JoinPiecesArgs<T>,
) -> Result<()> {
    let grid = |entry: &Entry<Tile>| [rows, args.n.div_ceil(entry.tile.block_columns), 1];
    launch_kernel::<JoinPieces<T, EXTREMUM, WINNERS>>(stream, entries::spmm(), grid, args)
}

/// Records of a table with its long rows in pieces, and the slots of each of these rows.
struct Cut {
    records: Vec<[u32; RowRecord::WORDS]>,
    cut: Vec<[u32; RowRecord::WORDS]>,
}

/// Cuts rows longer than `length` into as few pieces as have about that length, which begin at multiples of [`QUAD`] nonzeros:
/// only the ends of a row have vectors that are not whole.
fn cut<'r>(table: impl Iterator<Item = &'r [u32]> + Clone, length: usize) -> Cut {
    let (mut pieces, mut cut) = (Vec::new(), Vec::new());
    let is_long = |record: &&[u32]| (record[2] - record[1]) as usize > length;
    for record in table.clone().filter(is_long) {
        let (row, start, end) = (record[0], u64::from(record[1]), u64::from(record[2]));
        let quad = u64::from(QUAD);
        let count = (end - start).div_ceil(length as u64);
        let each = (end - start).div_ceil(count).next_multiple_of(quad);
        let first = pieces.len() as u32;
        let mut from = start;
        while from < end {
            let to = ((from / quad) * quad + each).min(end);
            let row = PIECE | pieces.len() as u32;
            let place = ((from - start) << 32) / (end - start);
            pieces.push((place, RowRecord { row, start: from as u32, end: to as u32 }.to_words()));
            from = to;
        }
        cut.push(RowRecord { row, start: first, end: pieces.len() as u32 }.to_words());
    }
    // Pieces that run together meet about the same rows of B, which the caches then hold: columns of a row rise.
    pieces.sort_by_key(|&(place, _)| place);
    let pieces = pieces.into_iter().map(|(_, record)| record);
    let whole = table.filter(|record| !is_long(record)).map(|record| [record[0], record[1], record[2], 0]);
    Cut { records: pieces.chain(whole).collect(), cut }
}

#[cfg(test)]
mod tests {
    use super::super::choose;
    use super::*;

    fn records(rows: &[[u32; 3]]) -> Vec<[u32; 4]> {
        rows.iter().map(|&[row, start, end]| [row, start, end, 0]).collect()
    }

    #[test]
    fn pieces_cover_their_row_and_begin_at_whole_vectors() {
        let table = records(&[[5, 3, 1003], [2, 1003, 1303], [0, 1303, 1403], [1, 0, 3]]);
        for length in [1, 3, 4, 100, 128, 299, 300, 999] {
            let Cut { records, cut } = cut(table.iter().map(|record| &record[..]), length);
            let whole = table.iter().filter(|record| (record[2] - record[1]) as usize <= length);
            assert_eq!(records.len(), cut.last().unwrap()[2] as usize + whole.clone().count());
            assert!(whole.clone().all(|row| records.contains(row)));
            let slots = cut.last().unwrap()[2] as usize;
            assert!(records[..slots].iter().all(|record| record[0] & PIECE != 0), "pieces come first");
            let mut slot = 0;
            for &[row, first, last, _] in &cut {
                assert_eq!(first, slot);
                let [_, mut at, end, _] = *table.iter().find(|record| record[0] == row).unwrap();
                for of_slot in first..last {
                    let of_piece = |record: &&[u32; 4]| record[0] == PIECE | of_slot;
                    let &[_, from, to, _] = records.iter().find(of_piece).unwrap();
                    assert_eq!(from, at, "length {length}");
                    assert!(to > from && (to - from) as usize <= length.next_multiple_of(4));
                    assert!(to == end || to % 4 == 0);
                    at = to;
                }
                assert_eq!(at, end);
                slot = last;
            }
        }
    }

    /// Pieces that run together are of the same part of their rows.
    #[test]
    fn pieces_of_all_rows_go_along_together() {
        let table = records(&[[5, 0, 800], [2, 800, 1200]]);
        let Cut { records, cut } = cut(table.iter().map(|record| &record[..]), 100);
        let slots: Vec<u32> = records.iter().map(|record| record[0] & !PIECE).collect();
        assert_eq!(slots, [0, 8, 1, 2, 9, 3, 4, 10, 5, 6, 11, 7]);
        assert_eq!(cut, [[5, 0, 8, 0], [2, 8, 12, 0]]);
    }

    #[test]
    fn of_lengths_that_cost_alike_the_shortest_is_taken() {
        let costs =
            |costs: [f64; 3]| shortest_of_cheapest(&[(32, costs[0]), (64, costs[1]), (128, costs[2])]);
        assert_eq!(costs([103.0, 100.5, 100.0]), Some((64, 100.5)));
        assert_eq!(costs([103.0, 102.0, 100.0]), Some((128, 100.0)));
        assert_eq!(shortest_of_cheapest(&[]), None);
    }

    /// A row of a hundred thousand nonzeros among a million short ones.
    fn skewed(longest: usize) -> Problem {
        let mut offsets: Vec<u32> = (0..100_000).map(|row| 10 * row).collect();
        offsets.push(offsets.last().unwrap() + longest as u32);
        let nnz = *offsets.last().unwrap() as usize;
        Problem {
            longest_row: longest,
            lengths: RowLengths::of(&offsets),
            ..Problem::new(offsets.len() - 1, 200_000, nnz, 64)
        }
    }

    #[test]
    fn far_longer_rows_are_cut_and_others_are_not() {
        let long = skewed(100_000);
        let best = choose(&long)[0];
        let length = long.piece_length(best.entry).unwrap();
        assert!((SHORTEST_PIECE..=25_000).contains(&length), "{length}");
        let whole = Problem { longest_piece: Some(usize::MAX), ..long };
        assert_eq!(whole.piece_length(best.entry), None);
        assert!(choose(&whole)[0].cost > 2.0 * best.cost);
        for even in [skewed(12), Problem::new(8192, 2048, 8192 * 500, 128)] {
            assert!(choose(&even).iter().all(|choice| even.piece_length(choice.entry).is_none()));
        }
        let asked = Problem { longest_piece: Some(7), ..skewed(12) };
        assert_eq!(asked.piece_length(best.entry), Some(7));
    }
}
