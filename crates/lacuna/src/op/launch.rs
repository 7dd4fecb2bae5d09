//! Launches, and what CUDA's grids can hold.
use std::any::TypeId;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{LazyLock, PoisonError, RwLock};

use lacuna_kernels::{Entry, Kernel};

use crate::backend::Launch;
use crate::{Error, Result, Stream};

/// CUDA's limit on thread blocks along x.
pub(crate) const MAX_GRID_X: usize = i32::MAX as usize;
/// CUDA's limit on thread blocks along y and along z.
pub(crate) const MAX_GRID_YZ: usize = 65_535;

/// `0..total` in spans of at most `most`: what one launch each can do.
pub(crate) fn spans(total: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    (0..total).step_by(most).map(move |start| start..total.min(start.saturating_add(most)))
}

/// Gives a launch of `entry` to the stream.
///
/// # Errors
/// [`Error::Launch`] where the kernel takes other arguments than `A`; what the device says.
pub(crate) fn launch<T: Copy, A: Copy + Send + Sync + 'static>(
    stream: &Stream,
    entry: &Entry<T>,
    grid: [u32; 3],
    args: &A,
) -> Result<()> {
    let taking = entry.taking::<A>().ok_or_else(|| {
        let args = std::any::type_name::<A>();
        Error::launch(entry, grid, format!("it does not take `{args}`; this is a fault of the library"))
    })?;
    stream.launch(&Launch::new(taking, grid, args))
}

/// Gives a launch of kernel `K`, which is an entry point of `table`, to the stream; `grid` is told its entry point.
///
/// # Errors
/// What the device says.
pub(crate) fn launch_kernel<K: Kernel>(
    stream: &Stream,
    table: &'static [Entry<K::Tile>],
    grid: impl FnOnce(&Entry<K::Tile>) -> [u32; 3],
    args: &K::Args,
) -> Result<()> {
    let entry = entry_of::<K>(table);
    launch(stream, entry, grid(entry), args)
}

/// The entry point of a kernel in its table. Tables have hundreds of lines: where a kernel stands is looked up once.
fn entry_of<K: Kernel>(table: &'static [Entry<K::Tile>]) -> &'static Entry<K::Tile> {
    static PLACES: LazyLock<RwLock<HashMap<TypeId, usize>>> = LazyLock::new(RwLock::default);
    let known = PLACES.read().unwrap_or_else(PoisonError::into_inner).get(&TypeId::of::<K>()).copied();
    // A list that is another one, in tests, has the kernel elsewhere.
    if let Some(entry) = known.and_then(|place| table.get(place)).filter(|entry| entry.runs::<K>()) {
        return entry;
    }
    let place = table.iter().position(|entry| entry.runs::<K>());
    let place = place.expect("the list has an entry point of each kernel");
    PLACES.write().unwrap_or_else(PoisonError::into_inner).insert(TypeId::of::<K>(), place);
    &table[place]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_cover_all_once() {
        let of = |total, most| spans(total, most).map(|span| (span.start, span.end)).collect::<Vec<_>>();
        assert_eq!(of(0, 3), []);
        assert_eq!(of(3, 3), [(0, 3)]);
        assert_eq!(of(7, 3), [(0, 3), (3, 6), (6, 7)]);
        assert_eq!(of(1, usize::MAX), [(0, 1)]);
    }

    #[test]
    fn other_arguments_are_refused() {
        let device = crate::Device::simulator();
        let entry = &lacuna_kernels::entries::spmm()[0];
        let error = launch(&device.stream().unwrap(), entry, [1, 1, 1], &7_u64).unwrap_err();
        assert!(matches!(&error, Error::Launch { why, .. } if why.contains("u64")), "{error}");
    }
}
