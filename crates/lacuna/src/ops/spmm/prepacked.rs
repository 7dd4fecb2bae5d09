//! A matrix in packs: what kernels by warpgroups may read in place of values, where these stay as they are.
use lacuna_gpu::GlobalPtr;
use lacuna_kernels::spmm::Pack;
use lacuna_kernels::{ValueType, entries};
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
    /// Puts a matrix on a device whose values will stay as they are, as those of a trained network do. 16-bit values for compute
    /// capability 9.0 lie there twice, the second time in the order in which tensor cores take them, for which SpMM has faster
    /// kernels: 4 bytes more for each nonzero, and somewhat more where A is very sparse (if it were more than four times the
    /// memory of the nonzeros, they are left as they are). What would change the values is refused with [`Error::Prepacked`](crate::Error::Prepacked). A plan
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
        let values: &[u16] = bytemuck::cast_slice(matrix.values());
        let Some(packed) = Packed::of(matrix, values) else { return Ok(None) };
        let packs = packed.halves.len() / (2 * Pack::WORDS);
        Error::expect_at_most("the number of packs", u32::MAX as usize, packs)?;
        let word = |&[low, high]: &[u16; 2]| u32::from(high) << 16 | u32::from(low);
        let words: Vec<u32> = packed.halves.as_chunks().0.iter().map(word).collect();
        Ok(Some(Self { units: device.upload(&packed.units)?, packs: device.upload(&words)? }))
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
type Nonzero = (u16, u16);

/// A matrix in packs on the host.
struct Packed {
    units: Vec<u32>,
    /// The packs' half words.
    halves: Vec<u16>,
}

impl Packed {
    /// Packs a matrix whose values have these bits; none if that takes too much memory.
    fn of<T: Value>(matrix: &Csr<T>, values: &[u16]) -> Option<Self> {
        let most = MOST_BESIDES + MOST_TO_NONZEROS * values.len() * (size_of::<T>() + size_of::<u32>());
        let across = matrix.cols().div_ceil(Pack::COLUMNS);
        if across.saturating_mul(matrix.rows().div_ceil(Pack::ROWS)) * size_of::<u32>() > most {
            return None;
        }
        let mut packed = Self { units: vec![0], halves: Vec::new() };
        let mut contents: Vec<Vec<Nonzero>> = vec![Vec::new(); across];
        for first in (0..matrix.rows()).step_by(Pack::ROWS) {
            for row in first..matrix.rows().min(first + Pack::ROWS) {
                let range = matrix.pattern().row_range(row);
                for (&column, &value) in matrix.col_indices()[range.clone()].iter().zip(&values[range]) {
                    let place = Pack::place((row - first) as u32, column % Pack::COLUMNS as u32);
                    contents[column as usize / Pack::COLUMNS].push((place, value));
                }
            }
            for unit in &mut contents {
                packed.add(unit);
                unit.clear();
            }
            if packed.halves.len() * size_of::<u16>() > most {
                return None;
            }
        }
        Some(packed)
    }

    /// Adds the packs of a unit with these nonzeros.
    fn add(&mut self, unit: &mut Vec<Nonzero>) {
        fill_up(unit);
        let at = self.halves.len();
        self.halves.resize(at + 2 * unit.len(), 0);
        let packs = self.halves[at..].chunks_exact_mut(2 * Pack::WORDS);
        for (pack, nonzeros) in packs.zip(across_banks(unit).chunks(Pack::VALUES)) {
            for (index, &(place, value)) in nonzeros.iter().enumerate() {
                let [value_at, place_at] = Pack::half_words(index);
                (pack[value_at], pack[place_at]) = (value, place);
            }
        }
        self.units.push((self.halves.len() / (2 * Pack::WORDS)) as u32);
    }
}

/// Fills a unit's last pack up, with zeros for places that have no nonzero: there are as many, for all places fill whole packs.
fn fill_up(unit: &mut Vec<Nonzero>) {
    let missing = unit.len().next_multiple_of(Pack::VALUES) - unit.len();
    if missing == 0 {
        return;
    }
    let mut taken = [false; Pack::PLACES];
    unit.iter().for_each(|&(place, _)| taken[usize::from(place) / 2] = true);
    let free = (0..Pack::PLACES).filter(|&place| !taken[place]).map(|place| (2 * place as u16, 0));
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

    fn packed(matrix: &Csr<f16>) -> Packed {
        Packed::of(matrix, bytemuck::cast_slice(matrix.values())).unwrap()
    }

    /// What a unit's packs put into a stage.
    fn stage(packed: &Packed, unit: usize) -> Vec<Option<u16>> {
        let mut stage = vec![None; Pack::PLACES];
        let packs = packed.units[unit] as usize..packed.units[unit + 1] as usize;
        for pack in packed.halves.chunks_exact(2 * Pack::WORDS).skip(packs.start).take(packs.len()) {
            for index in 0..Pack::VALUES {
                let [value, place] = Pack::half_words(index).map(|at| pack[at]);
                let slot = &mut stage[usize::from(place) / 2];
                assert_eq!(*slot, None, "two nonzeros for one place");
                *slot = Some(value);
            }
        }
        stage
    }

    #[test]
    fn each_nonzero_comes_to_its_place() {
        for (rows, cols, sparsity) in [(64, 128, 0.9), (130, 300, 0.7), (1, 129, 0.0), (70, 260, 0.99)] {
            let matrix = matrix(rows, cols, sparsity);
            let packed = packed(&matrix);
            let across = cols.div_ceil(Pack::COLUMNS);
            assert_eq!(packed.units.len(), rows.div_ceil(Pack::ROWS) * across + 1);
            let mut nonzeros = 0;
            for unit in 0..packed.units.len() - 1 {
                let stage = stage(&packed, unit);
                let (first_row, first_column) = (unit / across * Pack::ROWS, unit % across * Pack::COLUMNS);
                for (row, column) in (0..Pack::ROWS).flat_map(|r| (0..Pack::COLUMNS).map(move |c| (r, c))) {
                    let value = stage[usize::from(Pack::place(row as u32, column as u32)) / 2];
                    let (row, column) = (first_row + row, first_column + column);
                    let (columns, values) = if row < rows { matrix.row(row) } else { (&[][..], &[][..]) };
                    let at = columns.binary_search(&(column as u32)).ok();
                    let expected = at.map(|at| values[at].to_bits());
                    nonzeros += usize::from(expected.is_some());
                    assert_eq!(value.unwrap_or(0), expected.unwrap_or(0), "{row} {column}");
                }
            }
            assert_eq!(nonzeros, matrix.nnz());
        }
    }

    #[test]
    fn a_full_unit_needs_no_filling_and_an_empty_one_no_pack() {
        assert_eq!(packed(&matrix(64, 128, 0.0)).units, [0, 64]);
        assert_eq!(packed(&Csr::new(3, 5, vec![0; 4], vec![], vec![]).unwrap()).units, [0, 0]);
        assert_eq!(packed(&Csr::new(0, 5, vec![0], vec![], vec![]).unwrap()).units, [0]);
    }

    #[test]
    fn nonzeros_that_are_stored_together_lie_in_different_banks() {
        let packed = packed(&matrix(64, 128, 0.5));
        let banks = |turn: &[usize]| {
            let places = turn.iter().map(|&index| packed.halves[Pack::half_words(index)[1]]);
            places.fold(0_u32, |banks, place| banks | 1 << (place / 4 % 32))
        };
        for turn in 0..Pack::VALUES / 32 {
            let indices: Vec<usize> = (32 * turn..32 * (turn + 1)).collect();
            assert_eq!(banks(&indices), u32::MAX);
        }
    }

    #[test]
    fn what_would_be_mostly_filling_is_not_packed() {
        // A nonzero in each unit.
        let (rows, cols) = (64 * 40, 128 * 80);
        let offsets: Vec<u32> = (0..=rows).map(|row: u32| row.div_ceil(64) * 80).collect();
        let columns: Vec<u32> = (0..40).flat_map(|_| (0..80).map(|unit| unit * 128)).collect();
        let matrix = Csr::new(rows as usize, cols, offsets, columns, vec![f16::ONE; 3200]).unwrap();
        assert!(Packed::of(&matrix, bytemuck::cast_slice(matrix.values())).is_none());
    }
}
