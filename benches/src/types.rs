//! The types of values and of column indices that can be measured.
use clap::ValueEnum;

/// Types of values; sums are f32 always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Dtype {
    /// 32-bit floating point.
    #[default]
    F32,
    /// 16-bit floating point.
    F16,
    /// bfloat16.
    Bf16,
}

/// Types of column indices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Index {
    /// 32 bits.
    #[default]
    U32,
    /// 16 bits.
    U16,
    /// 64 bits: of lookups.
    U64,
}

/// How exactly `f32` is multiplied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Precision {
    /// The library's default: f32, or three products on tensor cores.
    #[default]
    Single,
    /// By fused multiply-adds only.
    Fma,
    /// In TF32 where that is faster.
    Tf32,
}

/// What becomes of a row's products in SpMM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Reduce {
    /// Their sum.
    #[default]
    Sum,
    /// Their mean.
    Mean,
    /// The greatest.
    Max,
    /// The least.
    Min,
}

/// The types of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Types {
    /// Of values.
    pub dtype: Dtype,
    /// Of column indices.
    pub index: Index,
    /// How exactly products are computed.
    pub precision: Precision,
}

impl Types {
    /// Bytes of a value.
    pub fn value_bytes(self) -> u32 {
        match self.dtype {
            Dtype::F32 => 4,
            Dtype::F16 | Dtype::Bf16 => 2,
        }
    }

    /// Bytes of a column index.
    pub fn index_bytes(self) -> u32 {
        match self.index {
            Index::U32 => 4,
            Index::U16 => 2,
            Index::U64 => 8,
        }
    }

    /// The precision as the library takes it.
    pub fn precision(self) -> lacuna::Precision {
        match self.precision {
            Precision::Single => lacuna::Precision::Single,
            Precision::Fma => lacuna::Precision::Fma,
            Precision::Tf32 => lacuna::Precision::Tf32,
        }
    }
}

impl Reduce {
    /// As the library takes it.
    pub fn of_library(self) -> lacuna::spmm::Reduce {
        match self {
            Self::Sum => lacuna::spmm::Reduce::Sum,
            Self::Mean => lacuna::spmm::Reduce::Mean,
            Self::Max => lacuna::spmm::Reduce::Max,
            Self::Min => lacuna::spmm::Reduce::Min,
        }
    }
}

/// The name of a type, a precision or a reduction on the command line and in records.
pub(crate) fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().into())
}
