//! The types of a problem's values.

use std::ffi::c_int;
use std::fmt;

/// The type of a problem's values. Sums are in `f32`, whatever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum DataType {
    /// IEEE 754 single precision.
    #[default]
    F32,
    /// IEEE 754 half precision.
    F16,
    /// bfloat16. The vendors' libraries want a GPU of sm_80 or newer for it.
    Bf16,
}

impl DataType {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Bf16];

    /// A short name for records.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
        }
    }

    /// Bytes of a value.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }

    /// The number in `cudaDataType_t`.
    pub(crate) fn raw(self) -> c_int {
        match self {
            Self::F32 => 0,
            Self::F16 => 2,
            Self::Bf16 => 14,
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
