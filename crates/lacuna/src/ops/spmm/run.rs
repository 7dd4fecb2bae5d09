//! Runs: operands are checked, and launched in parts that a grid can hold.
use std::ops::Range;

use lacuna_gpu::{GlobalMut, GlobalPtr, Tensor, TensorMap};
use lacuna_kernels::spmm::{Args, BoxArgs, ExtremumArgs, Output, Partial, Scheme, Tile, TileArgs};
use lacuna_kernels::{Entry, entries};

use super::choose::{is_by_tiles, is_prepacked};
use super::grid::{Extent, is_hybrid, prefetched_rows, resident_blocks, subwarp_share};
use super::pieces::Pieces;
use super::prepacked::Packs;
use super::{OPERATION, Operands, Reduce, Spmm};
use crate::op::{MAX_GRID_YZ, launch, spans};
use crate::pattern::RowOrder;
use crate::{CsrMatrix, Error, Index, Result, Slice, SliceMut, Stream, Value};

/// All rows are whole.
const NO_PIECES: Partial =
    Partial { values: GlobalMut::from_address(0), winners: GlobalMut::from_address(0), stride: 0 };

impl<T: Value, I: Index> Spmm<T, I> {
    /// As [`run_with`](Spmm::run_with), without a bias.
    ///
    /// # Errors
    /// As `run_with`.
    pub fn run(
        &self,
        stream: &Stream,
        a: &CsrMatrix<T, I>,
        b: Slice<'_, T>,
        c: SliceMut<'_, T>,
    ) -> Result<()> {
        self.run_with(stream, Operands { a, b, c, bias: None })
    }

    /// Gives the product to the stream, and returns at once. Work on other streams that uses the operands meanwhile must
    /// be ordered with this: see [`Stream`].
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::OtherPattern`], [`Error::NotPrepacked`], [`Error::OtherDevice`], [`Error::Parameter`] (for A's
    /// batch) for operands that do not fit; [`Error::Illegal`] where the algorithm asked for needs other alignment;
    /// [`Error::Launch`] or, on the simulator, its findings.
    pub fn run_with(&self, stream: &Stream, operands: Operands<'_, T, I>) -> Result<()> {
        self.launch(stream, operands, None)
    }

    /// As [`run_with`](Spmm::run_with) for [`Reduce::Max`] and [`Reduce::Min`], and writes for each element of C which nonzero's
    /// product it is before the epilogue: its index among A's nonzeros, row by row. Of equal products the first wins, and the
    /// first NaN if there are some. In a row without nonzeros it is [`NO_WINNER`](super::NO_WINNER). `winners` is M×N for each
    /// product of the batch, without gaps, [`winners_len`](Spmm::winners_len) elements.
    ///
    /// [`values_gradient`](Spmm::values_gradient) and [`b_gradient`](Spmm::b_gradient) take the winners.
    ///
    /// # Errors
    /// As `run_with`, also for the winners, which must be aligned as C is; [`Error::Parameter`] for another reduction.
    pub fn run_with_winners(
        &self,
        stream: &Stream,
        operands: Operands<'_, T, I>,
        winners: SliceMut<'_, u32>,
    ) -> Result<()> {
        self.check_winners(winners.as_slice())?;
        self.launch(stream, operands, Some(winners))
    }

    /// Elements that winners must have: M·N for each product of the batch.
    pub fn winners_len(&self) -> usize {
        self.pattern.rows * self.n * self.options.batch
    }

    /// Whether the reduction has winners, and these are as many as there must be.
    pub(super) fn check_winners(&self, winners: Slice<'_, u32>) -> Result<()> {
        let reduce = self.options.reduce;
        let expected = || "Max or Min, which have winners";
        let got = format_args!("{reduce:?}");
        Error::expect(reduce.is_extremum(), OPERATION, "the reduction", expected, got)?;
        let shape = || format!("{}×{}, {} of them", self.pattern.rows, self.n, self.options.batch);
        let device = self.pattern.row_table.device();
        device.expect_operand(OPERATION, "the winners", winners, shape, self.winners_len())
    }

    /// What sums of rows are multiplied with: address 0 where they are not.
    pub(super) fn row_scale(&self) -> Result<GlobalPtr<f32>> {
        match self.options.reduce {
            Reduce::Mean => self.pattern.inverse_lengths(),
            _ => Ok(GlobalPtr::from_address(0)),
        }
    }

    fn launch(
        &self,
        stream: &Stream,
        operands: Operands<'_, T, I>,
        winners: Option<SliceMut<'_, u32>>,
    ) -> Result<()> {
        self.check(stream, &operands)?;
        if self.output_len() == 0 {
            return Ok(());
        }
        let Operands { a, b, c, bias } = operands;
        // A winner is no shorter than a value: its vectors want no more of an address in elements.
        let winners = winners.map_or(0, |winners| winners.address());
        let choice = self.selection.at(b.address() | c.address() | winners, "B and C are")?;
        let tile = &choice.entry.tile;
        let none = GlobalPtr::<T::Device>::from_address(0);
        let bias = bias.map_or(none, |bias| bias.pointer());
        let (b, values) = (b.pointer(), GlobalPtr::from_address(a.values_address()));
        let output = self.options.output(c.pointer(), &self.c, bias, self.row_scale()?);
        let values_batch = self.values_batch(a);
        let packs = match (is_prepacked(tile), a.packs()) {
            (false, _) => None,
            (true, None) => return Err(Error::NotPrepacked { operation: OPERATION }),
            (true, packs) => packs,
        };
        let masks = if is_by_tiles(tile) { Some(self.pattern.bitmasks()?) } else { None };
        let resident = resident_blocks(choice.entry.bounds, a.device().info().multiprocessors);
        let pieces = self.pieces_for(choice.entry.name);
        let (row_table, rows) =
            pieces.map_or((self.pattern.row_table_pointer(), self.pattern.rows), Pieces::table);
        let _turn = pieces.map(|pieces| pieces.turn.take());
        let most_products = if pieces.is_some() { 1 } else { usize::MAX };
        for (products, columns) in self.parts(tile.block_columns, values_batch, most_products) {
            let [n, count] = [columns.len(), products.len()];
            let extent = Extent { rows: rows as u64, columns: n as u64, products: count as u64 };
            let grid = extent.grid(tile, resident);
            let values = values.add(products.start * values_batch as usize);
            let b = b.add(products.start * self.b.batch_stride + columns.start);
            let c = output.c.add(products.start * self.c.batch_stride + columns.start);
            let (output, n, rows) = (Output { c, ..output }, n as u32, rows as u32);
            let (b_batch, b_stride_bytes) = (self.b.batch_stride as u64, self.b.stride_bytes);
            if let Some(masks) = masks {
                let (masks, places) = masks.pointers();
                let none = (GlobalPtr::from_address(0), GlobalPtr::from_address(0));
                let (units, packs) = packs.map_or(none, Packs::pointers);
                let cols = self.pattern.cols as u32;
                let args = TileArgs {
                    masks,
                    values,
                    places,
                    units,
                    packs,
                    b,
                    b_batch,
                    output,
                    rows,
                    cols,
                    n,
                    b_stride_bytes,
                    values_batch,
                };
                match self.map_of_b(tile, &args, count)? {
                    Some(map) => launch(stream, choice.entry, grid, &BoxArgs { map, tile: args })?,
                    None => launch(stream, choice.entry, grid, &args)?,
                }
                continue;
            }
            let blocks = extent.sharing_blocks(tile, resident);
            let args = Args {
                row_table,
                values,
                columns: self.pattern.columns_pointer(),
                b,
                b_batch,
                output,
                partial: pieces.map_or(NO_PIECES, Pieces::partial),
                rows,
                long_rows: self.long_rows(tile, blocks),
                ahead_rows: prefetched_rows(tile, blocks, self.pattern.cols as u64, self.pattern.nnz as u64)
                    as u32,
                n,
                b_stride_bytes,
                values_batch,
            };
            let first = products.start * self.pattern.rows * self.n + columns.start;
            let winners = if winners == 0 { 0 } else { winners + (first * size_of::<u32>()) as u64 };
            let args = ExtremumArgs {
                product: args,
                winners: GlobalMut::from_address(winners),
                winners_batch: (self.pattern.rows * self.n) as u64,
                winners_stride: self.n as u32,
                is_least: u32::from(self.options.reduce == Reduce::Min),
            };
            let is_extremum = matches!(tile.scheme, Scheme::Extremum { .. });
            match (is_extremum, winners) {
                (false, _) => launch(stream, choice.entry, grid, &args.product)?,
                (true, 0) => launch(stream, choice.entry, grid, &args)?,
                (true, _) => launch(stream, with_winners(choice.entry), grid, &args)?,
            }
            if let Some(pieces) = pieces {
                pieces.join::<T, I>(stream, &args, is_extremum)?;
            }
        }
        Ok(())
    }

    /// The tensor map of a launch's B for `count` products, where the kernel copies by one.
    fn map_of_b(&self, tile: &Tile, args: &TileArgs<T::Device>, count: usize) -> Result<Option<TensorMap>> {
        let Some(box_dim) = tile.box_dim() else { return Ok(None) };
        // A B without rows may lie nowhere, and nothing of it is copied; C lies somewhere.
        let address = if args.cols == 0 { args.output.c.address() } else { args.b.address() };
        // One B for all products is one matrix, whatever its stride.
        let is_one = count == 1 || args.b_batch == 0;
        let row_bytes = u64::from(args.b_stride_bytes);
        let tensor = Tensor {
            address,
            extent: [args.n, args.cols.max(1), if is_one { 1 } else { count as u32 }],
            stride_bytes: [row_bytes, if is_one { row_bytes } else { args.b_batch * size_of::<T>() as u64 }],
            box_dim,
        };
        self.pattern.row_table.device().backend().tensor_map(&tensor).map(Some)
    }

    /// Rows at the head of the table that are long for a kernel of which `blocks` thread blocks share a tile of columns.
    fn long_rows(&self, tile: &Tile, blocks: u64) -> u32 {
        let pattern = &self.pattern;
        if !is_hybrid(tile) || pattern.row_order != RowOrder::LongestFirst {
            return pattern.rows as u32;
        }
        pattern.lengths.longer(subwarp_share(tile, blocks, pattern.nnz as u64))
    }

    /// Elements from the values of one matrix of the batch to the next; 0 where all products have one.
    pub(super) fn values_batch(&self, a: &CsrMatrix<T, I>) -> u32 {
        if a.batch() == 1 { 0 } else { a.values_stride() as u32 }
    }

    /// What one launch can do, for tiles of so many columns: products of the batch, as many at most, and columns of each.
    pub(super) fn parts(
        &self,
        tile_columns: u32,
        values_batch: u32,
        most_products: usize,
    ) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let launch_columns = MAX_GRID_YZ * tile_columns as usize;
        // A launch counts the values of its products in 32 bits.
        let countable = u32::MAX.checked_div(values_batch).map_or(usize::MAX, |count| count as usize);
        let most_products = most_products.min(MAX_GRID_YZ).min(countable);
        spans(self.options.batch, most_products).flat_map(move |products| {
            spans(self.n, launch_columns).map(move |columns| (products.clone(), columns))
        })
    }
}

/// The kernel that also tells winners, in place of this one.
fn with_winners(entry: &Entry<Tile>) -> &'static Entry<Tile> {
    let tile = match entry.tile.scheme {
        Scheme::Extremum { lanes, split, .. } => {
            Tile { scheme: Scheme::Extremum { lanes, split, winners: true }, ..entry.tile }
        }
        _ => entry.tile,
    };
    let found = entries::spmm().iter().find(|other| other.tile == tile && other.threads == entry.threads);
    found.expect("a test looks for each")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_of_extrema_has_one_that_tells_winners() {
        let of = |wanted| {
            entries::spmm().iter().filter(move |entry| {
                matches!(entry.tile.scheme, Scheme::Extremum { winners, .. } if winners == wanted)
            })
        };
        assert!(of(false).count() > 10 && of(false).count() == of(true).count());
        for entry in of(false) {
            assert_eq!(with_winners(entry).name, format!("{}_winners", entry.name));
        }
    }
}
