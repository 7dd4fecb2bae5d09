//! What matrices are made of.
use half::{bf16, f16};
use lacuna_kernels::conv::MmaValue;
use lacuna_kernels::{Bf16, DeviceIndex, DeviceValue, F16, IndexType, ValueType};

use crate::Element;

mod sealed {
    pub trait Sealed {}
}

/// A value of a matrix: `f32`, `half::f16` or `half::bf16`. Sums of any of them are computed in `f32`.
pub trait Value: Element + sealed::Sealed {
    /// The same number in a kernel.
    #[doc(hidden)]
    type Device: DeviceValue + MmaValue;
    /// Which type this is.
    const TYPE: ValueType = <Self::Device as DeviceValue>::TYPE;
    /// The nearest number of this type, ties to even.
    fn from_f32(x: f32) -> Self;
    /// Its value; exact.
    fn to_f32(self) -> f32;
}

/// A column index of a sparse matrix on a device: `u32`, or `u16` for matrices of at most 65,535 columns.
pub trait Index: Element + sealed::Sealed {
    /// The same index in a kernel.
    #[doc(hidden)]
    type Device: DeviceIndex;
    /// Which type this is.
    const TYPE: IndexType = <Self::Device as DeviceIndex>::TYPE;
    /// The index of a column below the type's limit.
    #[doc(hidden)]
    fn from_column(column: u32) -> Self;
    /// The column of an index.
    #[doc(hidden)]
    fn to_column(self) -> u32;
}

impl sealed::Sealed for f32 {}
impl Value for f32 {
    type Device = f32;
    fn from_f32(x: f32) -> Self {
        x
    }
    fn to_f32(self) -> f32 {
        self
    }
}

/// Writes the implementation for a 16-bit type, by its like on devices.
macro_rules! half {
    ($type:ident, $device:ident) => {
        impl sealed::Sealed for $type {}
        impl Value for $type {
            type Device = $device;
            fn from_f32(x: f32) -> Self {
                Self::from_f32(x)
            }
            fn to_f32(self) -> f32 {
                self.to_f32()
            }
        }
    };
}
half!(f16, F16);
half!(bf16, Bf16);

/// Writes the implementation for a type of indices, which devices have too.
macro_rules! index {
    ($type:ident) => {
        impl sealed::Sealed for $type {}
        impl Index for $type {
            type Device = Self;
            fn from_column(column: u32) -> Self {
                column as Self
            }
            fn to_column(self) -> u32 {
                self.into()
            }
        }
    };
}
index!(u32);
index!(u16);
