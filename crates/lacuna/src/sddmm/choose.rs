//! Which SDDMM kernel suits a problem: a pure function, so that it can be tested and printed without a GPU.
use lacuna_kernels::Arithmetic;
use lacuna_kernels::sddmm::{Scheme, Tile};
use lacuna_kernels::{Entry, IndexType, ValueType, entries};

use super::cost::cost;
use crate::{CsrMatrix, Index, LONG_ROWS, Precision, Value, masks};

/// CUDA's limit on blocks along y: tiles of columns.
const MAX_GRID_Y: usize = 65_535;

/// What the chooser looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SddmmProblem {
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

impl SddmmProblem {
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
pub enum SddmmAlgorithm {
    /// The library chooses.
    #[default]
    Auto,
    /// Groups of `lanes` lanes take 32 neighbouring nonzeros each, `lanes` at a time, along chunks of K of which a lane has
    /// `vectors` vectors of `vector` elements; `warps` of 32 lanes in a block.
    Nonzeros {
        /// Elements a load.
        vector: u32,
        /// Loads of a lane in a chunk.
        vectors: u32,
        /// Lanes of a group.
        lanes: u32,
        /// Warps a block.
        warps: u32,
    },
    /// Groups of `lanes` lanes take the nonzeros of a row in a panel of columns each; a lane has all of its part of A's row,
    /// `vectors` vectors of `vector` elements. The plan reads the pattern once, and cuts it.
    Panels {
        /// Elements a load.
        vector: u32,
        /// Loads of a lane for a row.
        vectors: u32,
        /// Lanes of a group.
        lanes: u32,
    },
    /// Blocks take a tile of D each, on tensor cores, and keep what C has of it. From compute capability 8.0 on.
    Tiles {
        /// Rows of a tile.
        rows: u32,
        /// Columns of a tile.
        columns: u32,
    },
}

/// A kernel, and how the chooser thinks of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SddmmChoice {
    /// Its entry point.
    pub entry: &'static str,
    /// The algorithm by which it can be asked for.
    pub algorithm: SddmmAlgorithm,
    /// Threads of a block.
    pub threads: u32,
    /// Shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// Elements that a lane loads at once.
    pub vector: u32,
    /// Nonzeros of a block; by panels, tiles of them; by tiles on tensor cores, rows of D.
    pub block_items: u32,
    /// What tensor cores multiply, where they do.
    pub arithmetic: Option<Arithmetic>,
    /// The chooser's cost, comparable within one problem only.
    pub cost: f64,
}

impl SddmmChoice {
    /// Whether it reads the pattern as masks.
    pub(super) fn is_by_tiles(&self) -> bool {
        matches!(self.algorithm, SddmmAlgorithm::Tiles { .. })
    }

    /// Whether it reads the pattern as panels.
    pub(super) fn is_by_panels(&self) -> bool {
        matches!(self.algorithm, SddmmAlgorithm::Panels { .. })
    }

    /// Whether it reads the row of each nonzero, and their order.
    pub(super) fn is_by_nonzeros(&self) -> bool {
        matches!(self.algorithm, SddmmAlgorithm::Nonzeros { .. })
    }
}

/// All kernels that may be used on `problem`, cheapest first. Never empty: one element at a time is always legal.
pub fn choose_sddmm(problem: &SddmmProblem) -> Vec<SddmmChoice> {
    let mut choices: Vec<SddmmChoice> = able(problem).collect();
    choices.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    choices
}

/// Bytes of B from which on tiles are ordered: a part of what L1 holds, which other data shares.
const ORDERED_BYTES: u64 = 64 << 10;
/// Nonzeros a multiprocessor from which on tiles are ordered: fewer all run at once, whatever their order.
const ORDERED_NONZEROS: u64 = 2048;

/// Whether it pays to take tiles by column.
pub(super) fn is_ordered(problem: &SddmmProblem) -> bool {
    let b_bytes = problem.cols as u64 * problem.k as u64 * u64::from(problem.value.bytes());
    let nonzeros = ORDERED_NONZEROS * u64::from(problem.multiprocessors);
    b_bytes > ORDERED_BYTES && problem.nnz as u64 >= nonzeros
}

/// The kernel that is this algorithm, where it may be used on `problem`; for [`SddmmAlgorithm::Auto`] the cheapest.
pub(super) fn find(problem: &SddmmProblem, wanted: SddmmAlgorithm) -> Option<SddmmChoice> {
    match wanted {
        SddmmAlgorithm::Auto => choose_sddmm(problem).into_iter().next(),
        _ => able(problem).find(|choice| choice.algorithm == wanted),
    }
}

/// All kernels that can do `problem`.
fn able(problem: &SddmmProblem) -> impl Iterator<Item = SddmmChoice> {
    entries::sddmm().iter().filter_map(|entry: &Entry<Tile>| {
        let Tile { value, vector, block_items, scheme, .. } = entry.tile;
        let fits = problem.vector.is_multiple_of(vector) && problem.k.is_multiple_of(vector as usize);
        let runs = entry.runs_on(problem.sm) && entry.shared_bytes <= problem.block_shared_bytes;
        let (algorithm, arithmetic) = match scheme {
            Scheme::Nonzeros { lanes, vectors, .. } if entry.tile.index == problem.index => {
                (SddmmAlgorithm::Nonzeros { vector, vectors, lanes, warps: entry.threads / 32 }, None)
            }
            Scheme::Panels { lanes, vectors, .. }
                if entry.tile.index == problem.index && problem.k <= (lanes * vectors * vector) as usize =>
            {
                (SddmmAlgorithm::Panels { vector, vectors, lanes }, None)
            }
            Scheme::Tiles { columns, arithmetic } if are_meant(problem, columns, arithmetic) => {
                (SddmmAlgorithm::Tiles { rows: block_items, columns }, Some(arithmetic))
            }
            _ => return None,
        };
        (fits && runs && value == problem.value).then(|| SddmmChoice {
            entry: entry.name,
            algorithm,
            threads: entry.threads,
            shared_bytes: entry.shared_bytes,
            vector,
            block_items,
            arithmetic,
            cost: cost(problem, entry),
        })
    })
}

/// Whether tiles of so many columns and of this arithmetic are for this problem.
fn are_meant(problem: &SddmmProblem, columns: u32, arithmetic: Arithmetic) -> bool {
    let exact_enough = match (arithmetic, problem.precision) {
        (_, Precision::Fma) | (Arithmetic::Tf32, Precision::Single) => false,
        (Arithmetic::Split, Precision::Single) => problem.k >= LONG_ROWS,
        (Arithmetic::Split, Precision::Tf32) => false,
        (Arithmetic::Tf32, Precision::Tf32) | (Arithmetic::Half, _) => true,
    };
    let nonzero_bytes = problem.value.bytes() + problem.index.bytes();
    exact_enough
        && problem.cols.div_ceil(columns as usize) <= MAX_GRID_Y
        && masks::bytes(problem.rows, problem.cols, problem.nnz, nonzero_bytes).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(nnz: usize, k: usize, vector: u32) -> SddmmProblem {
        SddmmProblem {
            rows: 8192,
            cols: 2048,
            nnz,
            longest_row: nnz.div_ceil(8192) * 3 / 2,
            k,
            vector,
            batch: 1,
            value: ValueType::F32,
            index: IndexType::U32,
            precision: Precision::Fma,
            multiprocessors: 132,
            block_shared_bytes: 227 * 1024,
            sm: 90,
        }
    }

    /// Elements of K of a chunk, and lanes.
    fn chunk(problem: &SddmmProblem) -> (u32, u32) {
        match choose_sddmm(problem)[0].algorithm {
            SddmmAlgorithm::Nonzeros { vector, vectors, lanes, .. }
            | SddmmAlgorithm::Panels { vector, vectors, lanes } => (vector * vectors * lanes, lanes),
            other => panic!("{other:?} has no chunks"),
        }
    }

    #[test]
    fn a_chunk_has_all_of_a_usual_k() {
        for (k, lanes) in [(32, 8), (64, 8), (128, 8)] {
            assert_eq!(chunk(&problem(1 << 20, k, 4)), (k as u32, lanes));
        }
    }

    /// What was fastest on an H200, or within a hundredth of it: docs/sddmm.md, "What it reaches".
    #[test]
    fn what_was_measured_is_chosen() {
        for ([rows, k, cols, nnz], fastest) in [
            ([8192, 128, 2048, 4_194_304], &["mma_128x64_split", "mma_64x128_split"][..]),
            ([8192, 128, 2048, 1_677_722], &["panel_v4x4_l8_w8"]),
            ([8192, 32, 2048, 1_677_722], &["panel_v4x1_l8_w8"]),
            ([4096, 128, 4096, 3_355_443], &["panel_v4x2_l16_w8", "panel_v4x4_l8_w8"]),
            ([12_288, 64, 12_288, 7_549_747], &["panel_v4x2_l8_w8"]),
            ([4096, 32, 1024, 1_258_291], &["panel_v4x1_l8_w8"]),
            ([2048, 32, 2048, 1_258_291], &["panel_v4x1_l8_w8"]),
            ([6144, 32, 2048, 1_258_291], &["panel_v4x1_l8_w8"]),
            ([62_586, 32, 62_586, 147_892], &["panel_v4x1_l8_w8"]),
            ([19_717, 256, 19_717, 88_651], &["panel_v4x4_l16_w8"]),
        ] {
            let problem = SddmmProblem { rows, cols, precision: Precision::Single, ..problem(nnz, k, 4) };
            let chosen = choose_sddmm(&problem)[0].entry;
            assert!(fastest.contains(&&chosen["sddmm_f32_".len()..]), "{rows} {k} {cols} {nnz}: {chosen}");
        }
    }

    #[test]
    fn what_was_measured_of_f16_is_chosen() {
        for ([rows, k, cols, nnz], fastest) in [
            ([8192, 128, 2048, 4_194_304], "f16_mma_64x128"),
            ([12_288, 64, 12_288, 7_549_747], "f16_panel_v8x1_l8_w8"),
            ([4096, 128, 4096, 1_677_722], "f16_panel_v8x2_l8_w8"),
        ] {
            let precision = Precision::Single;
            let problem = SddmmProblem { rows, cols, precision, value: ValueType::F16, ..problem(nnz, k, 8) };
            assert_eq!(
                &choose_sddmm(&problem)[0].entry["sddmm_".len()..],
                fastest,
                "{rows} {k} {cols} {nnz}"
            );
        }
    }

    #[test]
    fn few_nonzeros_of_long_rows_take_whole_warps() {
        assert_eq!(chunk(&problem(1000, 1024, 4)).1, 32);
    }

    #[test]
    fn only_legal_vectors_are_offered() {
        for vector in [1, 2, 4] {
            let choices = choose_sddmm(&problem(1 << 20, 64, vector));
            assert!(choices.iter().all(|choice| choice.vector <= vector));
            assert_eq!(choices[0].vector, vector);
        }
    }

    #[test]
    fn each_type_has_kernels_for_every_k() {
        for value in [ValueType::F32, ValueType::F16, ValueType::Bf16] {
            for index in [IndexType::U32, IndexType::U16] {
                for k in 0..20 {
                    let problem = SddmmProblem { value, index, ..problem(640, k, 8) };
                    let choices = choose_sddmm(&problem);
                    let divides = |choice: &SddmmChoice| k.is_multiple_of(choice.vector as usize);
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
        let wanted = choose_sddmm(&problem).pop().unwrap();
        assert_eq!(find(&problem, wanted.algorithm), Some(wanted));
        assert_eq!(find(&problem, SddmmAlgorithm::Auto), Some(choose_sddmm(&problem)[0]));
        let strange = SddmmAlgorithm::Nonzeros { vector: 4, vectors: 3, lanes: 8, warps: 8 };
        assert_eq!(find(&problem, strange), None);
        let vectors = SddmmAlgorithm::Nonzeros { vector: 4, vectors: 1, lanes: 8, warps: 8 };
        assert!(find(&problem, vectors).is_some());
        assert_eq!(find(&SddmmProblem { k: 62, ..problem }, vectors), None);
    }

    /// The arithmetics of the tiles that are offered.
    fn arithmetics(problem: &SddmmProblem) -> Vec<Arithmetic> {
        let mut found = vec![];
        for arithmetic in choose_sddmm(problem).into_iter().filter_map(|choice| choice.arithmetic) {
            if !found.contains(&arithmetic) {
                found.push(arithmetic);
            }
        }
        found
    }

    #[test]
    fn precision_and_k_decide_which_tiles_are_offered() {
        let long = SddmmProblem { precision: Precision::Single, ..problem(1 << 20, LONG_ROWS, 8) };
        let short = SddmmProblem { k: LONG_ROWS - 8, ..long };
        let (split, tf32, half) = ([Arithmetic::Split], [Arithmetic::Tf32], [Arithmetic::Half]);
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
                    let problem = SddmmProblem { value, precision, index, ..problem };
                    assert_eq!(arithmetics(&problem), expected, "{problem:?}");
                }
            }
        }
    }

    #[test]
    fn tiles_need_a_gpu_rows_of_sixteen_bytes_room_for_masks_and_a_grid() {
        let able = SddmmProblem { precision: Precision::Single, ..problem(1 << 20, 128, 8) };
        assert_eq!(arithmetics(&able), [Arithmetic::Split]);
        for problem in [
            SddmmProblem { sm: 75, ..able },
            SddmmProblem { block_shared_bytes: 16 * 1024, ..able },
            SddmmProblem { k: 130, ..able },
            SddmmProblem { vector: 2, ..able },
            SddmmProblem { rows: 1 << 20, cols: 1 << 20, ..able },
            SddmmProblem { rows: 1, cols: 128 * 65_535 + 1, ..able },
        ] {
            assert_eq!(arithmetics(&problem), [], "{problem:?}");
        }
    }

    #[test]
    fn tiles_are_for_patterns_that_are_not_too_sparse() {
        let at = |nnz| SddmmProblem { precision: Precision::Single, ..problem(nnz, 128, 8) };
        let is_by_tiles = |nnz| choose_sddmm(&at(nnz))[0].is_by_tiles();
        let all = 8192 * 2048;
        assert!(is_by_tiles(all) && is_by_tiles(all / 4));
        assert!(!is_by_tiles(all / 50) && !is_by_tiles(100));
    }

    #[test]
    fn nothing_to_add_up_is_nothing_for_tensor_cores() {
        let problem =
            SddmmProblem { value: ValueType::F16, precision: Precision::Single, ..problem(1 << 20, 0, 8) };
        let choices = choose_sddmm(&problem);
        assert!(!choices[0].is_by_tiles() && choices.iter().any(SddmmChoice::is_by_tiles));
    }
}
