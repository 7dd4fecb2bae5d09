//! Where the values of a sparse tensor are.
//!
//! TFLite stores a sparse tensor as a tree (after TACO, Kjolstad et al., OOPSLA 2017): each level is a dimension, in the order in which
//! they are gone through, and is dense, with all its indices, or compressed, with those that are there. A dimension may be cut into blocks, whose
//! inside is a level of its own. The leaves of the tree, in order, are the values.
use super::flat::Table;
use super::{TensorProblem, TfliteError};

/// The most dimensions and blocks of a tensor.
const MOST_LEVELS: usize = 32;

/// The pattern of a sparse tensor, as the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sparsity {
    /// For each level the dimension; those past the tensor's own are blocks.
    order: Vec<i32>,
    /// For each block the dimension that it cuts.
    block_map: Vec<i32>,
    levels: Vec<Level>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Level {
    /// All indices below this.
    Dense(i32),
    /// For each node of the level above where its indices begin and end, and these.
    Compressed { segments: Vec<i64>, indices: Vec<i64> },
    /// A format that is not known.
    Other(i8),
}

impl Sparsity {
    /// Reads `SparsityParameters`.
    pub(super) fn read(table: Table<'_>) -> Result<Self, TfliteError> {
        let levels = table.tables(2)?.into_iter().map(|level| {
            Ok(match level.i8(0)? {
                0 => Level::Dense(level.i32(1, 0)?),
                1 => Level::Compressed { segments: indices(level, 2)?, indices: indices(level, 4)? },
                format => Level::Other(format),
            })
        });
        Ok(Self {
            order: table.i32s(0)?.unwrap_or_default(),
            block_map: table.i32s(1)?.unwrap_or_default(),
            levels: levels.collect::<Result<_, TfliteError>>()?,
        })
    }

    /// For each of `nnz` values where it is in the dense tensor of this shape, the last dimension's elements side by side. No two are
    /// at the same place.
    pub(super) fn places(&self, shape: &[usize], nnz: usize) -> Result<Vec<usize>, TensorProblem> {
        let steps = self.steps(shape)?;
        let stored = self.stored(&steps)?;
        if stored != nnz {
            return Err(wrong(format!("places of {nnz} values"), stored));
        }
        // Levels above an empty one could be of any size. Above others there are at most as many nodes as in the file.
        if nnz == 0 {
            return Ok(Vec::new());
        }
        let mut places = vec![0];
        for (level, &(extent, step)) in self.levels.iter().zip(&steps) {
            places = match level {
                Level::Compressed { segments, indices } => {
                    // Checked by `stored`: a segment for each place, all within the indices.
                    let rows = places.iter().zip(segments.windows(2));
                    let indices = |ends: &[i64]| &indices[ends[0] as usize..ends[1] as usize];
                    rows.flat_map(|(place, ends)| {
                        indices(ends).iter().map(move |&index| place + index as usize * step)
                    })
                    .collect()
                }
                _ => places
                    .iter()
                    .flat_map(|place| (0..extent).map(move |index| place + index * step))
                    .collect(),
            };
        }
        Ok(places)
    }

    /// The extent of each level, and how far in the dense tensor its next index is.
    fn steps(&self, shape: &[usize]) -> Result<Vec<(usize, usize)>, TensorProblem> {
        let (rank, count) = (shape.len(), self.levels.len());
        let mut sorted = self.order.clone();
        sorted.sort_unstable();
        if count > MOST_LEVELS
            || count != rank + self.block_map.len()
            || !sorted.iter().copied().eq(0..count as i32)
        {
            let blocks = self.block_map.len();
            let expected = format!("{rank} dimensions and {blocks} blocks, each once, at most {MOST_LEVELS}");
            return Err(wrong(expected, format!("{count} levels of {:?}", self.order)));
        }
        // The block's extent of each dimension; 1 where it is not cut.
        let mut blocks: Vec<Option<usize>> = vec![None; rank];
        for (&order, level) in self.order.iter().zip(&self.levels) {
            let Some(block) = (order as usize).checked_sub(rank) else { continue };
            let dimension = self.block_map[block];
            let cut = usize::try_from(dimension).ok().and_then(|dimension| blocks.get_mut(dimension));
            match (cut, level) {
                (Some(cut @ None), &Level::Dense(extent)) if extent > 0 => *cut = Some(extent as usize),
                _ => {
                    let got = format!("another block of dimension {dimension}");
                    return Err(wrong(
                        format!("dense blocks, at most one for each of {rank} dimensions"),
                        got,
                    ));
                }
            }
        }
        let blocks: Vec<usize> = blocks.into_iter().map(|block| block.unwrap_or(1)).collect();
        let mut strides = vec![1_usize; rank];
        for dimension in (1..rank).rev() {
            // The product of all extents can be counted, as that of a part where none is 0.
            strides[dimension - 1] = strides[dimension].saturating_mul(shape[dimension]);
        }
        let step = |(&order, level): (&i32, &Level)| {
            let (extent, step) = match (order as usize).checked_sub(rank) {
                Some(block) => {
                    let dimension = self.block_map[block] as usize;
                    (blocks[dimension], strides[dimension])
                }
                None => {
                    let (dimension, block) = (order as usize, blocks[order as usize]);
                    if !shape[dimension].is_multiple_of(block) {
                        return Err(wrong(format!("blocks that divide {}", shape[dimension]), block));
                    }
                    (shape[dimension] / block, strides[dimension].saturating_mul(block))
                }
            };
            match *level {
                Level::Dense(got) if usize::try_from(got) != Ok(extent) => Err(wrong(extent, got)),
                Level::Other(format) => Err(wrong("format 0 (dense) or 1 (CSR)", format)),
                _ => Ok((extent, step)),
            }
        };
        self.order.iter().zip(&self.levels).map(step).collect()
    }

    /// The number of leaves, if all segments and indices are right.
    fn stored(&self, steps: &[(usize, usize)]) -> Result<usize, TensorProblem> {
        let mut nodes = 1_usize;
        for (level, &(extent, _)) in self.levels.iter().zip(steps) {
            let Level::Compressed { segments, indices } = level else {
                nodes = nodes.saturating_mul(extent);
                continue;
            };
            if Some(segments.len()) != nodes.checked_add(1) {
                return Err(wrong(format!("ends of {nodes} segments"), segments.len()));
            }
            let last = segments[nodes];
            if segments[0] != 0 || !segments.is_sorted() || usize::try_from(last) != Ok(indices.len()) {
                return Err(wrong(format!("segments from 0 up to {}", indices.len()), last));
            }
            for ends in segments.windows(2) {
                let row = &indices[ends[0] as usize..ends[1] as usize];
                let within =
                    row.iter().all(|&index| usize::try_from(index).is_ok_and(|index| index < extent));
                if !within || !row.is_sorted_by(|a, b| a < b) {
                    let got = row.iter().take(8).collect::<Vec<_>>();
                    return Err(wrong(format!("ascending indices below {extent}"), format!("{got:?}")));
                }
            }
            nodes = indices.len();
        }
        Ok(nodes)
    }
}

fn wrong(expected: impl ToString, got: impl ToString) -> TensorProblem {
    TensorProblem::Pattern { expected: expected.to_string(), got: got.to_string() }
}

/// A `SparseIndexVector`, whose type is the field before it.
fn indices(level: Table<'_>, kind: usize) -> Result<Vec<i64>, TfliteError> {
    let Some(vector) = level.table(kind + 1)? else { return Ok(Vec::new()) };
    let indices = match level.u8(kind)? {
        1 => vector.elements(0, |bytes| i32::from_le_bytes(bytes).into())?,
        2 => vector.elements(0, |bytes| u16::from_le_bytes(bytes).into())?,
        3 => vector.elements(0, |[byte]: [u8; 1]| byte.into())?,
        _ => None,
    };
    Ok(indices.unwrap_or_default())
}
