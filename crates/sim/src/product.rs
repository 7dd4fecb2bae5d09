//! A product of a warpgroup: where its B lies in shared memory.
use crate::tensor::Factors;

/// Bytes of a piece of B that stays whole when rows are swizzled.
pub(crate) const PIECE: u32 = 16;
/// Bytes of a row of Bᵀ, as TF32 has it in place of B.
const TRANSPOSED_ROW: u32 = 128;

/// A product's types and sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Product {
    pub(crate) factors: Factors,
    /// Columns of B and the sums.
    pub(crate) columns: u32,
    /// Bytes from one panel of B to the next. In TF32 there is one.
    pub(crate) panel: u32,
}

impl Product {
    pub(crate) const fn is_transposed(self) -> bool {
        matches!(self.factors, Factors::Tf32)
    }

    /// Pieces of a row in a panel.
    const fn pieces(self) -> u32 {
        if self.columns < 64 && !self.is_transposed() { 4 } else { 8 }
    }

    /// Panels begin at multiples of this many bytes, eight rows.
    pub(crate) const fn alignment(self) -> u32 {
        8 * PIECE * self.pieces()
    }

    const fn panels(self) -> u32 {
        if self.is_transposed() { 1 } else { self.columns / 8 / self.pieces() }
    }

    /// The bytes of B.
    pub(crate) const fn bytes(self) -> u32 {
        self.factors.depth() as u32 * self.columns * self.factors.bytes()
    }

    /// From `b`: where row 0 of panel 0 begins, and how many bytes into it B does.
    pub(crate) const fn origin(self, b: u32) -> [u32; 2] {
        let into = if self.is_transposed() { b % TRANSPOSED_ROW } else { 0 };
        [b - into, into]
    }

    /// From the first row's first byte to the one after the last row.
    pub(crate) fn span(self) -> u64 {
        let panel =
            if self.is_transposed() { TRANSPOSED_ROW * self.columns } else { self.bytes() / self.panels() };
        u64::from(self.panels() - 1) * u64::from(self.panel) + u64::from(panel)
    }

    /// Whether B may begin there.
    pub(crate) const fn is_aligned(self, b: u32) -> bool {
        let [first, into] = self.origin(b);
        first.is_multiple_of(self.alignment())
            && into.is_multiple_of(2 * PIECE)
            && (self.panels() == 1 || self.panel.is_multiple_of(self.alignment()))
    }

    /// Where the pieces of B lie: row by row, in the order of columns; of Bᵀ where it is that.
    pub(crate) fn places(self, b: u32) -> impl Iterator<Item = u32> {
        let pieces = self.pieces();
        let [first, into] = self.origin(b);
        let (of_row, before) = if self.is_transposed() { (2, into / PIECE) } else { (self.columns / 8, 0) };
        (0..self.bytes() / PIECE).map(move |index| {
            let (row, piece) = (index / of_row, before + index % of_row);
            let swizzle = if pieces == 8 { row % 8 } else { row / 2 % 4 };
            let (panel, piece) = (piece / pieces, piece % pieces);
            first + panel * self.panel + (row * pieces + (piece ^ swizzle)) * PIECE
        })
    }
}
