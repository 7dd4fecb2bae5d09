//! A product of a warpgroup: where its A and B lie in shared memory.
use crate::tensor::arithmetic::Factors;

/// Bytes of a piece that stays whole when rows are swizzled.
pub(crate) const PIECE: u32 = 16;
/// Columns of A, rows of B.
const DEPTH: u32 = 16;
/// Rows of A that are one warp's.
const ROWS: u32 = 16;
/// Bytes of a row of A's panel.
const ROW: u32 = 128;

/// A, 16 columns of a panel, by the place of the first of them, and how it may lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left(pub(crate) u32);

impl Left {
    /// Panels begin at multiples of this many bytes, eight rows.
    pub(crate) const ALIGNMENT: u32 = 8 * ROW;
    /// The bytes of a panel.
    pub(crate) const PANEL: u32 = 64 * ROW;
    /// The bytes of a warp's rows.
    pub(crate) const BYTES: u32 = ROWS * DEPTH * Product::ELEMENT;

    /// Where its panel begins.
    pub(crate) const fn panel(self) -> u32 {
        self.0 / ROW * ROW
    }

    /// Whether it may lie there.
    pub(crate) const fn is_aligned(self) -> bool {
        self.panel().is_multiple_of(Self::ALIGNMENT) && self.0.is_multiple_of(2 * PIECE)
    }

    /// Where the pieces of warp `warp` of the four lie: row by row, in the order of columns.
    pub(crate) fn places(self, warp: u32) -> impl Iterator<Item = u32> {
        let first = self.0 % ROW / PIECE;
        (warp * ROWS..(warp + 1) * ROWS).flat_map(move |row| {
            (first..first + 2).map(move |piece| self.panel() + row * ROW + (piece ^ (row % 8)) * PIECE)
        })
    }
}

/// A product's types and sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Product {
    pub(crate) factors: Factors,
    /// Columns of B and the sums.
    pub(crate) columns: u32,
    /// Bytes from one panel of B to the next.
    pub(crate) panel: u32,
}

impl Product {
    /// Bytes of an element of B.
    pub(crate) const ELEMENT: u32 = 2;

    /// Pieces of a row in a panel.
    const fn pieces(self) -> u32 {
        if self.columns < 64 { 4 } else { 8 }
    }

    /// Panels begin at multiples of this many bytes, eight rows.
    pub(crate) const fn alignment(self) -> u32 {
        8 * PIECE * self.pieces()
    }

    const fn panels(self) -> u32 {
        self.columns / 8 / self.pieces()
    }

    /// The bytes of B.
    pub(crate) const fn bytes(self) -> u32 {
        DEPTH * self.columns * Self::ELEMENT
    }

    /// From the first byte of B to the one after its last.
    pub(crate) fn span(self) -> u64 {
        u64::from(self.panels() - 1) * u64::from(self.panel) + u64::from(self.bytes() / self.panels())
    }

    /// Whether B may begin there.
    pub(crate) const fn is_aligned(self, b: u32) -> bool {
        b.is_multiple_of(self.alignment())
            && (self.panels() == 1 || self.panel.is_multiple_of(self.alignment()))
    }

    /// Where the pieces of B lie: row by row, in the order of columns.
    pub(crate) fn places(self, b: u32) -> impl Iterator<Item = u32> {
        let pieces = self.pieces();
        (0..DEPTH).flat_map(move |row| {
            let swizzle = if pieces == 8 { row % 8 } else { row / 2 % 4 };
            (0..self.columns / 8).map(move |piece| {
                let (panel, piece) = (piece / pieces, piece % pieces);
                b + panel * self.panel + (row * pieces + (piece ^ swizzle)) * PIECE
            })
        })
    }
}
