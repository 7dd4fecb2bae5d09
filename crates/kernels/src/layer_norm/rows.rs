//! Tokens as rows: the features of a token lie beside each other.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu};

use super::moments::{Moments, Sums, plus, term};
use super::{CHUNK, Scale, Scheme, THREADS, Tile};
use crate::common::{
    RawVector, load_raw, load_raw_mut, reduce_row, row_shared_bytes, store_raw, unpack, word,
};
use crate::{Bounds, DeviceValue, Kernel, ValueType};

/// Layer normalisation of rows of `T`: `V` features a vector, `LANES` threads a row.
#[derive(Debug)]
pub struct LayerNormRows<T, const V: usize, const LANES: u32>(PhantomData<T>);

/// What [`LayerNormRows`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LayerNormRowsArgs<T> {
    /// x, with rows aligned to vectors. Read only; may be the result.
    pub input: GlobalMut<T>,
    /// The result likewise.
    pub out: GlobalMut<T>,
    /// A weight for each feature, aligned to vectors; address 0 where there is none.
    pub weight: GlobalPtr<T>,
    /// A bias for each feature likewise.
    pub bias: GlobalPtr<T>,
    /// Bytes from one row of x to the next.
    pub input_stride_bytes: u32,
    /// The same of the result.
    pub out_stride_bytes: u32,
    /// The first row of this launch.
    pub first_row: u32,
    /// Row after the last of this launch; below 2³² less a block's rows.
    pub end_row: u32,
    /// Features: at least 1, whole vectors, below 2³⁰.
    pub features: u32,
    /// What sums become moments by.
    pub scale: Scale,
}

impl<T: DeviceValue, const V: usize, const LANES: u32> Kernel for LayerNormRows<T, V, LANES> {
    type Args = LayerNormRowsArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(V == 1 || V * size_of::<T>() == 16, "a thread loads 16 bytes at once, or an element");
        assert!(LANES == 32 || LANES == THREADS, "a warp or a block shares a row");
        let scheme = Scheme::Rows { lanes: LANES };
        Tile { value: T::TYPE, scheme, vector: V as u32, block_tokens: THREADS / LANES }
    };
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = row_shared_bytes(LANES, 3);
    /// 48 warps a multiprocessor, with up to 42 registers a thread, of which vectors that are under way take 16.
    const BOUNDS: Bounds = Bounds { max_threads: THREADS, min_blocks: 6 };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: LayerNormRowsArgs<T>) {
        let thread = gpu.thread_idx_x();
        let index = args.first_row + gpu.block_idx_x() * Self::TILE.block_tokens + thread / LANES;
        if index >= args.end_row {
            return;
        }
        let row = Row::<T, V, LANES> { args, index, lane: thread % LANES };
        // SAFETY: the row is there, and all its lanes come here; each has vectors of its own.
        unsafe {
            let add = |a: f32, b: f32| a + b;
            let [sum, _] = row.sums(gpu, 0.0);
            let mean = reduce_row::<G, LANES>(gpu, 0, sum, add) * args.scale.inverse;
            let [sum, squares] = row.sums(gpu, mean);
            let sums =
                [reduce_row::<G, LANES>(gpu, 1, sum, add), reduce_row::<G, LANES>(gpu, 2, squares, add)];
            row.write(gpu, &Moments::new(gpu, mean, sums, args.scale));
        }
    }
}

/// What a lane knows of its row.
struct Row<T, const V: usize, const LANES: u32> {
    args: LayerNormRowsArgs<T>,
    index: u32,
    lane: u32,
}

impl<T: DeviceValue, const V: usize, const LANES: u32> Row<T, V, LANES> {
    /// Whether a word has two numbers.
    const PAIRS: bool = V > 1 && size_of::<T>() == 2;
    /// 1 and −0 in each element, for an absent weight and bias: they change no number, not even −0.
    const ONE: RawVector = match T::TYPE {
        ValueType::F32 => [0x3f80_0000; 4],
        ValueType::F16 => [0x3c00_3c00; 4],
        ValueType::Bf16 => [0x3f80_3f80; 4],
    };
    const NEGATIVE_ZERO: RawVector = [if size_of::<T>() == 4 { 0x8000_0000 } else { 0x8000_8000 }; 4];

    /// The sums over the lane's numbers, less `shift`.
    ///
    /// # Safety
    /// The row is there, and no other lanes write these vectors.
    #[inline(always)]
    unsafe fn sums<G: Gpu>(&self, gpu: G, shift: f32) -> Sums {
        let row = self.args.input.add_rows(self.index, self.args.input_stride_bytes);
        let vectors = self.args.features / V as u32;
        let (mut first, mut sums) = (self.lane, [0.0; 2]);
        while first < vectors {
            let mut raw = [RawVector::default(); CHUNK];
            for (i, raw) in raw.iter_mut().enumerate() {
                let vector = first + i as u32 * LANES;
                if vector < vectors {
                    // SAFETY: as promised by the caller.
                    *raw = unsafe { load_raw_mut::<G, T, V>(gpu, row.add(vector as usize * V)) };
                }
            }
            for (i, raw) in raw.iter().enumerate() {
                if first + (i as u32 * LANES) < vectors {
                    sums = plus(sums, Self::of_vector(gpu, raw, shift));
                }
            }
            first += CHUNK as u32 * LANES;
        }
        sums
    }

    /// The sums over a vector, word by word: an array of its numbers might come to lie in local memory.
    #[inline(always)]
    fn of_vector<G: Gpu>(gpu: G, raw: &RawVector, shift: f32) -> Sums {
        let of = |word: u32| {
            let [a, b] = unpack::<G, T, 2>(gpu, &[word, 0, 0, 0]);
            let first = term(a - shift);
            if Self::PAIRS { plus(first, term(b - shift)) } else { first }
        };
        if V == 1 {
            return of(raw[0]);
        }
        plus(plus(of(raw[0]), of(raw[1])), plus(of(raw[2]), of(raw[3])))
    }

    /// Computes and writes the lane's part of the result.
    ///
    /// # Safety
    /// The row is there, and no other lanes read or write these vectors.
    #[inline(always)]
    unsafe fn write<G: Gpu>(&self, gpu: G, moments: &Moments) {
        let args = &self.args;
        let row = args.input.add_rows(self.index, args.input_stride_bytes);
        let out = args.out.add_rows(self.index, args.out_stride_bytes);
        let vectors = args.features / V as u32;
        let mut vector = self.lane;
        while vector < vectors {
            let at = vector as usize * V;
            let (mut weight, mut bias) = (Self::ONE, Self::NEGATIVE_ZERO);
            // SAFETY: the vector is there; what has address 0 is not read. Nobody writes weight and bias.
            unsafe {
                let x = load_raw_mut::<G, T, V>(gpu, row.add(at));
                if args.weight.address() != 0 {
                    weight = load_raw::<G, T, V>(gpu, args.weight.add(at));
                }
                if args.bias.address() != 0 {
                    bias = load_raw::<G, T, V>(gpu, args.bias.add(at));
                }
                let result = |i: usize| Self::of_word(gpu, moments, [x[i], weight[i], bias[i]]);
                store_raw::<G, T, V>(gpu, out.add(at), [result(0), result(1), result(2), result(3)]);
            }
            vector += LANES;
        }
    }

    /// The word of the result that words of x, weight and bias make: of an `f32`, or of two numbers, of which a single element is
    /// the first.
    #[inline(always)]
    fn of_word<G: Gpu>(gpu: G, moments: &Moments, words: [u32; 3]) -> u32 {
        let of = |word| unpack::<G, T, 2>(gpu, &[word, 0, 0, 0]);
        let (x, weight, bias) = (of(words[0]), of(words[1]), of(words[2]));
        let element = |i: usize| T::from_f32(gpu, moments.of(gpu, x[i], weight[i], bias[i]));
        word([element(0), if Self::PAIRS { element(1) } else { T::default() }])
    }
}
