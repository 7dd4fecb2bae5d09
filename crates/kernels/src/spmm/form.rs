//! How kernels by rows of one shape may differ: in what a stage holds, in which rows a block takes, and, to measure what it
//! brings, in one idea of the paper.
use super::tile::Scheme;
use crate::IndexType;

/// An idea of the paper in which a kernel differs from the others of its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Idea {
    /// Residue handling, which the others do and it does not: it tests every element of a row, and unrolls no loop over
    /// vectors.
    ResidueHandling,
    /// Index pre-scaling, which it does and the others do not: columns become 32-bit byte offsets into B when they are
    /// staged, so that a stage takes a third more. Right only where all of B lies within 4 GiB.
    IndexPreScaling,
}

/// What a [`RowSplit`](super::RowSplit) is beside its shape.
pub trait Form: Copy + 'static {
    /// How many bits of a column are staged: 16, which are read with half the bytes, where A has at most 65,535 columns; 32
    /// for more.
    const STAGE: IndexType = IndexType::U16;
    /// Whether blocks are persistent: as many as fit on the GPU at once, each with a tile of columns over which it takes row
    /// after row.
    const PERSISTENT: bool = false;
    /// Whether, in persistent kernels, subwarps share long rows only, and each takes short rows of its own.
    const HYBRID: bool = false;
    /// Whether C is first to leave L2, which then has more room for B.
    const STREAMS_C: bool = false;
    /// The idea in which it differs from the library's kernels; none for these.
    const DIFFERS: Option<Idea> = None;

    /// Whether only the ends of a row are tested for elements of others.
    const RESIDUE_HANDLING: bool = !matches!(Self::DIFFERS, Some(Idea::ResidueHandling));
    /// Whether columns are staged as byte offsets into B.
    const INDEX_PRE_SCALING: bool = matches!(Self::DIFFERS, Some(Idea::IndexPreScaling));
    /// Whether a word of the stage holds two columns.
    const PACKED: bool = matches!(Self::STAGE, IndexType::U16);
    /// The column of a staged element that does not belong to the row. No matrix has it: columns, and the byte offsets that
    /// they may be, are less.
    const ABSENT: u32 = Self::STAGE.max_columns();
}

/// What most of the library's kernels are.
#[derive(Clone, Copy, Debug)]
pub struct Plain;
impl Form for Plain {}

/// For A with more than 65,535 columns, and of `f32` for long rows in pieces: B is often larger than L2.
#[derive(Clone, Copy, Debug)]
pub struct Wide;
impl Form for Wide {
    const STAGE: IndexType = IndexType::U32;
    const STREAMS_C: bool = true;
}

/// With persistent thread blocks.
#[derive(Clone, Copy, Debug)]
pub struct Persistent;
impl Form for Persistent {
    const PERSISTENT: bool = true;
}

/// With persistent thread blocks, and rows of very different lengths.
#[derive(Clone, Copy, Debug)]
pub struct Hybrid;
impl Form for Hybrid {
    const PERSISTENT: bool = true;
    const HYBRID: bool = true;
}

/// Without residue handling.
#[derive(Clone, Copy, Debug)]
pub struct NoResidue;
impl Form for NoResidue {
    const DIFFERS: Option<Idea> = Some(Idea::ResidueHandling);
}

/// With index pre-scaling.
#[derive(Clone, Copy, Debug)]
pub struct PreScaled;
impl Form for PreScaled {
    const STAGE: IndexType = IndexType::U32;
    const DIFFERS: Option<Idea> = Some(Idea::IndexPreScaling);
}

/// The scheme of a kernel of this form, which may take pieces of rows.
pub(super) const fn scheme<F: Form>(lanes: u32, split: u32, pieces: bool) -> Scheme {
    match F::DIFFERS {
        None => {
            let (persistent, hybrid) = (F::PERSISTENT, F::HYBRID);
            Scheme::RowSplit { lanes, split, stage: F::STAGE, persistent, hybrid, pieces }
        }
        Some(idea) => Scheme::Ablation { idea, lanes, split, stage: F::STAGE },
    }
}
