//! Memory of the host that a GPU reads by itself.
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::slice;

use crate::{Device, Element, Error, Result, Slice, SliceMut, Stream};

/// Elements in the host's memory, page-locked: a [`Stream`] copies them to its device without the host, while kernels run. Freed
/// when dropped, which waits for the device.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = lacuna::Device::simulator();
/// let stream = device.stream()?;
/// let mut host = device.host_buffer::<f32>(3)?;
/// host.copy_from_slice(&[1.0, 2.0, 3.0]);
/// let mut buffer = device.zeros::<f32>(2)?;
/// stream.upload(&host, 1..3, buffer.as_slice_mut())?;
/// assert_eq!(buffer.download(&stream)?, [2.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HostBuffer<T: Element> {
    device: Device,
    /// Dangling where there is no element.
    first: NonNull<T>,
    len: usize,
}

// SAFETY: it owns its elements, which may be sent.
unsafe impl<T: Element> Send for HostBuffer<T> {}
// SAFETY: shared references only read, and elements may be read from any thread.
unsafe impl<T: Element> Sync for HostBuffer<T> {}

impl Device {
    /// A new buffer of `len` zeros in the host's memory, for copies to this device.
    ///
    /// # Errors
    /// [`Error::TooLarge`] where nothing can hold them; what the driver says.
    pub fn host_buffer<T: Element>(&self, len: usize) -> Result<HostBuffer<T>> {
        let limit = isize::MAX as usize;
        let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= limit);
        let bytes = bytes.ok_or_else(|| Error::too_large("a host buffer, in elements,", limit, len))?;
        let mut first = NonNull::dangling();
        if bytes > 0 {
            first = self.backend().allocate_host(bytes)?.cast();
            // SAFETY: so many bytes were just allocated.
            unsafe { first.write_bytes(0, len) };
        }
        Ok(HostBuffer { device: self.clone(), first, len })
    }
}

impl<T: Element> Deref for HostBuffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: there are `len` elements, of which every bit pattern is valid.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl<T: Element> DerefMut for HostBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and they are borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.first.as_ptr(), self.len) }
    }
}

impl<T: Element> Drop for HostBuffer<T> {
    fn drop(&mut self) {
        if self.len > 0 {
            self.device.backend().free_host(self.first.cast(), self.len * size_of::<T>());
        }
    }
}

impl Stream {
    /// Copies some elements of a host buffer to the device. Returns at once; may be recorded. The elements are read when the stream
    /// comes to this: change them after that only.
    ///
    /// # Errors
    /// [`Error::Range`] where the buffer has not these elements; [`Error::Length`] where `to` is not as long;
    /// [`Error::OtherDevice`] where one is of another device; what the driver says.
    pub fn upload<T: Element>(
        &self,
        from: &HostBuffer<T>,
        range: Range<usize>,
        to: SliceMut<'_, T>,
    ) -> Result<()> {
        self.upload_to(from, range, to.as_slice())
    }

    /// As [`upload`](Self::upload), to a slice that its owner shares among streams that wait for one another.
    pub(crate) fn upload_to<T: Element>(
        &self,
        from: &HostBuffer<T>,
        range: Range<usize>,
        to: Slice<'_, T>,
    ) -> Result<()> {
        for (what, device) in [("the host buffer", &from.device), ("the destination", to.device())] {
            self.device().expect_same("upload", what, device)?;
        }
        let (start, end, len) = (range.start, range.end, from.len());
        let part = from.get(range).ok_or(Error::Range { start, end, len })?;
        let shape = || "as long as the destination".into();
        Error::expect_len("upload", "the source", shape, to.len(), part.len())?;
        if part.is_empty() {
            return Ok(());
        }
        // SAFETY: the part is in a host buffer, whose `Drop` waits for the device.
        unsafe { self.upload_raw(to.address(), bytemuck::cast_slice(part)) }
    }
}
