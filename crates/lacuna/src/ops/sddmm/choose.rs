//! Which SDDMM kernel suits a problem: a pure function, so that it can be tested and printed without a GPU.
use lacuna_kernels::Arithmetic;
use lacuna_kernels::sddmm::{Scheme, Tile};
use lacuna_kernels::{Entry, IndexType, ValueType, entries};

use super::OPERATION;
use super::model::CostModel;
use super::subtiles;
use crate::op;
use crate::{CsrMatrix, Index, Precision, Value};

/// The problem shape: all that the heuristic sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Rows of C.
    pub rows: usize,
    /// Columns of C.
    pub cols: usize,
    /// Nonzeros of C.
    pub nnz: usize,
    /// Nonzeros of its longest row.
    pub longest_row: usize,
    /// Columns of A and B.
    pub k: usize,
    /// Elements that A's and B's addresses and strides allow to load at once (1, 2, 4 or 8). Whole buffers without gaps
    /// allow what K does.
    pub vector: u32,
    /// Products in one run.
    pub batch: usize,
    /// Parts that K is split into, if not the library's choice.
    pub splits: Option<usize>,
    /// Type of the values.
    pub value: ValueType,
    /// Type of C's column indices.
    pub index: IndexType,
    /// How exactly it is to be computed.
    pub precision: Precision,
    /// Streaming multiprocessors of the GPU.
    pub multiprocessors: u32,
    /// The most bytes of shared memory that a block may have there.
    pub block_shared_bytes: u32,
    /// The GPU's compute capability, 90 for 9.0.
    pub sm: u32,
}

impl Problem {
    /// One product of `f32` on an H200, with rows of C that are all about as long, and of buffers whose alignment is no limit.
    pub fn new(rows: usize, cols: usize, nnz: usize, k: usize) -> Self {
        Self {
            rows,
            cols,
            nnz,
            longest_row: nnz.div_ceil(rows.max(1)),
            k,
            vector: 8,
            batch: 1,
            splits: None,
            value: ValueType::F32,
            index: IndexType::U32,
            precision: Precision::Single,
            multiprocessors: 132,
            block_shared_bytes: 227 * 1024,
            sm: 90,
        }
    }

    /// The problem of products of length `k` at the nonzeros of `c`, where addresses and strides allow vectors of `vector`.
    pub fn of<T: Value, I: Index>(c: &CsrMatrix<T, I>, k: usize, vector: u32) -> Self {
        Self {
            rows: c.rows(),
            cols: c.cols(),
            nnz: c.nnz(),
            longest_row: c.stats().max_row_length as usize,
            k,
            vector,
            batch: c.batch(),
            splits: None,
            value: T::TYPE,
            index: I::TYPE,
            precision: Precision::Single,
            multiprocessors: c.device().info().multiprocessors,
            block_shared_bytes: c.device().info().block_shared_bytes,
            sm: c.device().info().sm,
        }
    }
}

/// How SDDMM is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// The library chooses.
    #[default]
    Auto,
    /// Groups of `lanes` lanes take 32 neighbouring nonzeros each, `lanes` at a time, along chunks of K of which a lane has
    /// `vectors` vectors of `vector` elements; `warps` of 32 lanes in a block.
    NonzeroSplit {
        /// Elements a load.
        vector: u32,
        /// Loads of a lane in a chunk.
        vectors: u32,
        /// Lanes of a group.
        lanes: u32,
        /// Warps a block.
        warps: u32,
    },
    /// Groups of `lanes` lanes take the nonzeros of a row in a panel of columns each; a lane has all of its part of A's row, or of
    /// a split of it, `vectors` vectors of `vector` elements. The plan reads the pattern once, and cuts it.
    ColumnPanel {
        /// Elements a load.
        vector: u32,
        /// Loads of a lane for a row.
        vectors: u32,
        /// Lanes of a group.
        lanes: u32,
    },
    /// Blocks take a tile of D each, on tensor cores, and keep what C has of it. From compute capability 8.0 on.
    MmaTile {
        /// Rows of a tile.
        rows: u32,
        /// Columns of a tile.
        columns: u32,
    },
    /// Blocks take a tile of D each, of 16-bit values, by warpgroups, and keep what C has of it. For compute capability 9.0.
    WgmmaTile {
        /// Rows of a tile.
        rows: u32,
        /// Columns of a tile.
        columns: u32,
    },
}

/// A kernel, and what the heuristic thinks of it.
pub type Choice = op::Choice<Algorithm, Tile>;

impl op::Problem for Problem {
    const OPERATION: &'static str = OPERATION;
    type Algorithm = Algorithm;
    type Tile = Tile;
    const ENTRIES: fn() -> &'static [Entry<Tile>] = entries::sddmm;

    fn algorithms(&self, entry: &'static Entry<Tile>) -> impl IntoIterator<Item = Algorithm> {
        let Tile { value, index, vector, block_items, scheme } = entry.tile;
        let fits = self.vector.is_multiple_of(vector) && self.k.is_multiple_of(vector as usize);
        let runs = entry.runs_on(self.sm) && entry.shared_bytes <= self.block_shared_bytes;
        let algorithm = match scheme {
            Scheme::NonzeroSplit { lanes, vectors, .. } if index == self.index => {
                Some(Algorithm::NonzeroSplit { vector, vectors, lanes, warps: entry.threads / 32 })
            }
            Scheme::ColumnPanel { lanes, vectors, .. } if index == self.index => {
                let able = CostModel::hopper().splits(self, entry);
                able.map(|_| Algorithm::ColumnPanel { vector, vectors, lanes })
            }
            Scheme::MmaTile { columns, arithmetic } if are_meant(self, arithmetic) => {
                Some(Algorithm::MmaTile { rows: block_items, columns })
            }
            Scheme::WgmmaTile { columns, arithmetic } if are_meant(self, arithmetic) => {
                Some(Algorithm::WgmmaTile { rows: block_items, columns })
            }
            _ => None,
        };
        algorithm.filter(|_| fits && runs && value == self.value)
    }

    fn cost(&self, entry: &'static Entry<Tile>, _algorithm: Algorithm) -> f64 {
        CostModel::hopper().cost(self, entry)
    }
}

/// All kernels that may be used on `problem`, cheapest first. Never empty: one element at a time is always legal.
pub fn choose(problem: &Problem) -> Vec<Choice> {
    op::choose(problem)
}

/// Bytes of B from which on tiles are ordered: a part of what L1 holds, which other data shares.
const ORDERED_BYTES: u64 = 64 << 10;
/// Nonzeros a multiprocessor from which on tiles are ordered: fewer all run at once, whatever their order.
const ORDERED_NONZEROS: u64 = 2048;

/// Whether it pays to take tiles by column.
pub(super) fn is_ordered(problem: &Problem) -> bool {
    let b_bytes = problem.cols as u64 * problem.k as u64 * u64::from(problem.value.bytes());
    let nonzeros = ORDERED_NONZEROS * u64::from(problem.multiprocessors);
    b_bytes > ORDERED_BYTES && problem.nnz as u64 >= nonzeros
}

/// Whether tiles of this arithmetic are for this problem.
fn are_meant(problem: &Problem, arithmetic: Arithmetic) -> bool {
    problem.precision.allows(arithmetic, problem.k)
        && subtiles::fit([problem.rows, problem.cols, problem.nnz], problem.value, problem.index)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::LONG_ROWS;
    use crate::op::find;

    fn is_tiles(choice: &Choice) -> bool {
        matches!(choice.algorithm, Algorithm::MmaTile { .. } | Algorithm::WgmmaTile { .. })
    }

    /// A problem of 8192×2048 on an H200.
    pub(in crate::ops::sddmm) fn problem(nnz: usize, k: usize, vector: u32) -> Problem {
        let longest_row = nnz.div_ceil(8192) * 3 / 2;
        Problem { longest_row, vector, precision: Precision::Fma, ..Problem::new(8192, 2048, nnz, k) }
    }

    /// Elements of K of a chunk, and lanes.
    fn chunk(problem: &Problem) -> (u32, u32) {
        match choose(problem)[0].algorithm {
            Algorithm::NonzeroSplit { vector, vectors, lanes, .. }
            | Algorithm::ColumnPanel { vector, vectors, lanes } => (vector * vectors * lanes, lanes),
            other => panic!("{other:?} has no chunks"),
        }
    }

    #[test]
    fn a_chunk_has_all_of_a_usual_k() {
        for k in [32, 64, 128] {
            assert_eq!(chunk(&problem(1 << 20, k, 4)).0, k as u32);
        }
    }

    /// What was fastest on an H100, or within a hundredth of it, where that has a record; the graphs on an H200: docs/sddmm.md, "What it
    /// reaches".
    #[test]
    fn what_was_measured_is_chosen() {
        for ([rows, k, cols, nnz], fastest) in [
            ([8192, 128, 2048, 4_194_304], &["wgmma_128x128_splitbf16"][..]),
            ([8192, 128, 2048, 1_677_722], &["wgmma_128x128_splitbf16"]),
            ([8192, 32, 2048, 1_677_722], &["panel_v4x1_l8_w8"]),
            ([4096, 128, 4096, 3_355_443], &["wgmma_128x128_splitbf16"]),
            ([12_288, 64, 12_288, 7_549_747], &["panel_v4x2_l8_w8"]),
            ([4096, 32, 1024, 1_258_291], &["panel_v4x1_l8_w8"]),
            ([2048, 32, 2048, 1_258_291], &["panel_v4x1_l8_w8"]),
            ([6144, 32, 2048, 1_258_291], &["panel_v4x1_l8_w8"]),
            ([62_586, 32, 62_586, 147_892], &["panel_v4x1_l8_w8"]),
            ([19_717, 256, 19_717, 88_651], &["panel_v4x4_l16_w8"]),
        ] {
            let problem = Problem { rows, cols, precision: Precision::Single, ..problem(nnz, k, 4) };
            let chosen = choose(&problem)[0].entry.name;
            assert!(fastest.contains(&&chosen["sddmm_f32_".len()..]), "{rows} {k} {cols} {nnz}: {chosen}");
        }
    }

    /// Of an H100.
    #[test]
    fn what_was_measured_of_f16_is_chosen() {
        for ([rows, k, cols, nnz], fastest) in [
            ([8192, 128, 2048, 4_194_304], "f16_wgmma_256x128"),
            ([2048, 256, 512, 104_858], "f16_wgmma_128x128"),
            ([12_288, 64, 12_288, 7_549_747], "f16_panel_v8x1_l8_w8"),
            ([4096, 128, 4096, 1_677_722], "f16_wgmma_256x128"),
        ] {
            let precision = Precision::Single;
            let problem = Problem { rows, cols, precision, value: ValueType::F16, ..problem(nnz, k, 8) };
            assert_eq!(&choose(&problem)[0].entry.name["sddmm_".len()..], fastest, "{rows} {k} {cols} {nnz}");
        }
    }

    #[test]
    fn few_nonzeros_of_long_rows_take_whole_warps() {
        assert_eq!(chunk(&problem(1000, 1024, 4)).1, 32);
    }

    #[test]
    fn only_legal_vectors_are_offered() {
        for vector in [1, 2, 4] {
            let choices = choose(&problem(1 << 20, 64, vector));
            assert!(choices.iter().all(|choice| choice.entry.tile.vector <= vector));
            assert_eq!(choices[0].entry.tile.vector, vector);
        }
    }

    #[test]
    fn each_type_has_kernels_for_every_k() {
        for value in [ValueType::F32, ValueType::F16, ValueType::Bf16] {
            for index in [IndexType::U32, IndexType::U16] {
                for k in 0..20 {
                    let problem = Problem { value, index, ..problem(640, k, 8) };
                    let choices = choose(&problem);
                    let divides = |choice: &Choice| k.is_multiple_of(choice.entry.tile.vector as usize);
                    assert!(!choices.is_empty() && choices.iter().all(divides), "{value} {index} {k}");
                }
            }
        }
    }

    #[test]
    fn tiles_are_ordered_where_b_is_large_and_nonzeros_are_many() {
        assert!(is_ordered(&problem(1 << 20, 128, 4)));
        assert!(!is_ordered(&problem(1 << 20, 4, 4)));
        assert!(!is_ordered(&problem(1 << 17, 128, 4)));
    }

    #[test]
    fn an_algorithm_is_found_where_it_is_legal() {
        let problem = problem(640, 64, 4);
        let wanted = choose(&problem).pop().unwrap();
        assert_eq!(find(&problem, wanted.algorithm), Some(wanted));
        assert_eq!(find(&problem, Algorithm::Auto), Some(choose(&problem)[0]));
        let strange = Algorithm::NonzeroSplit { vector: 4, vectors: 3, lanes: 8, warps: 8 };
        assert_eq!(find(&problem, strange), None);
        let vectors = Algorithm::NonzeroSplit { vector: 4, vectors: 1, lanes: 8, warps: 8 };
        assert!(find(&problem, vectors).is_some());
        assert_eq!(find(&Problem { k: 62, ..problem }, vectors), None);
    }

    /// The arithmetics of the tiles that are offered.
    fn arithmetics(problem: &Problem) -> Vec<Arithmetic> {
        let mut found = vec![];
        for arithmetic in
            choose(problem).into_iter().filter_map(|choice| choice.entry.tile.scheme.arithmetic())
        {
            if !found.contains(&arithmetic) {
                found.push(arithmetic);
            }
        }
        found
    }

    #[test]
    fn precision_and_k_decide_which_tiles_are_offered() {
        let long = Problem { precision: Precision::Single, ..problem(1 << 20, LONG_ROWS, 8) };
        let short = Problem { k: LONG_ROWS - 8, ..long };
        let split = [Arithmetic::SplitBf16, Arithmetic::Split];
        let (tf32, half) = ([Arithmetic::Tf32], [Arithmetic::Half]);
        for (value, precision, of_long, of_short) in [
            (ValueType::F32, Precision::Single, &split[..], &[][..]),
            (ValueType::F32, Precision::Tf32, &tf32, &tf32),
            (ValueType::F32, Precision::Fma, &[], &[]),
            (ValueType::F16, Precision::Single, &half, &half),
            (ValueType::Bf16, Precision::Tf32, &half, &half),
            (ValueType::Bf16, Precision::Fma, &[], &[]),
        ] {
            for (problem, expected) in [(long, of_long), (short, of_short)] {
                for index in [IndexType::U32, IndexType::U16] {
                    let problem = Problem { value, precision, index, ..problem };
                    assert_eq!(arithmetics(&problem), expected, "{problem:?}");
                }
            }
        }
    }

    #[test]
    fn tiles_need_a_gpu_rows_of_sixteen_bytes_and_room_for_lists() {
        let able = Problem { precision: Precision::Single, ..problem(1 << 20, 128, 8) };
        assert_eq!(arithmetics(&able), [Arithmetic::SplitBf16, Arithmetic::Split]);
        assert_eq!(arithmetics(&Problem { sm: 80, ..able }), [Arithmetic::Split], "warpgroups are of 9.0");
        for problem in [
            Problem { sm: 75, ..able },
            Problem { block_shared_bytes: 16 * 1024, ..able },
            Problem { k: 130, ..able },
            Problem { vector: 2, ..able },
            Problem { rows: 1 << 20, cols: 1 << 20, ..able },
        ] {
            assert_eq!(arithmetics(&problem), [], "{problem:?}");
        }
    }

    #[test]
    fn tiles_are_for_patterns_that_are_not_too_sparse() {
        let at = |nnz| Problem { precision: Precision::Single, ..problem(nnz, 128, 8) };
        let is_by_tiles = |nnz| is_tiles(&choose(&at(nnz))[0]);
        let all = 8192 * 2048;
        assert!(is_by_tiles(all) && is_by_tiles(all / 4));
        assert!(!is_by_tiles(all / 50) && !is_by_tiles(100));
    }

    #[test]
    fn nothing_to_add_up_is_nothing_for_tensor_cores() {
        let problem =
            Problem { value: ValueType::F16, precision: Precision::Single, ..problem(1 << 20, 0, 8) };
        let choices = choose(&problem);
        assert!(!is_tiles(&choices[0]) && choices.iter().any(is_tiles));
    }
}
