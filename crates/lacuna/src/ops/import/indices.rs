//! Indices as other programs hold them.
use lacuna_kernels::import::SourceIndex;
use lacuna_matrix::FormatError;

use crate::Element;

mod sealed {
    pub trait Sealed {}
}

/// A row offset or a column of another program's: `i32`, `i64`, `u32` or `u64`.
pub trait ForeignIndex: Element + sealed::Sealed {
    /// The same in a kernel, without its sign.
    #[doc(hidden)]
    type Device: SourceIndex;
    /// What is not below this is no number of the type, but a negative one without its sign.
    #[doc(hidden)]
    const END: u64;
    /// The number, unless it is negative.
    #[doc(hidden)]
    fn to_unsigned(self) -> Option<u64>;
    /// The number; the greatest where it has no room.
    #[doc(hidden)]
    fn to_signed(self) -> i64;
}

/// Writes the implementation for a type, by its like on devices.
macro_rules! foreign {
    ($type:ident, $device:ident, $end:expr) => {
        impl sealed::Sealed for $type {}
        impl ForeignIndex for $type {
            type Device = $device;
            const END: u64 = $end;
            fn to_unsigned(self) -> Option<u64> {
                u64::try_from(self).ok()
            }
            fn to_signed(self) -> i64 {
                i64::try_from(self).unwrap_or(i64::MAX)
            }
        }
    };
}
foreign!(i32, u32, 1 << 31);
foreign!(u32, u32, u64::MAX);
foreign!(i64, u64, 1 << 63);
foreign!(u64, u64, u64::MAX);

/// How many of `count` columns, rows or the like numbers of a type can name: kernels compare with this, so that negative numbers are
/// past it.
pub(super) fn nameable<S: ForeignIndex>(count: usize) -> u64 {
    (count as u64).min(S::END)
}

/// The row offsets (not none) of `nnz` nonzeros (below 2³²), if they are.
pub(super) fn offsets<S: ForeignIndex>(found: &[S], nnz: usize) -> Result<Vec<u32>, FormatError> {
    let mut offsets = Vec::with_capacity(found.len());
    for (position, offset) in found.iter().enumerate() {
        let negative = || FormatError::Negative { what: "row offsets", position, got: offset.to_signed() };
        let offset = offset.to_unsigned().ok_or_else(negative)?;
        let too_large = |_| FormatError::TooLarge { what: "nonzeros", got: offset };
        offsets.push(u32::try_from(offset).map_err(too_large)?);
    }
    if offsets[0] != 0 {
        return Err(FormatError::OffsetsStart { got: offsets[0] });
    }
    for (row, ends) in offsets.windows(2).enumerate() {
        if ends[1] < ends[0] {
            return Err(FormatError::OffsetsDecrease { row, start: ends[0], end: ends[1] });
        }
    }
    match offsets[offsets.len() - 1] {
        end if end as usize == nnz => Ok(offsets),
        end => Err(FormatError::OffsetsEnd { expected: nnz, got: end }),
    }
}
