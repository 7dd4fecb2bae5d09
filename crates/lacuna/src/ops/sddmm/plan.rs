//! Plans: what is worked out once for a pattern and a length of products.
use std::iter;
use std::sync::Arc;

use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::Entry;
use lacuna_kernels::sddmm::{self as kernels, Args, ColumnPanelArgs, Tile, TileArgs};

use super::choose::{Choice, Problem, is_ordered};
use super::model::CostModel;
use super::panels::{PanelTiles, Panels};
use super::splits::{Splits, SumsOfSplits};
use super::subtiles::Tiles;
use super::transposed_b::TransposedB;
use super::{Algorithm, OPERATION, Options, Schedule};
use crate::op::{
    Layout, MAX_WIDTH, Selection, Turn, launch, spans, strides, tells_choice, tunes_selection, widest,
};
use crate::pattern::DevicePattern;
use crate::tune::{Tunable, drawn, row_class};
use crate::{Buffer, CsrMatrix, Device, Error, Index, Result, Slice, Stream, Value};

/// D = (A·Bᵀ) ⊙ I\[C\] for one pattern of C and D (M×N) and one K, with values of `T` and sums in f32.
///
/// A is M×K and B is N×K, row by row; without other [options](Options) there are no gaps, and one product. D has a value
/// for each nonzero of C: the product of A's row and B's row that meet there, or that times C's value
/// ([`run_scaled`](Sddmm::run_scaled)), rounded to `T` once. With K = 0 every product is +0. The same operands give the same
/// bits in every run, by the plan and the addresses' alignment. Values that are not finite flow as IEEE 754 says, and only
/// into the results of their rows.
///
/// Where [K is split](Sddmm::splits), the plan has the room for the sums of splits, and where B is given as K×N, for the transposed B:
/// runs of such a plan on several streams must be ordered.
///
/// ```
/// use lacuna::matrix::Csr;
/// use lacuna::{CsrMatrix, Device, Sddmm};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // [ x . ]     A = [ 1 2 ]     B = [ 5 6 ]
/// // [ x x ]         [ 3 4 ]         [ 7 8 ]
/// let c = Csr::new(2, 2, vec![0, 1, 3], vec![0, 0, 1], vec![0.0; 3])?;
/// let device = Device::simulator();
/// let stream = device.stream()?;
/// let mut d = CsrMatrix::new(&device, &c)?;
/// let a = device.upload(&[1.0, 2.0, 3.0, 4.0])?;
/// let b = device.upload(&[5.0, 6.0, 7.0, 8.0])?;
/// let plan = Sddmm::plan(&d, 2)?;
/// plan.run(&stream, a.as_slice(), b.as_slice(), &mut d)?;
/// assert_eq!(d.values()?.download(&stream)?, [17.0, 39.0, 53.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Sddmm<T: Value = f32, I: Index = u32> {
    pattern: Arc<DevicePattern<I>>,
    options: Options,
    k: usize,
    a: Layout,
    b: Layout,
    selection: Selection<Problem>,
    /// Room for B as the kernels read it, where it is given as K×N.
    transposed: Option<TransposedB<T>>,
    /// What each chosen kernel needs.
    prepared: Vec<Prepared>,
    sums: SumsOfSplits,
    /// For runs that use the room for B or the sums.
    turn: Turn,
}

/// What a kernel of a plan needs beside the pattern.
#[derive(Debug)]
struct Prepared {
    entry: &'static Entry<Tile>,
    splits: Splits,
    /// The pattern by panels, if it reads it so.
    panels: Option<PanelTiles>,
    /// The tiles of D, if it computes those.
    tiles: Option<Tiles>,
}

/// What a run works on.
#[derive(Debug)]
pub struct Operands<'o, T: Value = f32, I: Index = u32> {
    /// A: [`a_len`](Sddmm::a_len) elements.
    pub a: Slice<'o, T>,
    /// B: [`b_len`](Sddmm::b_len) elements.
    pub b: Slice<'o, T>,
    /// What scales the results: one matrix of the pattern that was planned for, or as many as the plan's batch.
    pub c: Option<&'o CsrMatrix<T, I>>,
    /// D: as many matrices of that pattern as the plan's batch. Their values are replaced.
    pub d: &'o mut CsrMatrix<T, I>,
}

impl<T: Value, I: Index> Sddmm<T, I> {
    /// A plan for the pattern of `c` and products of length `k`, as many as `c` has matrices.
    ///
    /// The first plan of a pattern that needs it makes what kernels read of it on the device, and waits for that: the row of
    /// each nonzero, a schedule of their tiles, and lists by subtiles. Where kernels go by column panels, each plan reads the pattern and
    /// has tiles of its own, at most 16 bytes for each nonzero. Where K is split, each plan has room for a sum of 4 bytes for each nonzero,
    /// split and product, 256 MiB at most; with [`splits(1)`](Options::splits) it has none.
    ///
    /// # Errors
    /// [`Error::TooLarge`] from a K of 2³⁰ on, or where no buffer can hold A or B; [`Error::OutOfMemory`], or what the
    /// driver says.
    pub fn plan(c: &CsrMatrix<T, I>, k: usize) -> Result<Self> {
        Self::plan_with(c, k, Options::default().batch(c.batch()))
    }

    /// As [`plan`](Sddmm::plan), with options.
    ///
    /// # Errors
    /// As `plan`, and [`Error::TooLarge`] for a stride of 4 GiB; [`Error::Parameter`] for strides below the elements of a
    /// row; [`Error::Illegal`] for an algorithm that cannot do this problem.
    pub fn plan_with(c: &CsrMatrix<T, I>, k: usize, options: Options) -> Result<Self> {
        Error::expect_at_most("K", MAX_WIDTH, k)?;
        let bytes = T::TYPE.bytes();
        let Options { batch, b_transposed, precision, splits, .. } = options;
        Error::expect(splits != Some(0), OPERATION, "the number of splits", || "at least 1", 0)?;
        let a = strides!(OPERATION, "A", "K", options.a_stride, batch, options.a_batch_stride);
        let a = Layout::new(c.rows(), k, bytes, a)?;
        let b_width = if b_transposed { "N" } else { "K" };
        let b = strides!(OPERATION, "B", b_width, options.b_stride, batch, options.b_batch_stride);
        let (b_rows, b_cols) = if b_transposed { (k, c.cols()) } else { (c.cols(), k) };
        let b = Layout::new(b_rows, b_cols, bytes, b)?;

        // A transposed B has rows without gaps.
        let b_allows = |vector| b_transposed || b.allows(vector);
        let problem_at = |vector| {
            let vector = widest(|allowed| allowed <= vector && a.allows(allowed) && b_allows(allowed));
            Problem { batch, precision, splits, ..Problem::of(c, k, vector) }
        };
        let selection = Selection::new(options.algorithm, bytes, problem_at).expect_some(|| {
            let whole = [options.a_stride, options.b_stride, options.a_batch_stride, options.b_batch_stride];
            format!("K = {k}{}", if whole == [None; 4] { "" } else { " and these strides" })
        })?;
        let batch = if b.batch_stride == 0 { batch.min(1) } else { batch };
        let transposed =
            b_transposed.then(|| TransposedB::new(c.device(), k, c.cols(), batch)).transpose()?;
        let pattern = Arc::clone(c.pattern());
        let sums = SumsOfSplits::new(c.device(), selection.problem(), iter::empty())?;
        let turn = Turn::default();
        Self { pattern, options, k, a, b, selection, transposed, prepared: vec![], sums, turn }.prepared()
    }

    /// This plan, once what its kernels need is there: lists by subtiles, or kernels without where they have no room; panels, or rows
    /// and a schedule; room for the sums of splits.
    fn prepared(mut self) -> Result<Self> {
        let has = |selection: &Selection<Problem>, is_it: fn(Algorithm) -> bool| {
            selection.iter().any(|choice| is_it(choice.algorithm))
        };
        let by_tiles = |choice: &Choice| {
            matches!(choice.algorithm, Algorithm::MmaTile { .. } | Algorithm::WgmmaTile { .. })
        };
        if self.pattern.nnz > 0 {
            self.selection.prepare(by_tiles, || self.pattern.subtiles())?;
        }
        let problem = self.selection.problem();
        self.prepared.clear();
        for &Choice { entry, algorithm, .. } in self.selection.iter() {
            if self.prepared.iter().any(|known| known.entry.name == entry.name) {
                continue;
            }
            let splits = problem
                .splits(CostModel::hopper(), entry)
                .expect("a kernel was chosen for splits that it can do");
            let by_panels = matches!(algorithm, Algorithm::ColumnPanel { .. });
            let panels = by_panels.then(|| {
                PanelTiles::new(&self.pattern, Panels::of(&problem.of_splits(splits)), self.options.schedule)
            });
            let tiles = match algorithm {
                Algorithm::MmaTile { rows, columns } | Algorithm::WgmmaTile { rows, columns } => {
                    Some(Tiles::new(&self.pattern, [rows, columns])?)
                }
                _ => None,
            };
            self.prepared.push(Prepared { entry, splits, panels: panels.transpose()?, tiles });
        }
        self.sums =
            SumsOfSplits::new(self.device(), problem, self.prepared.iter().map(|kernel| kernel.splits))?;
        if has(&self.selection, |algorithm| matches!(algorithm, Algorithm::NonzeroSplit { .. })) {
            self.pattern.row_indices()?;
            self.schedule()?;
        }
        Ok(self)
    }

    /// What this kernel needs.
    fn prepared_for(&self, entry: &Entry<Tile>) -> &Prepared {
        let found = self.prepared.iter().find(|kernel| kernel.entry.name == entry.name);
        found.expect("each chosen kernel is prepared")
    }

    /// Parts that K is split into, whose sums a second kernel adds up, by the kernel that [`choice`](Self::choice) tells: 1 if it is not split.
    pub fn splits(&self) -> usize {
        self.prepared_for(self.choice().entry).splits.count
    }

    /// The address of the tile schedule; 0 where tiles are taken as they stand.
    fn schedule(&self) -> Result<u64> {
        let is_ordered = match self.options.schedule {
            Schedule::Auto => is_ordered(self.selection.problem()),
            Schedule::Unsorted => false,
            Schedule::ByColumn => true,
        };
        if is_ordered { Ok(self.pattern.tile_schedule()?.as_slice().address()) } else { Ok(0) }
    }

    /// Elements that A must have, up to the last of the last row: M·K without gaps. The gap after it may be there too.
    pub fn a_len(&self) -> usize {
        self.a.len()
    }

    /// Elements that B must have, up to the last of the last row: N·K without gaps. The gap after it may be there too.
    pub fn b_len(&self) -> usize {
        self.b.len()
    }

    /// D = (A·Bᵀ) ⊙ I\[C\]: gives the product to the stream, and returns at once. See [`run_with`](Sddmm::run_with).
    ///
    /// # Errors
    /// As `run_with`.
    pub fn run(
        &self,
        stream: &Stream,
        a: Slice<'_, T>,
        b: Slice<'_, T>,
        d: &mut CsrMatrix<T, I>,
    ) -> Result<()> {
        self.run_with(stream, Operands { a, b, c: None, d })
    }

    /// D = (A·Bᵀ) ⊙ C: as [`run`](Sddmm::run), each product multiplied by the value of C, in `f32`, before it is rounded.
    ///
    /// # Errors
    /// As `run_with`.
    pub fn run_scaled(
        &self,
        stream: &Stream,
        a: Slice<'_, T>,
        b: Slice<'_, T>,
        c: &CsrMatrix<T, I>,
        d: &mut CsrMatrix<T, I>,
    ) -> Result<()> {
        self.run_with(stream, Operands { a, b, c: Some(c), d })
    }

    /// Gives the product to the stream, and returns at once. Work on other streams that uses the operands meanwhile must
    /// be ordered with this: see [`Stream`]. It can be recorded in a graph.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::OtherPattern`], [`Error::OtherDevice`], [`Error::Parameter`] (for the batch of C or D)
    /// for operands that do not fit; [`Error::Prepacked`] for a D whose values stay as they are; [`Error::Illegal`] where the
    /// algorithm asked for needs other alignment; [`Error::Launch`] or, on the simulator, its findings.
    pub fn run_with(&self, stream: &Stream, operands: Operands<'_, T, I>) -> Result<()> {
        self.check(stream, &operands)?;
        if self.pattern.nnz == 0 || self.options.batch == 0 {
            return Ok(());
        }
        let Operands { a, b, c, d } = operands;
        let (mut b_address, mut b_batch) = (b.address(), self.b.batch_stride);
        let mut b_stride_bytes = self.b.stride_bytes;
        let _turn = (self.transposed.is_some() || !self.sums.is_empty()).then(|| self.turn.take());
        if let Some(transposed) = &self.transposed {
            transposed.fill(stream, b, &self.b)?;
            (b_address, b_batch) = (transposed.address(), transposed.batch_stride());
            b_stride_bytes = self.k as u32 * T::TYPE.bytes();
        }
        let choice = self.selection.at(a.address() | b_address, "A and B are")?;
        let entry = choice.entry;
        let a_batch = self.a.batch_stride;
        let (scale, scale_batch) =
            c.map_or((0, 0), |c| (c.values_address(), if c.batch() == 1 { 0 } else { c.values_stride() }));
        let d_batch = d.values_stride();
        let d = GlobalMut::from_address(d.padded_values_mut(OPERATION)?.address());
        let Prepared { splits, panels, tiles, .. } = self.prepared_for(entry);
        let items = match (panels, tiles) {
            (Some(panels), _) => panels.count(),
            (_, Some(_)) => self.pattern.rows as u32,
            _ => self.pattern.nnz as u32,
        };
        let blocks = items.div_ceil(entry.tile.block_items);
        for batch in spans(self.options.batch, SumsOfSplits::products_at_once(*splits)) {
            let first = batch.start;
            let scale_offset = if scale == 0 { 0 } else { first * scale_batch };
            let operands = kernels::Operands::<T::Device> {
                scale: GlobalPtr::from_address(scale).add(scale_offset),
                a: a.pointer().add(first * a_batch),
                b: GlobalPtr::from_address(b_address).add(first * b_batch),
                d: d.add(first * d_batch),
                partial: self.sums.pointer(*splits),
                scale_batch: scale_batch as u64,
                a_batch: a_batch as u64,
                b_batch: b_batch as u64,
                d_batch: d_batch as u64,
                items,
                k: self.k as u32,
                splits: splits.count as u32,
                split_k: splits.k as u32,
                nonzeros: self.pattern.nnz as u32,
                a_stride_bytes: self.a.stride_bytes,
                b_stride_bytes,
            };
            let products = batch.len() as u32;
            let z = products * splits.count as u32;
            let columns = self.pattern.columns_pointer();
            match (panels, tiles) {
                (Some(panels), _) => {
                    let args = ColumnPanelArgs { table: panels.pointer(), columns, operands };
                    launch(stream, entry, [blocks, 1, z], &args)?;
                }
                (_, Some(Tiles { list, count })) => {
                    let subtiles = self.pattern.subtiles()?.pointers();
                    let (tiles, cols) = (list.as_slice().pointer(), self.pattern.cols as u32);
                    let args = TileArgs { tiles, subtiles, operands, cols, tile_count: *count };
                    // By warpgroups, blocks stay, and take tiles one after another.
                    let at_once = match choice.algorithm {
                        Algorithm::WgmmaTile { .. } => (self.device().info().multiprocessors / z).max(1),
                        _ => u32::MAX,
                    };
                    launch(stream, entry, [(*count).min(at_once), 1, z], &args)?;
                }
                _ => {
                    let rows = self.pattern.row_indices()?.as_slice().pointer();
                    let order = GlobalPtr::from_address(self.schedule()?);
                    launch(stream, entry, [blocks, 1, z], &Args { rows, columns, order, operands })?;
                }
            }
            if splits.count > 1 {
                self.sums.add_up::<T>(stream, operands, products)?;
            }
        }
        Ok(())
    }

    fn check(&self, stream: &Stream, operands: &Operands<'_, T, I>) -> Result<()> {
        let Operands { a, b, c, d } = operands;
        for matrix in [*c, Some(&**d)].into_iter().flatten() {
            if !Arc::ptr_eq(&self.pattern, matrix.pattern()) {
                return Err(Error::OtherPattern { operation: OPERATION });
            }
        }
        let device = d.device();
        device.expect_same(OPERATION, "the stream", stream.device())?;
        let (got, batch) = (d.batch(), self.options.batch);
        Error::expect(got == batch, OPERATION, "the batch of D", || format!("the plan's, {batch}"), got)?;
        let (got, expected) = (c.map_or(1, CsrMatrix::batch), || format!("1 or the plan's, {batch}"));
        Error::expect([1, batch].contains(&got), OPERATION, "the batch of C", expected, got)?;
        self.a.check("A", device, *a)?;
        self.b.check("B", device, *b)
    }
}

tells_choice!(Sddmm<T: Value, I: Index>);

impl<T: Value, I: Index> Tunable for Sddmm<T, I> {
    type Subject = CsrMatrix<T, I>;
    /// A, B and D.
    type Scratch = (Buffer<T>, Buffer<T>, CsrMatrix<T, I>);
    const NAME: &'static str = "sddmm";

    fn device(&self) -> &Device {
        self.pattern.row_table.device()
    }
    fn describe(&self, c: &CsrMatrix<T, I>) -> Option<String> {
        if !self.selection.is_auto() || self.pattern.nnz == 0 || self.options.batch == 0 {
            return None;
        }
        let Problem { rows, cols, nnz, k, vector, batch, value, index, precision, .. } =
            *self.selection.problem();
        let rows_class = row_class(c.stats());
        let Options { schedule, splits, a_batch_stride, b_batch_stride, .. } = self.options;
        let splits = splits.map_or_else(String::new, |splits| format!(", {splits} splits"));
        // All products may share one A or one B, which caches then hold.
        let is_shared = |stride: Option<usize>| batch > 1 && stride == Some(0);
        let one_a = if is_shared(a_batch_stride) { ", one A" } else { "" };
        let one_b = if is_shared(b_batch_stride) { ", one B" } else { "" };
        // Whether B is transposed first does not count: kernels read it as N×K all the same.
        Some(format!(
            "{value} {index} {precision:?} {rows}×{cols}, {nnz} nonzeros, {rows_class}, {schedule:?}; k {k}, vectors of {vector}, \
             batch {batch}{one_a}{one_b}{splits}"
        ))
    }
    tunes_selection!(prepared);
    fn with_candidate(&self, c: &CsrMatrix<T, I>, name: &str) -> Result<Self> {
        Self::plan_with(c, self.k, self.options.algorithm(self.selection.algorithm_of(name)))
    }
    fn scratch(&self, c: &CsrMatrix<T, I>) -> Result<Self::Scratch> {
        let device = self.device();
        Ok((drawn(device, self.a_len())?, drawn(device, self.b_len())?, c.with_zeros(self.options.batch)?))
    }
    fn run_on(&self, stream: &Stream, _c: &CsrMatrix<T, I>, (a, b, d): &mut Self::Scratch) -> Result<()> {
        self.run(stream, a.as_slice(), b.as_slice(), d)
    }
}
