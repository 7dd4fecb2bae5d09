//! A product of a warpgroup: where its A and B lie in shared memory.
use lacuna_gpu::CoreMatrices;

use crate::tensor::arithmetic::Factors;

/// Bytes of a piece that stays whole, however rows lie.
pub(crate) const PIECE: u32 = 16;
/// Columns of A, rows of B.
const DEPTH: u32 = 16;
/// Rows of A that are one warp's.
const ROWS: u32 = 16;
/// Bytes of a row of A's panel.
const ROW: u32 = 128;
/// Byte offsets in a descriptor are below this.
const OFFSETS: u32 = 1 << 18;

/// A product's types and sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Product {
    pub(crate) factors: Factors,
    /// Columns of B and the sums.
    pub(crate) columns: u32,
    pub(crate) layout: Layout,
}

/// How A and B lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// In swizzled panels: A's columns in one of 64, B's rows in some that are so many bytes apart.
    Panels { apart: u32 },
    /// In core matrices.
    Cores,
    /// A in registers, B as in panels.
    Registers { apart: u32 },
    /// A in a panel; B column by column, in a panel like A's.
    PanelColumns,
    /// A in registers, of TF32; B as in `PanelColumns`.
    Columns,
}

/// Where A or B lies: its first byte, and of core matrices the byte offsets to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    pub(crate) first: u32,
    pub(crate) leading: u32,
    pub(crate) stride: u32,
}

impl Operand {
    /// What lies in panels.
    pub(crate) const fn of_panels(first: u32) -> Self {
        Self { first, leading: 0, stride: 0 }
    }

    pub(crate) const fn words(self) -> [u32; 3] {
        [self.first, self.leading, self.stride]
    }

    pub(crate) const fn of_words([first, leading, stride]: [u32; 3]) -> Self {
        Self { first, leading, stride }
    }

    /// Where piece `piece` of row `row` lies in core matrices.
    const fn core(self, row: u32, piece: u32) -> u32 {
        self.first + row / 8 * self.stride + row % 8 * PIECE + piece * self.leading
    }

    /// Where piece `piece` of row `row` lies in a panel of rows of 128 bytes, of which it has a part.
    const fn paneled(self, row: u32, piece: u32) -> u32 {
        let (panel, first) = (self.first / ROW * ROW, self.first % ROW / PIECE);
        panel + row * ROW + ((first + piece) ^ (row % 8)) * PIECE
    }

    /// The memory of a panel of so many rows.
    fn panel(self, rows: u32) -> Extent {
        let first = self.first / ROW * ROW;
        let is_aligned = first.is_multiple_of(8 * ROW) && self.first.is_multiple_of(2 * PIECE);
        Extent { first, span: u64::from(rows * ROW), is_aligned }
    }

    /// The memory in which core matrices of so many rows lie.
    fn extent(self, rows: u32) -> Extent {
        let last = u64::from(rows / 8 - 1) * u64::from(self.stride) + u64::from(self.leading);
        let is_aligned = self.words().iter().all(|number| number.is_multiple_of(PIECE))
            && self.leading.max(self.stride) < OFFSETS;
        Extent { first: self.first, span: last + 8 * u64::from(PIECE), is_aligned }
    }
}

/// The memory in which an operand lies.
pub(crate) struct Extent {
    /// Its first byte.
    pub(crate) first: u32,
    /// Bytes from there to the end.
    pub(crate) span: u64,
    /// Whether the operand begins where it may.
    pub(crate) is_aligned: bool,
}

impl From<CoreMatrices> for Operand {
    fn from(matrix: CoreMatrices) -> Self {
        Self { first: matrix.first.offset(), leading: matrix.leading, stride: matrix.stride }
    }
}

impl Product {
    /// Bytes of a row of A, or a column of B: 16 elements, or 8 of TF32.
    const DEPTH_BYTES: u32 = 2 * PIECE;
    /// The bytes of a warp's rows of A.
    pub(crate) const WARP_BYTES: u32 = ROWS * Self::DEPTH_BYTES;

    /// Bytes of an element.
    pub(crate) const fn element(self) -> u32 {
        4 / self.factors.packed() as u32
    }

    /// Pieces of a row of B in a panel.
    const fn pieces(self) -> u32 {
        if self.columns < 64 { 4 } else { 8 }
    }

    /// B's panels begin at multiples of this many bytes, eight rows.
    const fn alignment(self) -> u32 {
        8 * PIECE * self.pieces()
    }

    const fn panels(self) -> u32 {
        self.columns / 8 / self.pieces()
    }

    /// The bytes of B.
    pub(crate) const fn bytes(self) -> u32 {
        Self::DEPTH_BYTES * self.columns
    }

    /// The memory in which A lies.
    pub(crate) fn extent_of_a(self, a: Operand) -> Extent {
        match self.layout {
            Layout::Panels { .. } | Layout::PanelColumns => a.panel(64),
            Layout::Cores => a.extent(64),
            Layout::Registers { .. } | Layout::Columns => Extent { first: 0, span: 0, is_aligned: true },
        }
    }

    /// The memory in which B lies.
    pub(crate) fn extent_of_b(self, b: Operand) -> Extent {
        match self.layout {
            Layout::Panels { apart } | Layout::Registers { apart } => {
                let alignment = self.alignment();
                let is_aligned = b.first.is_multiple_of(alignment)
                    && (self.panels() == 1 || apart.is_multiple_of(alignment));
                let last = u64::from(self.panels() - 1) * u64::from(apart);
                Extent { first: b.first, span: last + u64::from(self.bytes() / self.panels()), is_aligned }
            }
            Layout::Cores => b.extent(self.columns),
            Layout::PanelColumns | Layout::Columns => b.panel(self.columns),
        }
    }

    /// How A and B must lie, in words.
    pub(crate) fn rules(self, operands: [Operand; 2]) -> [String; 2] {
        match self.layout {
            Layout::Panels { apart } | Layout::Registers { apart } => [
                format!("A's panel begins at a multiple of {}, its columns at 32 bytes", 8 * ROW),
                format!("B's panels, {apart} bytes apart, begin at multiples of {}", self.alignment()),
            ],
            Layout::PanelColumns | Layout::Columns => {
                let of_panel = |matrix: &str, lines: &str| {
                    format!("{matrix}'s panel begins at a multiple of {}, its {lines} at 32 bytes", 8 * ROW)
                };
                let in_registers = || "A is in registers".to_owned();
                let of_a = if self.has_a_in_registers() { in_registers() } else { of_panel("A", "columns") };
                [of_a, of_panel("B", "rows")]
            }
            Layout::Cores => operands.map(|Operand { first, leading, stride }| {
                format!("first byte {first}, leading {leading} and stride {stride} are multiples of {PIECE}, the latter two below {OFFSETS}")
            }),
        }
    }

    /// Where the pieces of warp `warp` of the four lie in A: row by row, in the order of columns. None, where A is in registers.
    pub(crate) fn places_of_a(self, a: Operand, warp: u32) -> impl Iterator<Item = u32> {
        let rows = if self.has_a_in_registers() { 0..0 } else { warp * ROWS..(warp + 1) * ROWS };
        rows.flat_map(move |row| {
            (0..2).map(
                move |piece| {
                    if self.layout == Layout::Cores { a.core(row, piece) } else { a.paneled(row, piece) }
                },
            )
        })
    }

    /// Whether lanes give A.
    pub(crate) fn has_a_in_registers(self) -> bool {
        matches!(self.layout, Layout::Registers { .. } | Layout::Columns)
    }

    /// Where the pieces of B lie: in panels row by row, in the order of columns; in core matrices, and where B lies by columns, column
    /// by column, in the order of rows.
    pub(crate) fn places_of_b(self, b: Operand) -> impl Iterator<Item = u32> {
        (0..2 * self.columns).map(move |at| match self.layout {
            Layout::Panels { apart } | Layout::Registers { apart } => {
                let (of_row, pieces) = (self.columns / 8, self.pieces());
                let (row, piece) = (at / of_row, at % of_row);
                let swizzle = if pieces == 8 { row % 8 } else { row / 2 % 4 };
                let (panel, piece) = (piece / pieces, piece % pieces);
                b.first + panel * apart + (row * pieces + (piece ^ swizzle)) * PIECE
            }
            Layout::Cores => b.core(at / 2, at % 2),
            Layout::PanelColumns | Layout::Columns => b.paneled(at / 2, at % 2),
        })
    }

    /// Puts B's numbers in the order of rows. Where it has 8, zeros come for the others.
    pub(crate) fn order_b(self, numbers: &mut Vec<f64>) {
        if matches!(self.layout, Layout::Cores | Layout::PanelColumns | Layout::Columns) {
            let columns = self.columns as usize;
            let (by_column, depth) = (numbers.clone(), numbers.len() / columns);
            numbers.clear();
            numbers.resize(DEPTH as usize * columns, 0.0);
            for (at, number) in numbers[..depth * columns].iter_mut().enumerate() {
                *number = by_column[at % columns * depth + at / columns];
            }
        }
    }
}
