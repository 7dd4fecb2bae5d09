//! A matrix in packs: what kernels by warpgroups may read in place of values, where these stay as they are.
use lacuna_gpu::GlobalPtr;
use lacuna_kernels::spmm::{Pack, WidePack};
use lacuna_kernels::{Tf32, ValueType, entries};
use lacuna_matrix::Csr;

use super::choose::is_prepacked;
use super::packed::Packed;
use crate::{Buffer, CsrMatrix, Device, Error, Index, Result, Value};

/// A matrix in packs on a device.
#[derive(Debug)]
pub(crate) struct Packs {
    /// The first pack of each unit, and one past the last.
    units: Buffer<u32>,
    packs: Buffer<u32>,
}

impl<T: Value, I: Index> CsrMatrix<T, I> {
    /// Puts a matrix on a device whose values will stay as they are, as those of a trained network do. For compute
    /// capability 9.0 they lie there twice, the second time in the order in which tensor cores take them, for which SpMM has faster
    /// kernels: 4 bytes more for each nonzero, 6 for `f32`, and somewhat more where A is very sparse (if it were more than four
    /// times the memory of the nonzeros, they are left as they are). What would change the values is refused with [`Error::Prepacked`](crate::Error::Prepacked). A plan
    /// for this matrix is for it alone, and not for others of its pattern.
    ///
    /// The host packs, once, with all cores that rayon's global pool has.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use half::f16;
    /// # use lacuna::matrix::{Csr, generate};
    /// # let pattern = generate::uniform(64, 256, 0.9, 1)?;
    /// # let values = generate::random_values(pattern.nnz(), 2);
    /// # let weights = Csr::with_values(pattern, values)?.map_values(f16::from_f32);
    /// let device = lacuna::Device::best()?;
    /// let a = lacuna::CsrMatrix::<f16>::prepacked(&device, &weights)?;
    /// let plan = lacuna::Spmm::plan(&a, 32)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As `with_index`.
    pub fn prepacked(device: &Device, matrix: &Csr<T>) -> Result<Self> {
        let prepacked = Self::with_index(device, matrix)?.fix_values();
        let derived = prepacked.derived_from_values().expect("its values are fixed");
        derived.get_or_make(|| Packs::new(device, matrix))?;
        Ok(prepacked)
    }

    /// Whether its weights are prepacked for kernels that the device has.
    pub(super) fn is_prepacked(&self) -> bool {
        self.packs().is_some()
    }

    /// The prepacked weights, if it is prepacked and the device has kernels for that.
    pub(super) fn packs(&self) -> Option<&Packs> {
        self.derived_from_values()?.get::<Option<Packs>>()?.as_ref()
    }
}

impl Packs {
    /// Packs a matrix, if the device has kernels for packs of its type, and they do not take too much memory.
    pub(crate) fn new<T: Value>(device: &Device, matrix: &Csr<T>) -> Result<Option<Self>> {
        if !may_read_packs(T::TYPE, device.info().sm) {
            return Ok(None);
        }
        let packed = match matrix.values() {
            values if size_of::<T>() == 2 => {
                let halves: &[u16] = bytemuck::cast_slice(values);
                Packed::<Pack>::of(matrix, |at| halves[at].into()).map(Packed::arrays)
            }
            values => {
                let words: &[u32] = bytemuck::cast_slice(values);
                Packed::<WidePack<Tf32>>::of(matrix, |at| words[at]).map(Packed::arrays)
            }
        };
        let Some([units, packs]) = packed else { return Ok(None) };
        Error::expect_at_most("the words of packs", u32::MAX as usize, packs.len())?;
        Ok(Some(Self { units: device.upload(&units)?, packs: device.upload(&packs)? }))
    }

    /// As the kernels take them.
    pub(crate) fn pointers(&self) -> (GlobalPtr<u32>, GlobalPtr<u32>) {
        (self.units.as_slice().pointer(), self.packs.as_slice().pointer())
    }
}

/// Whether a device has kernels that read packs of this type.
fn may_read_packs(value: ValueType, sm: u32) -> bool {
    let of_type = entries::spmm().iter().filter(|entry| entry.tile.value == value);
    of_type.filter(|entry| is_prepacked(&entry.tile)).any(|entry| entry.runs_on(sm))
}
