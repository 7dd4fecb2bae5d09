//! Which SDDMM kernel suits a problem: a pure function, so that it can be tested and printed without a GPU.
use lacuna_kernels::sddmm::{Scheme, Tile};
use lacuna_kernels::{Entry, IndexType, ValueType, entries};

use super::cost::cost;
use crate::{CsrMatrix, Index, Value};

/// What the chooser looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SddmmProblem {
    /// Rows of C.
    pub rows: usize,
    /// Columns of C.
    pub cols: usize,
    /// Nonzeros of C.
    pub nnz: usize,
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
    /// Streaming multiprocessors of the GPU.
    pub multiprocessors: u32,
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
            k,
            vector,
            batch: c.batch(),
            value: T::TYPE,
            index: I::TYPE,
            multiprocessors: c.device().info().multiprocessors,
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
    /// Groups of `lanes` lanes take `items` neighbouring nonzeros each, `lanes` at a time, along chunks of K of which a lane
    /// has `vectors` vectors of `vector` elements.
    Nonzeros {
        /// Elements a load.
        vector: u32,
        /// Loads of a lane in a chunk.
        vectors: u32,
        /// Lanes of a group.
        lanes: u32,
        /// Nonzeros of a group.
        items: u32,
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
    /// Elements that a lane loads at once.
    pub vector: u32,
    /// Nonzeros of a block.
    pub block_nonzeros: u32,
    /// The chooser's cost, comparable within one problem only.
    pub cost: f64,
}

/// All kernels that may be used on `problem`, cheapest first. Never empty: one element at a time is always legal.
pub fn choose_sddmm(problem: &SddmmProblem) -> Vec<SddmmChoice> {
    let mut choices: Vec<SddmmChoice> = able(problem).collect();
    choices.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    choices
}

/// The kernel that is this algorithm, where it may be used on `problem`; for [`SddmmAlgorithm::Auto`] the cheapest.
pub(super) fn find(problem: &SddmmProblem, wanted: SddmmAlgorithm) -> Option<SddmmChoice> {
    match wanted {
        SddmmAlgorithm::Auto => choose_sddmm(problem).into_iter().next(),
        SddmmAlgorithm::Nonzeros { .. } => able(problem).find(|choice| choice.algorithm == wanted),
    }
}

/// All kernels that can do `problem`.
fn able(problem: &SddmmProblem) -> impl Iterator<Item = SddmmChoice> {
    entries::sddmm().iter().filter_map(|entry: &Entry<Tile>| {
        let Tile { value, index, vector, block_items, scheme } = entry.tile;
        let Scheme::Nonzeros { lanes, vectors, items, .. } = scheme else { return None };
        let fits = problem.vector.is_multiple_of(vector) && problem.k.is_multiple_of(vector as usize);
        let types = (value, index) == (problem.value, problem.index);
        (fits && types && entry.runs_on(problem.sm)).then(|| SddmmChoice {
            entry: entry.name,
            algorithm: SddmmAlgorithm::Nonzeros { vector, vectors, lanes, items },
            threads: entry.threads,
            vector,
            block_nonzeros: block_items,
            cost: cost(problem, &entry.tile),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(nnz: usize, k: usize, vector: u32) -> SddmmProblem {
        SddmmProblem {
            rows: 8192,
            cols: 2048,
            nnz,
            k,
            vector,
            batch: 1,
            value: ValueType::F32,
            index: IndexType::U32,
            multiprocessors: 132,
            sm: 90,
        }
    }

    /// Elements of K of a chunk, and lanes.
    fn chunk(problem: &SddmmProblem) -> (u32, u32) {
        let SddmmAlgorithm::Nonzeros { vector, vectors, lanes, .. } = choose_sddmm(problem)[0].algorithm
        else {
            panic!("only Auto has no numbers")
        };
        (vector * vectors * lanes, lanes)
    }

    #[test]
    fn a_chunk_has_all_of_a_usual_k() {
        for k in [32, 64, 128] {
            let (chunk, lanes) = chunk(&problem(1 << 20, k, 4));
            assert!((chunk as usize, lanes) == (k, 8), "{k}: {chunk} by {lanes} lanes");
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
    fn an_algorithm_is_found_where_it_is_legal() {
        let problem = problem(640, 64, 4);
        let wanted = choose_sddmm(&problem).pop().unwrap();
        assert_eq!(find(&problem, wanted.algorithm), Some(wanted));
        assert_eq!(find(&problem, SddmmAlgorithm::Auto), Some(choose_sddmm(&problem)[0]));
        let strange = SddmmAlgorithm::Nonzeros { vector: 4, vectors: 3, lanes: 8, items: 32 };
        assert_eq!(find(&problem, strange), None);
        let vectors = SddmmAlgorithm::Nonzeros { vector: 4, vectors: 1, lanes: 8, items: 32 };
        assert!(find(&problem, vectors).is_some());
        assert_eq!(find(&SddmmProblem { k: 62, ..problem }, vectors), None);
    }
}
