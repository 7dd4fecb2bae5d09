//! Checks on a problem before a vendor's library sees it.
//!
//! The libraries check little, and a bad address kills the CUDA context with all that is in it.

use std::ffi::c_void;

use crate::error::Error;

/// Bytes of an element; the peers know `f32` and 32-bit indices only.
const ELEMENT: u64 = 4;

/// A size that must be positive and fit a C `int`.
pub(crate) fn size(what: &'static str, got: usize) -> Result<i32, Error> {
    const LIMIT: usize = i32::MAX as usize;
    match i32::try_from(got) {
        Ok(0) => Err(Error::Empty { what }),
        Ok(size) => Ok(size),
        Err(_) => Err(Error::TooLarge { what, got, limit: LIMIT }),
    }
}

/// A checked array of 4-byte elements in device memory.
pub(crate) struct Array {
    what: &'static str,
    address: u64,
    end: u64,
}

impl Array {
    /// `rows · columns` elements at `address`. Both come from [`size`], so that the bytes cannot overflow.
    pub(crate) fn new(what: &'static str, address: u64, rows: i32, columns: i32) -> Result<Self, Error> {
        let bytes = u64::from(rows.unsigned_abs()) * u64::from(columns.unsigned_abs()) * ELEMENT;
        let end = end(what, address, bytes, ELEMENT)?;
        Ok(Self { what, address, end })
    }

    /// The address as the vendor's functions take it.
    pub(crate) fn pointer(&self) -> *mut c_void {
        pointer(self.address)
    }

    /// Refuses an output that shares memory with an input.
    pub(crate) fn disjoint_from(&self, inputs: &[&Array]) -> Result<(), Error> {
        match inputs.iter().find(|input| self.address < input.end && input.address < self.end) {
            Some(input) => Err(Error::Overlap { what: input.what }),
            None => Ok(()),
        }
    }
}

/// The end of `bytes` at `address`, which must be a non-null multiple of `alignment`.
pub(crate) fn end(what: &'static str, address: u64, bytes: u64, alignment: u64) -> Result<u64, Error> {
    let aligned = address != 0 && address.is_multiple_of(alignment);
    let end = if aligned { address.checked_add(bytes) } else { None };
    end.ok_or(Error::Address { what, address, bytes, alignment })
}

/// A device address as a pointer, for passing on: it is never read here.
pub(crate) fn pointer(address: u64) -> *mut c_void {
    std::ptr::without_provenance_mut(address as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_positive_and_fit_an_int() {
        assert_eq!(size("m", 7).unwrap(), 7);
        assert!(matches!(size("m", 0), Err(Error::Empty { what: "m" })));
        let error = size("nnz", 1 << 31).unwrap_err();
        assert!(
            error.to_string().starts_with("nnz is 2147483648, and the vendor's interface takes 2147483647")
        );
    }

    #[test]
    fn addresses_are_aligned_not_null_and_leave_room() {
        let far = 1 << 40;
        assert!(
            Array::new("b", far, i32::MAX, i32::MAX).is_err(),
            "it runs past the end of the address space"
        );
        for address in [0, 18, u64::MAX - 3] {
            let result = Array::new("b", address, 2, 3);
            assert!(matches!(result, Err(Error::Address { what: "b", bytes: 24, .. })), "{address:#x}");
        }
    }

    #[test]
    fn an_output_may_touch_an_input_but_not_share_it() {
        let c = Array::new("c", 1024, 4, 4).unwrap();
        let before = Array::new("a", 1024 - 16, 2, 2).unwrap();
        let after = Array::new("b", 1024 + 64, 2, 2).unwrap();
        assert!(c.disjoint_from(&[&before, &after]).is_ok());
        let inside = Array::new("b", 1024 + 60, 1, 1).unwrap();
        assert!(matches!(c.disjoint_from(&[&before, &inside]), Err(Error::Overlap { what: "b" })));
    }
}
