//! Bags from offsets and indices.
use lacuna_kernels::entries;
use lacuna_kernels::import::{Indices, IndicesArgs};

use super::{ForeignIndex, OPERATION, first_wrong, grid, nameable};
use crate::op::launch_kernel;
use crate::ops::nhot::{BagIndex, Bags, check_offsets};
use crate::{Error, Result, Slice, Stream};

impl<I: BagIndex> Bags<I> {
    /// As [`new`](Bags::new), of arrays that are on the device already, in another program's form: of 32 or 64 bits, with a sign or
    /// without. The indices stay there, where a kernel checks and copies them; the offsets are copied to the host. The arrays are
    /// read when `stream` comes to this, and not kept. The call waits for the device.
    ///
    /// ```
    /// use lacuna::{Bags, Device};
    ///
    /// # fn main() -> lacuna::Result<()> {
    /// let device = Device::simulator();
    /// let stream = device.stream()?;
    /// let (offsets, indices) = (device.upload(&[0_i64, 2, 2, 3])?, device.upload(&[7_i64, 1, 7])?);
    /// let bags = Bags::<u32>::from_indices(&stream, 10, offsets.as_slice(), indices.as_slice())?;
    /// assert_eq!((bags.bags(), bags.nnz()), (3, 3));
    ///
    /// let error = Bags::<u32>::from_indices(&stream, 7, offsets.as_slice(), indices.as_slice()).unwrap_err();
    /// assert!(error.to_string().contains("below 7, the rows of the table"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for `new`, and [`Error::OtherDevice`].
    pub fn from_indices<S: ForeignIndex>(
        stream: &Stream,
        table_rows: usize,
        offsets: Slice<'_, S>,
        indices: Slice<'_, S>,
    ) -> Result<Self> {
        let (device, count) = (stream.device(), indices.len());
        Self::expect_sizes(table_rows, offsets.len(), count)?;
        device.expect_same(OPERATION, "the offsets", offsets.device())?;
        device.expect_same(OPERATION, "the indices", indices.device())?;
        let host_offsets: Vec<usize> =
            offsets.download(stream)?.into_iter().enumerate().map(number).collect::<Result<_>>()?;
        check_offsets(&host_offsets, count)?;

        let mut copied = device.uninitialized::<I>(count)?;
        if count > 0 {
            let mut verdict = device.zeros::<u32>(1)?;
            let args = IndicesArgs::<S::Device, I> {
                source: indices.pointer(),
                indices: copied.as_slice_mut().pointer(),
                verdict: verdict.as_slice_mut().pointer(),
                rows: nameable::<S>(table_rows),
                count: count as u32,
            };
            launch_kernel::<Indices<S::Device, I>>(stream, entries::import(), grid(args.count), &args)?;
            // This waits for the stream, so that others may use the bags at once.
            if let Some(at) = first_wrong(stream, &verdict)? {
                let wrong = indices.part(at..=at)?.download(stream)?[0];
                let expected = format!("below {table_rows}, the rows of the table");
                let got = format!("{wrong:?} (number {at} of {count})");
                return Err(Error::parameter(OPERATION, "an index", expected, got));
            }
        }
        Self::of_checked(table_rows, &host_offsets, copied)
    }
}

/// The offset at this place, if it is one.
fn number<S: ForeignIndex>((at, offset): (usize, S)) -> Result<usize> {
    let number = offset.to_unsigned().and_then(|offset| usize::try_from(offset).ok());
    let got = || format!("{offset:?} (number {at})");
    number.ok_or_else(|| Error::parameter(OPERATION, "the offsets", "in ascending order, from 0", got()))
}
