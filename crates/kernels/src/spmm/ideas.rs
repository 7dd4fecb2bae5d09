//! Kernels that differ from the others in one idea of the paper, to measure what it brings.

/// An idea of the paper in which a kernel differs from the others of its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Idea {
    /// Residue handling, which the others do and it does not: it tests every element of a row, and unrolls no loop over
    /// quads.
    ResidueHandling,
    /// Index pre-scaling, which it does and the others do not: columns become 32-bit byte offsets into B when they are
    /// staged. Right only where all of B lies within 4 GiB.
    IndexPreScaling,
}

/// Which ideas a [`RowSplit`](super::RowSplit) follows.
pub trait Ideas: Copy + 'static {
    /// The idea in which it differs from the library's kernels; none for these.
    const DIFFERS: Option<Idea>;
    /// Whether only the ends of a row are tested for elements of others.
    const RESIDUE_HANDLING: bool = !matches!(Self::DIFFERS, Some(Idea::ResidueHandling));
    /// Whether columns are staged as byte offsets into B.
    const INDEX_PRE_SCALING: bool = matches!(Self::DIFFERS, Some(Idea::IndexPreScaling));
}

/// All that the library's kernels follow.
#[derive(Clone, Copy, Debug)]
pub struct All;
impl Ideas for All {
    const DIFFERS: Option<Idea> = None;
}

/// Without residue handling.
#[derive(Clone, Copy, Debug)]
pub struct NoResidue;
impl Ideas for NoResidue {
    const DIFFERS: Option<Idea> = Some(Idea::ResidueHandling);
}

/// With index pre-scaling.
#[derive(Clone, Copy, Debug)]
pub struct PreScaled;
impl Ideas for PreScaled {
    const DIFFERS: Option<Idea> = Some(Idea::IndexPreScaling);
}
