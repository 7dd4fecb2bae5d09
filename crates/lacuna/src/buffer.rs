//! Memory of a device.
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use lacuna_gpu::{GlobalMut, GlobalPtr};

use crate::{Device, Element, Error, Result, Stream};

/// Elements in a device's memory, freed when dropped. Addresses are multiples of 256 bytes.
#[derive(Debug)]
pub struct Buffer<T: Element> {
    device: Device,
    /// Address of the first element; dangling where there is none.
    address: u64,
    len: usize,
    elements: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    pub(crate) fn new(device: Device, len: usize) -> Result<Self> {
        let limit = isize::MAX as usize;
        let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= limit);
        let bytes = bytes.ok_or_else(|| Error::too_large("a buffer, in elements,", limit, len))?;
        let address = if bytes == 0 { 256 } else { device.backend().allocate(bytes)? };
        device.count_made(bytes);
        Ok(Self { device, address, len, elements: PhantomData })
    }

    /// The device that holds it.
    pub fn device(&self) -> &Device {
        &self.device
    }
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of it.
    pub fn as_slice(&self) -> Slice<'_, T> {
        Slice { device: &self.device, address: self.address, len: self.len, elements: PhantomData }
    }
    /// All of it, to write.
    pub fn as_slice_mut(&mut self) -> SliceMut<'_, T> {
        SliceMut { slice: self.as_slice() }
    }
    /// A part of it.
    ///
    /// # Errors
    /// [`Error::Range`] where the range is not inside.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Slice<'_, T>> {
        self.as_slice().part(range)
    }
    /// A part of it, to write.
    ///
    /// # Errors
    /// [`Error::Range`] where the range is not inside.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<SliceMut<'_, T>> {
        Ok(SliceMut { slice: self.as_slice().part(range)? })
    }

    /// Replaces the contents, after all work given to the device so far.
    ///
    /// # Errors
    /// [`Error::Length`] where `contents` is not as long as the buffer.
    pub fn upload(&mut self, contents: &[T]) -> Result<()> {
        self.as_slice_mut().upload(contents)
    }

    /// The contents, after the work given to `stream` so far.
    ///
    /// # Errors
    /// What that work failed with, and what the driver says.
    pub fn download(&self, stream: &Stream) -> Result<Vec<T>> {
        self.as_slice().download(stream)
    }
}

impl<T: Element> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.len > 0 {
            self.device.backend().free(self.address);
            self.device.count_gone(self.len * size_of::<T>());
        }
    }
}

/// A part of a buffer, to read.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'b, T: Element> {
    device: &'b Device,
    address: u64,
    len: usize,
    elements: PhantomData<T>,
}

impl<'b, T: Element> Slice<'b, T> {
    /// `len` elements at `address` of the device's memory that are not a buffer's: another library's on the same GPU. They are
    /// neither copied nor freed.
    ///
    /// ```
    /// # use lacuna::{Device, Slice};
    /// # fn main() -> lacuna::Result<()> {
    /// let device = Device::simulator();
    /// let others = device.upload(&[1.0_f32, 2.0, 3.0])?;
    /// // SAFETY: the buffer stays, and nobody writes it.
    /// let slice = unsafe { Slice::<f32>::from_raw(&device, others.as_slice().address(), 3)? };
    /// assert_eq!(slice.download(&device.stream()?)?, [1.0, 2.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// - From this call on until all work that was given the slice is done, the elements are live memory that kernels of
    ///   `device` can read: allocated in its primary context, or reachable from it. On the simulator only its own memory is; a
    ///   kernel's access to another address is the simulator's error.
    /// - Whatever writes them comes before that work, or after it, in the order of streams.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an address that is not a multiple of an element's size, one of 0 where there are elements,
    /// and one past which there is no room for as many.
    pub unsafe fn from_raw(device: &'b Device, address: u64, len: usize) -> Result<Self> {
        let bytes = size_of::<T>();
        let expected = || {
            format!("of {len} elements of {bytes} bytes: a multiple of {bytes}, not 0, and with room for all")
        };
        let ends = len.checked_mul(bytes).and_then(|all| address.checked_add(all as u64));
        let is_right = len == 0 || (address != 0 && address.is_multiple_of(bytes as u64) && ends.is_some());
        Error::expect(is_right, "foreign memory", "the address", expected, format_args!("{address:#x}"))?;
        // The address of nothing is one that all vectors are aligned to.
        let address = if len == 0 { 256 } else { address };
        Ok(Self { device, address, len, elements: PhantomData })
    }

    /// The device that holds it.
    pub fn device(&self) -> &'b Device {
        self.device
    }
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The device's address of the first element, for other libraries on the same GPU.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Elements that were there when this was checked.
    pub(crate) fn of_checked(device: &'b Device, address: u64, len: usize) -> Self {
        Self { device, address, len, elements: PhantomData }
    }

    /// The same as kernels take it, with elements of their type.
    pub(crate) fn pointer<D>(&self) -> GlobalPtr<D> {
        GlobalPtr::from_address(self.address)
    }

    /// A part of it.
    ///
    /// # Errors
    /// [`Error::Range`] where the range is not inside.
    pub fn part(&self, range: impl RangeBounds<usize>) -> Result<Self> {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len,
        };
        if start > end || end > self.len {
            return Err(Error::Range { start, end, len: self.len });
        }
        Ok(Self { address: self.address + (start * size_of::<T>()) as u64, len: end - start, ..*self })
    }

    /// The contents, after the work given to `stream` so far.
    ///
    /// # Errors
    /// What that work failed with, and what the driver says.
    pub fn download(&self, stream: &Stream) -> Result<Vec<T>> {
        self.device.expect_same("download", "the stream", stream.device())?;
        stream.synchronize()?;
        let mut contents = vec![T::zeroed(); self.len];
        if self.len > 0 {
            self.device.backend().download(self.address, bytemuck::cast_slice_mut(&mut contents))?;
        }
        Ok(contents)
    }
}

/// A part of a buffer, to write.
#[derive(Debug)]
pub struct SliceMut<'b, T: Element> {
    slice: Slice<'b, T>,
}

impl<'b, T: Element> SliceMut<'b, T> {
    /// As [`Slice::from_raw`], to write.
    ///
    /// # Safety
    /// As for [`Slice::from_raw`], and kernels may write the elements: whatever reads or writes them otherwise comes before the
    /// work that is given the slice, or after it, in the order of streams.
    ///
    /// # Errors
    /// As for [`Slice::from_raw`].
    pub unsafe fn from_raw(device: &'b Device, address: u64, len: usize) -> Result<Self> {
        // SAFETY: as promised by the caller.
        Ok(Self { slice: unsafe { Slice::from_raw(device, address, len)? } })
    }

    /// The same part, to read.
    pub fn as_slice(&self) -> Slice<'_, T> {
        self.slice
    }
    /// The device that holds it.
    pub fn device(&self) -> &'b Device {
        self.slice.device
    }
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.slice.len
    }
    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.slice.is_empty()
    }
    /// The device's address of the first element.
    pub fn address(&self) -> u64 {
        self.slice.address
    }
    /// Elements that were there when this was checked, and are nobody else's.
    pub(crate) fn of_checked(device: &'b Device, address: u64, len: usize) -> Self {
        Self { slice: Slice::of_checked(device, address, len) }
    }
    /// The same as kernels take it, with elements of their type.
    pub(crate) fn pointer<D>(&self) -> GlobalMut<D> {
        GlobalMut::from_address(self.slice.address)
    }
    /// A part of it, to write.
    ///
    /// # Errors
    /// [`Error::Range`] where the range is not inside.
    pub fn part(&mut self, range: impl RangeBounds<usize>) -> Result<SliceMut<'_, T>> {
        Ok(SliceMut { slice: self.slice.part(range)? })
    }
    /// Its first `middle` elements, and the rest: two parts that can be used at once, one of them read and the other written.
    ///
    /// ```
    /// # use lacuna::Device;
    /// # fn main() -> lacuna::Result<()> {
    /// let device = Device::simulator();
    /// let stream = device.stream()?;
    /// let mut buffer = device.upload(&[1_u32, 2, 0, 0, 0])?;
    /// let (from, rest) = buffer.as_slice_mut().split_at(2)?;
    /// let (to, _) = rest.split_at(2)?;
    /// stream.copy(from.as_slice(), to)?;
    /// assert_eq!(buffer.download(&stream)?, [1, 2, 1, 2, 0]);
    /// assert!(buffer.as_slice_mut().split_at(6).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Range`] where it has fewer elements.
    pub fn split_at(self, middle: usize) -> Result<(Self, Self)> {
        let [first, rest] = [self.slice.part(..middle)?, self.slice.part(middle..)?];
        Ok((Self { slice: first }, Self { slice: rest }))
    }
    /// A part of it, for as long as it.
    pub(crate) fn into_part(self, range: impl RangeBounds<usize>) -> Result<Self> {
        Ok(Self { slice: self.slice.part(range)? })
    }
    /// The same part, for a shorter time.
    pub fn reborrow(&mut self) -> SliceMut<'_, T> {
        SliceMut { slice: self.slice }
    }

    /// Replaces the contents by zeros, after all work given to the device so far.
    pub(crate) fn fill_zero(&mut self) -> Result<()> {
        let bytes = self.len() * size_of::<T>();
        if bytes == 0 { Ok(()) } else { self.slice.device.backend().fill_zero(self.slice.address, bytes) }
    }

    /// Replaces the contents, after all work given to the device so far.
    ///
    /// # Errors
    /// [`Error::Length`] where `contents` is not as long as the slice.
    pub fn upload(&mut self, contents: &[T]) -> Result<()> {
        let shape = || "as long as the device's".into();
        Error::expect_len("upload", "the host's slice", shape, self.len(), contents.len())?;
        if contents.is_empty() {
            return Ok(());
        }
        self.slice.device.backend().upload(self.slice.address, bytemuck::cast_slice(contents))
    }
}
