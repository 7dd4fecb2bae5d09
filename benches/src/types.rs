//! The types of values and of column indices that can be measured.
use clap::ValueEnum;

use crate::exit::Usage;

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
}

/// The types of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Types {
    /// Of values.
    pub dtype: Dtype,
    /// Of column indices.
    pub index: Index,
}

impl Types {
    /// The types, if the library has kernels for them.
    ///
    /// # Errors
    /// [`Usage`] for types that it lacks.
    pub fn new(dtype: Dtype, index: Index) -> Result<Self, Usage> {
        let types = Self { dtype, index };
        if types == Self::default() {
            return Ok(types);
        }
        let (dtype, index) = (types.dtype_name(), types.index_name());
        Err(Usage(format!("no kernel has {dtype} values with {index} indices: take --dtype f32 --index u32")))
    }

    /// The name of the values' type in records.
    pub fn dtype_name(self) -> &'static str {
        match self.dtype {
            Dtype::F32 => "f32",
            Dtype::F16 => "f16",
            Dtype::Bf16 => "bf16",
        }
    }

    /// The name of the indices' type in records.
    pub fn index_name(self) -> &'static str {
        match self.index {
            Index::U32 => "u32",
            Index::U16 => "u16",
        }
    }
}
