//! Which kernel suits a problem: a pure function, so that it can be tested and printed without a GPU.
use lacuna_kernels::attention::Tile;
use lacuna_kernels::{Entry, IndexType, ValueType, entries};

/// What the chooser looks at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionProblem {
    /// Elements of a row of Q, K, V and O.
    pub dim: usize,
    /// Elements that the dimension and the addresses allow to load at once (1, 2, 4 or 8).
    pub vector: u32,
    /// Type of the values.
    pub value: ValueType,
    /// Type of the mask's column indices.
    pub index: IndexType,
}

/// How attention is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttentionAlgorithm {
    /// The library chooses.
    #[default]
    Auto,
    /// In one pass that writes no score: a warp takes a query. Dimensions up to 256.
    FusedRows {
        /// Elements that a lane loads at once.
        vector: u32,
        /// Lanes that share a row of K or V.
        lanes: u32,
        /// The largest dimension.
        dimension: u32,
    },
}

/// A fused kernel, and how the chooser thinks of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionChoice {
    /// Its entry point.
    pub entry: &'static str,
    /// The algorithm by which it can be asked for.
    pub algorithm: AttentionAlgorithm,
    /// Threads of a block.
    pub threads: u32,
    /// Shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// Its tile.
    pub tile: Tile,
    /// The chooser's cost: instructions of a warp for a key. Comparable within one problem only.
    pub cost: f64,
}

impl AttentionChoice {
    fn of(entry: &Entry<Tile>) -> Self {
        let &Entry { name, threads, shared_bytes, tile, .. } = entry;
        let Tile { vector, lanes, dimension, .. } = tile;
        let algorithm = AttentionAlgorithm::FusedRows { vector, lanes, dimension };
        Self { entry: name, algorithm, threads, shared_bytes, tile, cost: cost(&tile) }
    }
}

/// The fused kernels that can do this problem, the best first; none where the dimension is too large.
pub fn choose(problem: &AttentionProblem) -> Vec<AttentionChoice> {
    let legal = |entry: &&Entry<Tile>| {
        let tile = &entry.tile;
        tile.value == problem.value
            && tile.index == problem.index
            && tile.vector <= problem.vector
            && problem.dim.is_multiple_of(tile.vector as usize)
            && problem.dim <= tile.dimension as usize
    };
    let mut choices: Vec<_> = entries::attention().iter().filter(legal).map(AttentionChoice::of).collect();
    choices.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    choices
}

/// Loads and products of a warp for a key, and the shuffles: 1 − 1/LANES to add up, and 3 to hand on a weight and twice a
/// column, for as many keys as groups.
fn cost(tile: &Tile) -> f64 {
    const WARP: f64 = 32.0;
    let (vector, lanes) = (f64::from(tile.vector), f64::from(tile.lanes));
    let elements = f64::from(tile.dimension) / WARP;
    2.0 * elements / vector + 2.0 * elements + 4.0 * lanes / WARP
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(dim: usize, vector: u32, value: ValueType) -> &'static str {
        choose(&AttentionProblem { dim, vector, value, index: IndexType::U32 })[0].entry
    }

    #[test]
    fn the_smallest_that_holds_a_row_is_chosen() {
        for (dim, entry) in [(32, "v4_l8_c1"), (40, "v4_l8_c2"), (64, "v4_l8_c2"), (128, "v4_l16_c2")] {
            assert_eq!(best(dim, 4, ValueType::F32), format!("attention_f32_{entry}"));
        }
        for (dim, entry) in [(32, "v8_l4_c1"), (64, "v8_l8_c1"), (128, "v8_l8_c2"), (256, "v8_l16_c2")] {
            assert_eq!(best(dim, 8, ValueType::Bf16), format!("attention_bf16_{entry}"));
        }
    }

    #[test]
    fn every_dimension_has_a_kernel_at_every_alignment() {
        for value in [ValueType::F32, ValueType::F16, ValueType::Bf16] {
            for index in [IndexType::U32, IndexType::U16] {
                for (dim, vector) in (1..=256).flat_map(|dim| [1, 2, 4, 8].map(|vector| (dim, vector))) {
                    let legal = choose(&AttentionProblem { dim, vector, value, index });
                    assert!(!legal.is_empty(), "{value} {index} {dim} {vector}");
                    for choice in legal {
                        assert!(dim.is_multiple_of(choice.tile.vector as usize));
                        assert!(choice.tile.vector <= vector);
                    }
                }
                assert!(choose(&AttentionProblem { dim: 257, vector: 8, value, index }).is_empty());
            }
        }
    }
}
