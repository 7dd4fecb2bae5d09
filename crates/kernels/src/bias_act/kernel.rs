//! The kernel; mod.rs draws its tile.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, Real};

use super::{Activation, THREADS, Tile, tile};
use crate::common::{Words, load_words, round, unpack};
use crate::{Bounds, DeviceValue, Kernel};

/// out = act(x + bias + residual) of matrices of `T`: `V` elements a vector, `LANES` threads a row of a block, `ROWS` vectors a
/// thread.
#[derive(Debug)]
pub struct BiasAct<T, const V: usize, const LANES: u32, const ROWS: usize>(PhantomData<T>);

/// What [`BiasAct`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BiasActArgs<T> {
    /// x, with rows aligned to vectors. Read only; may be the result.
    pub input: GlobalMut<T>,
    /// The result likewise.
    pub out: GlobalMut<T>,
    /// The residual likewise; address 0 where there is none.
    pub residual: GlobalPtr<T>,
    /// The bias; address 0 where there is none. One per column is aligned to vectors.
    pub bias: GlobalPtr<T>,
    /// Elements of a bias that row `i` has the element `i` modulo this of; 0 for a bias that each column has an element of.
    pub bias_rows: u32,
    /// Bytes from one row of x to the next.
    pub input_stride_bytes: u32,
    /// The same of the result.
    pub out_stride_bytes: u32,
    /// The same of the residual.
    pub residual_stride_bytes: u32,
    /// The first row of this launch.
    pub first_row: u32,
    /// Row after the last of this launch; below 2³² less a block's rows.
    pub end_row: u32,
    /// Columns; a multiple of a vector.
    pub columns: u32,
    /// Parts into which a block's columns cut them (not 0).
    pub parts: u32,
    /// What is made of sums.
    pub activation: Activation,
}

impl<T: DeviceValue, const V: usize, const LANES: u32, const ROWS: usize> Kernel
    for BiasAct<T, V, LANES, ROWS>
{
    type Args = BiasActArgs<T>;
    type Tile = Tile;

    const TILE: Tile = tile::<T>(V, LANES, ROWS);
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = 0;
    /// 32 warps a multiprocessor, with 64 registers a thread, of which vectors that are under way take 32.
    const BOUNDS: Bounds = Bounds { max_threads: THREADS, min_blocks: 4 };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: BiasActArgs<T>) {
        let (block, thread) = (gpu.block_idx_x(), gpu.thread_idx_x());
        let column = block % args.parts * Self::TILE.block_columns + thread % LANES * V as u32;
        if column >= args.columns {
            return;
        }
        let first = args.first_row + block / args.parts * Self::TILE.block_rows + thread / LANES;
        let share = Share::<T, V, LANES, ROWS> { args, first, column };
        // SAFETY: the column is the first of a vector, since columns are whole vectors.
        unsafe { share.run(gpu) };
    }
}

/// What a thread has: a vector of each of its rows.
struct Share<T, const V: usize, const LANES: u32, const ROWS: usize> {
    args: BiasActArgs<T>,
    first: u32,
    column: u32,
}

impl<T: DeviceValue, const V: usize, const LANES: u32, const ROWS: usize> Share<T, V, LANES, ROWS> {
    /// The thread's `i`-th row, where it is there.
    #[inline(always)]
    fn row(&self, i: usize) -> Option<u32> {
        let row = self.first + i as u32 * (THREADS / LANES);
        (row < self.args.end_row).then_some(row)
    }

    /// # Safety
    /// There are the columns of the vector.
    #[inline(always)]
    unsafe fn run<G: Gpu>(&self, gpu: G) {
        const { assert!(ROWS == 4, "rows are written out below") }
        // SAFETY: as promised by the caller; each row is this thread's alone.
        unsafe {
            let loaded = self.load(gpu);
            // LLVM does not unroll a loop of so much code, and registers cannot be indexed.
            self.finish(gpu, 0, &loaded);
            self.finish(gpu, 1, &loaded);
            self.finish(gpu, 2, &loaded);
            self.finish(gpu, 3, &loaded);
        }
    }

    /// Asks for all that the thread reads.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    #[inline(always)]
    unsafe fn load<G: Gpu>(&self, gpu: G) -> Loaded<T, V, ROWS> {
        let args = &self.args;
        let at = self.column as usize;
        let (has_bias, by_row) = (args.bias.address() != 0, args.bias_rows != 0);
        let mut loaded = Loaded {
            inputs: [Words::default(); ROWS],
            residuals: [Words::default(); ROWS],
            row_bias: [T::default(); ROWS],
            column_bias: [0.0; V],
        };
        // SAFETY: the rows are there, and these columns; what has address 0 is not read. Nobody writes residual and bias.
        unsafe {
            for i in 0..ROWS {
                if let Some(row) = self.row(i) {
                    let from = args.input.add_rows(row, args.input_stride_bytes).add(at);
                    loaded.inputs[i] = load::<G, T, V>(gpu, from);
                    if args.residual.address() != 0 {
                        let from = args.residual.add_rows(row, args.residual_stride_bytes).add(at);
                        loaded.residuals[i] = load_words::<G, T, V>(gpu, from);
                    }
                    if has_bias && by_row {
                        [loaded.row_bias[i]] =
                            gpu.load_readonly(args.bias.add((row % args.bias_rows) as usize));
                    }
                }
            }
            if has_bias && !by_row {
                let words = load_words::<G, T, V>(gpu, args.bias.add(at));
                unpack::<G, T, V>(gpu, &words, &mut loaded.column_bias);
            }
        }
        loaded
    }

    /// Computes and writes the thread's `i`-th vector.
    ///
    /// # Safety
    /// As for [`run`](Self::run); the vector is no other thread's.
    #[inline(always)]
    unsafe fn finish<G: Gpu>(&self, gpu: G, i: usize, loaded: &Loaded<T, V, ROWS>) {
        let args = &self.args;
        let Some(row) = self.row(i) else { return };
        let mut sums = [0.0; V];
        unpack::<G, T, V>(gpu, &loaded.inputs[i], &mut sums);
        if args.bias.address() != 0 {
            let of_row = loaded.row_bias[i].to_f32(gpu);
            for (sum, &of_column) in sums.iter_mut().zip(&loaded.column_bias) {
                *sum += if args.bias_rows != 0 { of_row } else { of_column };
            }
        }
        if args.residual.address() != 0 {
            let mut residual = [0.0; V];
            unpack::<G, T, V>(gpu, &loaded.residuals[i], &mut residual);
            for (sum, residual) in sums.iter_mut().zip(residual) {
                *sum += residual;
            }
        }
        args.activation.apply(gpu, &mut sums);
        let mut rounded = [T::default(); V];
        round(gpu, &sums, |sum| sum, &mut rounded);
        let to = args.out.add_rows(row, args.out_stride_bytes).add(self.column as usize);
        // SAFETY: the row and its columns are there, and are this thread's alone, which has read what it needs of them.
        unsafe { gpu.store(to, rounded) };
    }
}

/// What a thread has read.
struct Loaded<T, const V: usize, const ROWS: usize> {
    inputs: [Words; ROWS],
    residuals: [Words; ROWS],
    /// The bias of each row, or of each column; zeros where there is none.
    row_bias: [T; ROWS],
    column_bias: [f32; V],
}

/// Loads `V` elements, 16 bytes or one, of memory that the launch writes.
///
/// # Safety
/// They are live and initialised, and the address is a multiple of their size together.
#[inline(always)]
unsafe fn load<G: Gpu, T: Real, const V: usize>(gpu: G, from: GlobalMut<T>) -> Words {
    let address = from.address();
    // SAFETY: as promised by the caller.
    unsafe {
        match V * size_of::<T>() {
            16 => gpu.load(GlobalMut::<u32>::from_address(address)),
            4 => {
                let [word] = gpu.load(GlobalMut::<u32>::from_address(address));
                [word, 0, 0, 0]
            }
            _ => {
                let [half] = gpu.load(GlobalMut::<u16>::from_address(address));
                [u32::from(half), 0, 0, 0]
            }
        }
    }
}
