//! What can go wrong with a library that is there.

use crate::cublas::Math;
use crate::data_type::DataType;
use crate::status::Status;

/// Why a problem could not be set up or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size is 0.
    #[error("{what} is 0: there is nothing to compute; leave this case out")]
    Empty {
        /// The size.
        what: &'static str,
    },
    /// A size does not fit the vendor's interface.
    #[error("{what} is {got}, and the vendor's interface takes {limit} at most; take a smaller problem")]
    TooLarge {
        /// The size.
        what: &'static str,
        /// What was asked.
        got: usize,
        /// The largest that fits.
        limit: usize,
    },
    /// An address is null, not a multiple of what it must be, or too near the end of the address space.
    #[error(
        "{what}: device address {address:#x} cannot hold {bytes} bytes aligned to {alignment}; pass the address \
         of a device array of that size"
    )]
    Address {
        /// The array.
        what: &'static str,
        /// The address given.
        address: u64,
        /// The bytes that the array needs.
        bytes: u64,
        /// The alignment that it needs, in bytes.
        alignment: u64,
    },
    /// The output shares memory with an input.
    #[error("the output overlaps {what} in device memory; give it an array of its own")]
    Overlap {
        /// The input.
        what: &'static str,
    },
    /// The channels or the filters of a convolution do not split into its groups.
    #[error(
        "{channels} channels and {filters} filters do not split into {groups} groups; take a number that divides both"
    )]
    Groups {
        /// The channels of the input.
        channels: usize,
        /// The channels of the output.
        filters: usize,
        /// The groups asked for.
        groups: usize,
    },
    /// The arithmetic is not one for values of this type.
    #[error("{} is for values of f32, and these are {data_type}; take {}", .math.name(), Math::Fp32.name())]
    Math {
        /// The arithmetic asked for.
        math: Math,
        /// The type of the values.
        data_type: DataType,
    },
    /// The caller's allocator gave no workspace.
    #[error("no workspace of {bytes} bytes on the GPU: {source}")]
    Allocation {
        /// The bytes asked for.
        bytes: usize,
        /// The allocator's reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A vendor's function failed.
    #[error("{function} returned {status}: {}", .status.advice())]
    Call {
        /// The function, as in the vendor's header.
        function: &'static str,
        /// What it returned.
        status: Status,
    },
}

impl Error {
    /// Whether the library has no such operation for this problem or this GPU: the caller should skip it.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Error::Call { status, .. } if status.is_unsupported())
    }
}
