//! A matrix in packs: what kernels by warpgroups may read in place of values, where these stay as they are.
use std::marker::PhantomData;

use lacuna_gpu::GlobalPtr;
use lacuna_kernels::spmm::{Pack, PackShape, WidePack};
use lacuna_kernels::{Tf32, ValueType, entries};
use lacuna_matrix::Csr;

use super::choose::is_prepacked;
use crate::{Buffer, CsrMatrix, Device, Error, Index, Result, Value};

/// Packs may take this many times the memory of the nonzeros, and some more: units of sparser matrices have packs that are
/// nearly empty.
const MOST_TO_NONZEROS: usize = 4;
const MOST_BESIDES: usize = 1 << 20;

/// Banks of shared memory, of four bytes each.
const BANKS: usize = 32;

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
    /// The host packs, once.
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

/// A nonzero of a unit: its place, and the bits of its value.
type Nonzero = (u16, u32);

/// A matrix in packs of the shape `P` on the host.
struct Packed<P> {
    units: Vec<u32>,
    words: Vec<u32>,
    shape: PhantomData<P>,
}

impl<P: PackShape> Packed<P> {
    /// Packs a matrix, of whose values `bits` gives the bits; none if that takes too much memory.
    fn of<T: Value>(matrix: &Csr<T>, bits: impl Fn(usize) -> u32) -> Option<Self> {
        let nonzero_bytes = size_of::<T>() + size_of::<u32>();
        let most = MOST_BESIDES + MOST_TO_NONZEROS * matrix.nnz() * nonzero_bytes;
        let across = matrix.cols().div_ceil(P::COLUMNS);
        if across.saturating_mul(matrix.rows().div_ceil(P::ROWS)) * size_of::<u32>() > most {
            return None;
        }
        let mut packed = Self { units: vec![0], words: Vec::new(), shape: PhantomData };
        let mut contents: Vec<Vec<Nonzero>> = vec![Vec::new(); across];
        for first in (0..matrix.rows()).step_by(P::ROWS) {
            for row in first..matrix.rows().min(first + P::ROWS) {
                let range = matrix.pattern().row_range(row);
                for (&column, at) in matrix.col_indices()[range.clone()].iter().zip(range) {
                    let place = P::place((row - first) as u32, column % P::COLUMNS as u32);
                    contents[column as usize / P::COLUMNS].push((place, bits(at)));
                }
            }
            for unit in &mut contents {
                packed.add(unit);
                unit.clear();
            }
            if packed.words.len() * size_of::<u32>() > most {
                return None;
            }
        }
        Some(packed)
    }

    /// Adds the packs of a unit with these nonzeros.
    fn add(&mut self, unit: &mut Vec<Nonzero>) {
        fill_up::<P>(unit);
        let at = self.words.len();
        self.words.resize(at + unit.len() / P::VALUES * P::WORDS, 0);
        let packs = self.words[at..].chunks_exact_mut(P::WORDS);
        for (pack, nonzeros) in packs.zip(across_banks(unit).chunks(P::VALUES)) {
            for (index, &(place, bits)) in nonzeros.iter().enumerate() {
                P::write(pack, index, place, bits);
            }
        }
        self.units.push((self.words.len() / P::WORDS) as u32);
    }

    /// The first pack of each unit, and one past the last; and the packs.
    fn arrays(self) -> [Vec<u32>; 2] {
        [self.units, self.words]
    }
}

/// Fills a unit's last pack up, with zeros for places that have no nonzero: there are as many, for all places fill whole packs.
fn fill_up<P: PackShape>(unit: &mut Vec<Nonzero>) {
    let missing = unit.len().next_multiple_of(P::VALUES) - unit.len();
    if missing == 0 {
        return;
    }
    let mut taken = vec![false; P::ROWS * P::COLUMNS];
    unit.iter().for_each(|&(place, _)| taken[usize::from(place) / P::ELEMENT] = true);
    let free = (0..taken.len()).filter(|&place| !taken[place]).map(|place| ((P::ELEMENT * place) as u16, 0));
    unit.extend(free.take(missing));
}

/// The nonzeros in turns, one for each bank of shared memory: as long as all banks have some, 32 after each other lie in
/// different ones.
fn across_banks(unit: &[Nonzero]) -> Vec<Nonzero> {
    let mut banks: [Vec<Nonzero>; BANKS] = Default::default();
    for &nonzero in unit {
        banks[usize::from(nonzero.0) / 4 % BANKS].push(nonzero);
    }
    let turns = banks.iter().map(Vec::len).max().unwrap_or(0);
    (0..turns).flat_map(|turn| banks.iter().filter_map(move |bank| bank.get(turn).copied())).collect()
}

#[cfg(test)]
mod tests {
    use half::f16;
    use lacuna_matrix::generate;

    use super::*;

    fn matrix(rows: usize, cols: usize, sparsity: f64) -> Csr<f16> {
        let pattern = generate::uniform(rows, cols, sparsity, 7).unwrap();
        let values = generate::random_values(pattern.nnz(), 8);
        Csr::with_values(pattern, values).unwrap().map_values(f16::from_f32)
    }

    fn packed(matrix: &Csr<f16>) -> Packed<Pack> {
        let halves: &[u16] = bytemuck::cast_slice(matrix.values());
        Packed::of(matrix, |at| halves[at].into()).unwrap()
    }

    fn packed_singles(matrix: &Csr<f32>) -> Packed<WidePack<Tf32>> {
        Packed::of(matrix, |at| matrix.values()[at].to_bits()).unwrap()
    }

    /// What a unit's packs put into a stage.
    fn stage<P: PackShape>(packed: &Packed<P>, unit: usize) -> Vec<Option<u32>> {
        let mut stage = vec![None; P::ROWS * P::COLUMNS];
        let packs = packed.units[unit] as usize..packed.units[unit + 1] as usize;
        for pack in packed.words.chunks_exact(P::WORDS).skip(packs.start).take(packs.len()) {
            for index in 0..P::VALUES {
                let (place, bits) = P::read(pack, index);
                let slot = &mut stage[usize::from(place) / P::ELEMENT];
                assert_eq!(*slot, None, "two nonzeros for one place");
                *slot = Some(bits);
            }
        }
        stage
    }

    /// Asserts that the nonzeros of a matrix, of whose values `bits` gives the bits, have come to their places.
    fn assert_in_place<P: PackShape, T: Value>(packed: &Packed<P>, matrix: &Csr<T>, bits: fn(&T) -> u32) {
        let [rows, cols] = [matrix.rows(), matrix.cols()];
        let across = cols.div_ceil(P::COLUMNS);
        assert_eq!(packed.units.len(), rows.div_ceil(P::ROWS) * across + 1);
        let mut nonzeros = 0;
        for unit in 0..packed.units.len() - 1 {
            let stage = stage(packed, unit);
            let (first_row, first_column) = (unit / across * P::ROWS, unit % across * P::COLUMNS);
            for (row, column) in (0..P::ROWS).flat_map(|r| (0..P::COLUMNS).map(move |c| (r, c))) {
                let value = stage[usize::from(P::place(row as u32, column as u32)) / P::ELEMENT];
                let (row, column) = (first_row + row, first_column + column);
                let (columns, values) = if row < rows { matrix.row(row) } else { (&[][..], &[][..]) };
                let at = columns.binary_search(&(column as u32)).ok();
                let expected = at.map(|at| bits(&values[at]));
                nonzeros += usize::from(expected.is_some());
                assert_eq!(value.unwrap_or(0), expected.unwrap_or(0), "{row} {column}");
            }
        }
        assert_eq!(nonzeros, matrix.nnz());
    }

    #[test]
    fn each_nonzero_comes_to_its_place() {
        for (rows, cols, sparsity) in [(64, 128, 0.9), (130, 300, 0.7), (1, 129, 0.0), (70, 260, 0.99)] {
            let matrix = matrix(rows, cols, sparsity);
            assert_in_place(&packed(&matrix), &matrix, |value| value.to_bits().into());
            let singles = matrix.map_values(|value| f32::from(value) / 3.0);
            assert_in_place(&packed_singles(&singles), &singles, |value| value.to_bits());
        }
    }

    #[test]
    fn a_full_unit_needs_no_filling_and_an_empty_one_no_pack() {
        assert_eq!(packed(&matrix(64, 128, 0.0)).units, [0, 64]);
        assert_eq!(packed(&Csr::new(3, 5, vec![0; 4], vec![], vec![]).unwrap()).units, [0, 0]);
        assert_eq!(packed(&Csr::new(0, 5, vec![0], vec![], vec![]).unwrap()).units, [0]);
        let full = matrix(128, 32, 0.0).map_values(f32::from);
        assert_eq!(packed_singles(&full).units, [0, 64]);
    }

    /// Asserts that all nonzeros of a turn lie in different banks.
    fn assert_apart<P: PackShape>(packed: &Packed<P>) {
        let pack = &packed.words[..P::WORDS];
        for turn in (0..P::VALUES).step_by(BANKS) {
            let places = (turn..turn + BANKS).map(|index| P::read(pack, index).0);
            let banks = places.fold(0_u32, |banks, place| banks | 1 << (place / 4 % 32));
            assert_eq!(banks, u32::MAX);
        }
    }

    #[test]
    fn nonzeros_that_are_stored_together_lie_in_different_banks() {
        let half = matrix(64, 128, 0.5);
        assert_apart(&packed(&half));
        assert_apart(&packed_singles(&half.map_values(f32::from)));
    }

    #[test]
    fn what_would_be_mostly_filling_is_not_packed() {
        // A nonzero in each unit.
        let (rows, cols) = (64 * 40, 128 * 80);
        let offsets: Vec<u32> = (0..=rows).map(|row: u32| row.div_ceil(64) * 80).collect();
        let columns: Vec<u32> = (0..40).flat_map(|_| (0..80).map(|unit| unit * 128)).collect();
        let matrix = Csr::new(rows as usize, cols, offsets, columns, vec![f16::ONE; 3200]).unwrap();
        assert!(Packed::<Pack>::of(&matrix, |_| 0).is_none());
    }
}
