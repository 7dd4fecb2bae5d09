//! What an operation is to the benchmarks. Each describes itself in its folder; `lib.rs` lists them.
use anyhow::Result;
use lacuna_cases::{Problem, Size, Values};

use crate::record::Record;
use crate::session::Session;
use crate::types::Index;

/// An operation on a matrix of rows × columns and dense operands that are `width` wide.
pub struct Operation {
    /// Its name in records and on the command line.
    pub name: &'static str,
    /// Its name in titles.
    pub title: &'static str,
    /// What `--help` says of it.
    pub about: &'static str,
    /// The values of its sparse matrix; none where the matrix is dense.
    pub values: Option<Values>,
    /// Which size the columns of its matrix are.
    pub columns: Columns,
    /// The width; none where it is 1 always.
    pub width: Option<Width>,
    /// What the command line may say of it.
    pub takes: Takes,
    /// What tables count.
    pub rate: Rate,
    /// Whether how sparse the matrix is says something of it: of bags it is how large the table is.
    pub is_by_sparsity: bool,
    /// What it is set against: names in records, and titles.
    pub peers: &'static [Peer],
    /// Operations of the work model.
    pub flops: fn(&Size) -> f64,
    /// Bytes of the work model, of so many bytes a value and an index: operands and result once each.
    pub bytes: fn(&Size, f64, f64) -> f64,
    /// Bytes of all operands in f32, ours and the peers', and of the sparse matrix without its sparsity, as the dense
    /// peers need it.
    pub footprint: fn(&Size) -> f64,
    /// Products that take the simulator as long.
    pub simulated: fn(&Size) -> f64,
    /// Measures a problem: one record for the library's choice, or for every kernel, the choice first.
    pub measure: fn(&mut Session, &Task<'_>) -> Result<Vec<Record>>,
}

/// An operation of the list.
pub type Op = &'static Operation;
/// What an operation is set against: its name in records, and its title.
pub type Peer = (&'static str, &'static str);

/// Which of M, K and N the columns of the matrix are; the width is the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// The columns are K.
    K,
    /// The columns are N.
    N,
}

/// How wide the dense operands are; of top-N, how many are taken.
#[derive(Clone, Copy, Debug)]
pub struct Width {
    /// Its name in tables.
    pub title: &'static str,
    /// Its option on the command line.
    pub flag: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Whether less of it is less work, so that the simulator may do a part.
    pub is_cut: bool,
}

impl Width {
    /// The columns of dense operands.
    pub(crate) const fn of_operands(title: &'static str, flag: &'static str) -> Option<Self> {
        Some(Self { title, flag, about: "the columns of its dense operands", is_cut: true })
    }
}

/// What the command line may say of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Takes {
    /// Types of column indices.
    pub indices: &'static [Index],
    /// `--heads`.
    pub heads: bool,
    /// `--precision`, and `--prepacked`.
    pub precision: bool,
}

impl Takes {
    /// Column indices of a sparse matrix, and no more.
    pub(crate) const INDICES: Self =
        Self { indices: &[Index::U32, Index::U16], heads: false, precision: false };
}

/// What tables count of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Products and sums.
    Flops,
    /// Bytes: it is a matter of these.
    Bytes,
}

/// A problem that is to be measured, by an operation.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The suite, or `run`.
    pub suite: &'a str,
    /// The operation.
    pub op: Op,
    /// The problem.
    pub problem: &'a Problem,
}

impl Operation {
    /// M, K and N of a matrix of rows × columns with dense operands of this width.
    pub fn sizes(&self, rows: usize, cols: usize, width: usize) -> [usize; 3] {
        match self.columns {
            Columns::K => [rows, cols, width],
            Columns::N => [rows, width, cols],
        }
    }
}

impl PartialEq for Operation {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
