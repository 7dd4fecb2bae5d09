//! The types that matrices have in memory. Kernels compute with `f32` and `u32` whatever these are.
use core::fmt;

use lacuna_gpu::{Bf16, F16, Real, Scalar};

/// The type of a matrix's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
}

impl ValueType {
    /// Bytes of a value.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
    /// Its short name: `f32`, `f16`, `bf16`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
        }
    }
}

/// The type of a sparse matrix's column indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexType {
    /// 32 bits.
    U32,
    /// 16 bits.
    U16,
}

impl IndexType {
    /// Bytes of an index.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::U32 => 4,
            Self::U16 => 2,
        }
    }
    /// The most columns that a matrix with such indices has.
    pub const fn max_columns(self) -> u32 {
        match self {
            Self::U32 => u32::MAX,
            Self::U16 => u16::MAX as u32,
        }
    }
    /// Its short name: `u32`, `u16`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::U32 => "u32",
            Self::U16 => "u16",
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
impl fmt::Display for IndexType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value as a device holds it.
pub trait DeviceValue: Real {
    /// Which type this is.
    const TYPE: ValueType;
}
impl DeviceValue for f32 {
    const TYPE: ValueType = ValueType::F32;
}
impl DeviceValue for F16 {
    const TYPE: ValueType = ValueType::F16;
}
impl DeviceValue for Bf16 {
    const TYPE: ValueType = ValueType::Bf16;
}

/// A column index as a device holds it.
pub trait DeviceIndex: Scalar {
    /// Which type this is.
    const TYPE: IndexType;
    /// The same index in 32 bits.
    fn widen(self) -> u32;
    /// The index of a number that fits.
    fn narrow(number: u32) -> Self;
}

/// Writes the implementation for a type.
macro_rules! index {
    ($type:ident, $index:ident) => {
        impl DeviceIndex for $type {
            const TYPE: IndexType = IndexType::$index;
            #[inline(always)]
            fn widen(self) -> u32 {
                u32::from(self)
            }
            #[inline(always)]
            fn narrow(number: u32) -> Self {
                number as Self
            }
        }
    };
}
index!(u32, U32);
index!(u16, U16);
