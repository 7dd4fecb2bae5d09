//! Embedding-bag lookup: sums or means of the rows of a dense table that bags of indices name, and their gradients.
//!
//! Source: Argueta and Chiang, *Accelerating Sparse Matrix Operations in Neural Networks on Graphics Processing Units* (ACL
//! 2019).
mod backward;
mod bags;
mod choose;
mod indices;
mod launch;
mod options;
mod plan;
mod sort;
mod transposed;

pub(in crate::ops) use bags::check_offsets;
pub use bags::{BagIndex, Bags};
pub use choose::{Algorithm, Choice, Problem, choose};
pub use indices::DeviceIndices;
pub use options::{Layout, Mode, Options};
pub use plan::NHot;

use crate::{Device, Error, Result, Value};

/// What errors call this operation.
const OPERATION: &str = "embedding-bag lookup";

/// The sums of the rows that bags name, once, on the best device: `table` has rows of `columns` elements; bag `i` has the
/// indices `offsets[i]..offsets[i + 1]`. The result has a row a bag.
///
/// It moves everything to the device and back. Those who look up often keep the table there, [`Bags`], and an [`NHot`] plan.
///
/// # Errors
/// [`Error::Length`] for a table that is not whole rows; those of [`Device::best`], [`Bags::new`], [`NHot::plan`] and
/// [`NHot::run`].
pub fn nhot<T: Value, I: BagIndex>(
    table: &[T],
    columns: usize,
    offsets: &[usize],
    indices: &[I],
) -> Result<Vec<T>> {
    let rows = table.len().checked_div(columns).unwrap_or(0);
    let shape = || format!("rows of {columns}");
    Error::expect_len(OPERATION, "the table", shape, rows * columns, table.len())?;
    let device = Device::best()?;
    let stream = device.stream()?;
    let bags = Bags::new(&device, rows, offsets, indices)?;
    let plan = NHot::plan(&bags, columns)?;
    let table = device.upload(table)?;
    let mut out = device.uninitialized(plan.output_len())?;
    plan.run(&stream, &bags, table.as_slice(), out.as_slice_mut())?;
    out.download(&stream)
}
