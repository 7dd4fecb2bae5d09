//! Types of numbers that are written.

use half::{bf16, f16};
use safetensors::Dtype;
use std::io::{self, Write};

/// The type in which numbers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Float {
    /// `F32`.
    #[default]
    F32,
    /// `F16`: numbers are rounded to the nearest.
    F16,
    /// `BF16`: numbers are rounded to the nearest.
    Bf16,
}

impl Float {
    /// The type that holds what was read from a tensor of this type, without rounding: `F32` for `F64`. None for other than numbers that
    /// are read.
    pub fn of(dtype: Dtype) -> Option<Self> {
        match dtype {
            Dtype::F32 | Dtype::F64 => Some(Self::F32),
            Dtype::F16 => Some(Self::F16),
            Dtype::BF16 => Some(Self::Bf16),
            _ => None,
        }
    }

    pub(super) fn dtype(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::F16 => Dtype::F16,
            Self::Bf16 => Dtype::BF16,
        }
    }

    pub(super) fn write(self, numbers: &[f32], writer: &mut impl Write) -> io::Result<()> {
        numbers.iter().try_for_each(|&x| match self {
            Self::F32 => writer.write_all(&x.to_le_bytes()),
            Self::F16 => writer.write_all(&f16::from_f32(x).to_le_bytes()),
            Self::Bf16 => writer.write_all(&bf16::from_f32(x).to_le_bytes()),
        })
    }
}
