//! The kernel; mod.rs draws its tile.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu};

use super::{Activation, Tile};
use crate::common::{RawVector, load_raw, load_raw_mut, store_raw, unpack, word};
use crate::{Bounds, DeviceValue, Kernel};

/// Threads of a block.
const THREADS: u32 = 256;
/// Rows of which a thread has a vector each.
const ROWS: u32 = 2;

/// out = act(x + bias + residual) of matrices of `T`: `V` elements a vector, `LANES` threads a row of a block.
#[derive(Debug)]
pub struct BiasAct<T, const V: usize, const LANES: u32>(PhantomData<T>);

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

impl<T: DeviceValue, const V: usize, const LANES: u32> Kernel for BiasAct<T, V, LANES> {
    type Args = BiasActArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(V == 1 || V * size_of::<T>() == 16, "a thread loads 16 bytes at once, or an element");
        assert!(LANES.is_power_of_two() && LANES <= THREADS, "the lanes of a row are threads of a block");
        Tile {
            value: T::TYPE,
            vector: V as u32,
            lanes: LANES,
            block_rows: THREADS / LANES * ROWS,
            block_columns: LANES * V as u32,
        }
    };
    const THREADS: u32 = THREADS;
    /// 48 warps a multiprocessor, with up to 42 registers a thread, of which vectors that are under way take 20.
    const BOUNDS: Bounds = Bounds { max_threads: THREADS, min_blocks: 6 };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: BiasActArgs<T>) {
        const { assert!(ROWS == 2, "two rows are written out below") }
        let (block, thread) = (gpu.block_idx_x(), gpu.thread_idx_x());
        let column = block % args.parts * Self::TILE.block_columns + thread % LANES * V as u32;
        if column >= args.columns {
            return;
        }
        let row = args.first_row + block / args.parts * Self::TILE.block_rows + thread / LANES;
        let share = Columns::<T, V> { args, column: column as usize };
        // SAFETY: the column is the first of a vector, since columns are whole vectors. Each row is this thread's alone.
        unsafe {
            let bias = share.bias(gpu);
            let first = share.load(gpu, row, bias);
            let second = share.load(gpu, row + THREADS / LANES, bias);
            if args.activation.is_gelu != 0 {
                share.finish::<G, true>(gpu, &first);
                share.finish::<G, true>(gpu, &second);
            } else {
                share.finish::<G, false>(gpu, &first);
                share.finish::<G, false>(gpu, &second);
            }
        }
    }
}

/// The columns of a thread: a vector.
struct Columns<T, const V: usize> {
    args: BiasActArgs<T>,
    column: usize,
}

/// What is added up for a row's vector, as words of memory.
struct Terms {
    row: u32,
    x: RawVector,
    bias: RawVector,
    residual: RawVector,
}

impl<T: DeviceValue, const V: usize> Columns<T, V> {
    /// −0 in each element, for an absent term: to add it changes no number, not even −0.
    const NEGATIVE_ZERO: RawVector = [if size_of::<T>() == 4 { 0x8000_0000 } else { 0x8000_8000 }; 4];

    /// The bias of the columns, where each has one.
    ///
    /// # Safety
    /// There are the columns of the vector.
    #[inline(always)]
    unsafe fn bias<G: Gpu>(&self, gpu: G) -> RawVector {
        let BiasActArgs { bias, bias_rows, .. } = self.args;
        if bias.address() == 0 || bias_rows != 0 {
            return Self::NEGATIVE_ZERO;
        }
        // SAFETY: as promised by the caller; nobody writes the bias.
        unsafe { load_raw::<G, T, V>(gpu, bias.add(self.column)) }
    }

    /// Asks for all that a row's vector is made of. `bias` is that of the columns.
    ///
    /// # Safety
    /// There are the columns of the vector.
    #[inline(always)]
    unsafe fn load<G: Gpu>(&self, gpu: G, row: u32, bias: RawVector) -> Terms {
        let args = &self.args;
        let mut terms = Terms { row, x: Self::NEGATIVE_ZERO, bias, residual: Self::NEGATIVE_ZERO };
        if row >= args.end_row {
            return terms;
        }
        // SAFETY: the row is there, and these columns; what has address 0 is not read. Nobody writes residual and bias.
        unsafe {
            let x = args.input.add_rows(row, args.input_stride_bytes).add(self.column);
            terms.x = load_raw_mut::<G, T, V>(gpu, x);
            if args.residual.address() != 0 {
                let residual = args.residual.add_rows(row, args.residual_stride_bytes).add(self.column);
                terms.residual = load_raw::<G, T, V>(gpu, residual);
            }
            if args.bias.address() != 0 && args.bias_rows != 0 {
                let [bias] = gpu.load_readonly(args.bias.add((row % args.bias_rows) as usize));
                terms.bias = [word([bias; 2]); 4];
            }
        }
        terms
    }

    /// Computes and writes a row's vector.
    ///
    /// # Safety
    /// There are the columns of the vector, which is no other thread's.
    #[inline(always)]
    unsafe fn finish<G: Gpu, const GELU: bool>(&self, gpu: G, terms: &Terms) {
        let args = &self.args;
        if terms.row >= args.end_row {
            return;
        }
        let result = |i: usize| self.result::<G, GELU>(gpu, [terms.x[i], terms.bias[i], terms.residual[i]]);
        let to = args.out.add_rows(terms.row, args.out_stride_bytes).add(self.column);
        // SAFETY: the row and its columns are there, and are this thread's alone, which has read what it needs of them.
        unsafe { store_raw::<G, T, V>(gpu, to, [result(0), result(1), result(2), result(3)]) };
    }

    /// The word of the result that three words make: of an `f32`, or of two numbers, of which a single element is the first.
    #[inline(always)]
    fn result<G: Gpu, const GELU: bool>(&self, gpu: G, terms: [u32; 3]) -> u32 {
        let of = |word| unpack::<G, T, 2>(gpu, &[word, 0, 0, 0]);
        let (x, bias, residual) = (of(terms[0]), of(terms[1]), of(terms[2]));
        let element = |i: usize| {
            let sum = x[i] + bias[i] + residual[i];
            T::from_f32(gpu, self.args.activation.of::<G, GELU>(gpu, sum))
        };
        let has_second = V > 1 && size_of::<T>() == 2;
        word([element(0), if has_second { element(1) } else { T::default() }])
    }
}
