//! Checks on a problem before a vendor's library sees it.
//!
//! The libraries check little, and a bad address kills the CUDA context with all that is in it.

use std::ffi::c_void;

use crate::error::Error;

/// Bytes of an index or an offset of a sparse matrix.
pub(crate) const INDEX_BYTES: usize = 4;

/// A size that must be positive and fit a C `int`.
pub(crate) fn size(what: &'static str, got: usize) -> Result<i32, Error> {
    const LIMIT: usize = i32::MAX as usize;
    match i32::try_from(got) {
        Ok(0) => Err(Error::Empty { what }),
        Ok(size) => Ok(size),
        Err(_) => Err(Error::TooLarge { what, got, limit: LIMIT }),
    }
}

/// A checked array in device memory.
pub(crate) struct Array {
    what: &'static str,
    address: u64,
    end: u64,
}

impl Array {
    /// `rows · columns` elements of `element` bytes, at most 4, at `address`. Rows and columns come from [`size`], so
    /// that the bytes cannot overflow.
    pub(crate) fn new(
        what: &'static str,
        address: u64,
        (rows, columns): (i32, i32),
        element: usize,
    ) -> Result<Self, Error> {
        Self::batch(what, address, 1, (rows, columns), element)
    }

    /// `batch` times as many; the batch comes from [`size`], too.
    pub(crate) fn batch(
        what: &'static str,
        address: u64,
        batch: i32,
        (rows, columns): (i32, i32),
        element: usize,
    ) -> Result<Self, Error> {
        let bytes = u64::from(rows.unsigned_abs()) * u64::from(columns.unsigned_abs()) * element as u64;
        // Where the product overflows it is past the end of the address space, and is refused as that.
        let bytes = bytes.saturating_mul(batch.unsigned_abs().into());
        let end = end(what, address, bytes, element as u64)?;
        Ok(Self { what, address, end })
    }

    /// The address.
    pub(crate) fn address(&self) -> u64 {
        self.address
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
            Array::new("b", far, (i32::MAX, i32::MAX), 4).is_err(),
            "it runs past the end of the address space"
        );
        assert!(
            Array::batch("b", far, i32::MAX, (i32::MAX, i32::MAX), 4).is_err(),
            "its bytes are more than 64 bits count"
        );
        for address in [0, 18, u64::MAX - 3] {
            let result = Array::new("b", address, (2, 3), 4);
            assert!(matches!(result, Err(Error::Address { what: "b", bytes: 24, .. })), "{address:#x}");
        }
    }

    #[test]
    fn narrow_elements_need_less_room_and_alignment() {
        let result = Array::new("b", 17, (2, 3), 2);
        assert!(matches!(result, Err(Error::Address { bytes: 12, alignment: 2, .. })));
        let (c, b) = (Array::new("c", 1018, (1, 3), 2).unwrap(), Array::new("b", 1024, (1, 1), 2).unwrap());
        assert!(c.disjoint_from(&[&b]).is_ok());
    }

    #[test]
    fn an_output_may_touch_an_input_but_not_share_it() {
        let c = Array::new("c", 1024, (4, 4), 4).unwrap();
        let before = Array::new("a", 1024 - 16, (2, 2), 4).unwrap();
        let after = Array::new("b", 1024 + 64, (2, 2), 4).unwrap();
        assert!(c.disjoint_from(&[&before, &after]).is_ok());
        let inside = Array::new("b", 1024 + 60, (1, 1), 4).unwrap();
        assert!(matches!(c.disjoint_from(&[&before, &inside]), Err(Error::Overlap { what: "b" })));
    }
}
