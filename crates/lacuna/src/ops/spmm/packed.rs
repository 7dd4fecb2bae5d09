//! A matrix in packs on the host. Strips of units are packed in parallel.
use std::marker::PhantomData;
use std::mem;
use std::ops::Range;

use lacuna_kernels::spmm::PackShape;
use lacuna_matrix::Csr;
use rayon::prelude::*;

use crate::Value;

/// Packs may take this many times the memory of the nonzeros, and some more: units of sparser matrices have packs that are
/// nearly empty.
const MOST_TO_NONZEROS: usize = 4;
const MOST_BESIDES: usize = 1 << 20;

/// Banks of shared memory, of four bytes each.
const BANKS: usize = 32;

/// A matrix in packs of the shape `P`.
pub(super) struct Packed<P> {
    units: Vec<u32>,
    words: Vec<u32>,
    shape: PhantomData<P>,
}

impl<P: PackShape> Packed<P> {
    /// Packs a matrix, of whose values `bits` gives the bits; none if that takes too much memory.
    pub(super) fn of<T: Value>(matrix: &Csr<T>, bits: impl Fn(usize) -> u32 + Sync) -> Option<Self> {
        let nonzero_bytes = size_of::<T>() + size_of::<u32>();
        let most = MOST_BESIDES + MOST_TO_NONZEROS * matrix.nnz() * nonzero_bytes;
        let (strips, across) = (matrix.rows().div_ceil(P::ROWS), matrix.cols().div_ceil(P::COLUMNS));
        if across.saturating_mul(strips) * size_of::<u32>() > most {
            return None;
        }
        let units = first_packs::<P, T>(matrix, strips * across, across, most)?;
        let packs = units.last().map_or(0, |&end| end as usize);
        let mut words = vec![0; packs * P::WORDS];
        let mut rest = &mut words[..];
        let of_strips: Vec<&mut [u32]> = (0..strips)
            .map(|strip| {
                let packs = units[(strip + 1) * across] - units[strip * across];
                let (of_strip, after) = mem::take(&mut rest).split_at_mut(packs as usize * P::WORDS);
                rest = after;
                of_strip
            })
            .collect();
        of_strips.into_par_iter().enumerate().for_each_init(Unit::<P>::new, |unit, (strip, words)| {
            pack_strip(matrix, strip, &units[strip * across..=(strip + 1) * across], unit, words, &bits);
        });
        Some(Self { units, words, shape: PhantomData })
    }

    /// The first pack of each unit, and one past the last; and the packs.
    pub(super) fn arrays(self) -> [Vec<u32>; 2] {
        [self.units, self.words]
    }
}

/// The rows of a strip.
fn rows_of<P: PackShape, T>(matrix: &Csr<T>, strip: usize) -> Range<usize> {
    strip * P::ROWS..matrix.rows().min((strip + 1) * P::ROWS)
}

/// The first pack of each of so many units, and one past the last; none if packs have more than `most` bytes.
fn first_packs<P: PackShape, T: Value>(
    matrix: &Csr<T>,
    units: usize,
    across: usize,
    most: usize,
) -> Option<Vec<u32>> {
    let mut first = vec![0_u32; units + 1];
    first[1..].par_chunks_mut(across.max(1)).enumerate().for_each(|(strip, counts)| {
        let rows = rows_of::<P, T>(matrix, strip);
        let [start, end] = [rows.start, rows.end].map(|row| matrix.row_offsets()[row] as usize);
        for &column in &matrix.col_indices()[start..end] {
            counts[column as usize / P::COLUMNS] += 1;
        }
        counts.iter_mut().for_each(|count| *count = count.div_ceil(P::VALUES as u32));
    });
    let mut end = 0_usize;
    for first in &mut first {
        end += *first as usize;
        *first = end as u32;
    }
    (end * P::WORDS * size_of::<u32>() <= most).then_some(first)
}

/// Writes the packs of a strip, whose units begin at these.
fn pack_strip<P: PackShape, T: Value>(
    matrix: &Csr<T>,
    strip: usize,
    units: &[u32],
    unit: &mut Unit<P>,
    mut words: &mut [u32],
    bits: impl Fn(usize) -> u32,
) {
    let columns = matrix.col_indices();
    let rows = rows_of::<P, T>(matrix, strip);
    // What is left of each row.
    let mut left: Vec<_> = rows.map(|row| matrix.pattern().row_range(row)).collect();
    for (at, ends) in units.windows(2).enumerate() {
        if ends[0] == ends[1] {
            continue;
        }
        let first_column = (at * P::COLUMNS) as u32;
        // All columns before it are in units before this.
        let in_unit = |place: usize| columns[place] - first_column;
        for (row, left) in left.iter_mut().enumerate() {
            while left.start < left.end && in_unit(left.start) < P::COLUMNS as u32 {
                unit.put(P::place(row as u32, in_unit(left.start)), bits(left.start));
                left.start += 1;
            }
        }
        let (of_unit, after) = mem::take(&mut words).split_at_mut((ends[1] - ends[0]) as usize * P::WORDS);
        words = after;
        unit.write(of_unit);
    }
}

/// The nonzeros of a unit, in turns: each has one for each bank of shared memory. So 32 after each other lie in different banks, as
/// long as all have some.
struct Unit<P> {
    /// Turn by turn and bank by bank a place and, in the lower half, the bits of a value.
    turns: Vec<[u64; BANKS]>,
    /// Turns in which a bank has a nonzero.
    of_bank: [usize; BANKS],
    /// A bit for each element of the unit: whether it is here.
    taken: Vec<u64>,
    nonzeros: usize,
    shape: PhantomData<P>,
}

impl<P: PackShape> Unit<P> {
    /// One without nonzeros.
    fn new() -> Self {
        let elements = P::ROWS * P::COLUMNS;
        Self {
            turns: vec![[0; BANKS]; elements / BANKS],
            of_bank: [0; BANKS],
            taken: vec![0; elements.div_ceil(64)],
            nonzeros: 0,
            shape: PhantomData,
        }
    }

    /// Adds a nonzero.
    #[inline]
    fn put(&mut self, place: u16, bits: u32) {
        let bank = usize::from(place) / 4 % BANKS;
        let turn = &mut self.of_bank[bank];
        self.turns[*turn][bank] = u64::from(place) << 32 | u64::from(bits);
        *turn += 1;
        let element = usize::from(place) / P::ELEMENT;
        self.taken[element / 64] |= 1 << (element % 64);
        self.nonzeros += 1;
    }

    /// Fills the last pack up, with zeros for places that have no nonzero: there are as many, for all places fill whole packs.
    fn fill_up(&mut self) {
        let mut missing = self.nonzeros.next_multiple_of(P::VALUES) - self.nonzeros;
        for word in 0..self.taken.len() {
            let mut free = !self.taken[word];
            while free != 0 && missing > 0 {
                let element = word * 64 + free.trailing_zeros() as usize;
                self.put((P::ELEMENT * element) as u16, 0);
                free &= free - 1;
                missing -= 1;
            }
            if missing == 0 {
                return;
            }
        }
    }

    /// Writes the packs, and has no nonzeros any more.
    fn write(&mut self, packs: &mut [u32]) {
        self.fill_up();
        let (mut packs, mut index) = (packs.chunks_exact_mut(P::WORDS), P::VALUES);
        let mut pack: &mut [u32] = &mut [];
        let turns = self.of_bank.iter().copied().max().unwrap_or(0);
        for (turn, nonzeros) in self.turns[..turns].iter().enumerate() {
            for (&nonzero, &count) in nonzeros.iter().zip(&self.of_bank) {
                if turn >= count {
                    continue;
                }
                if index == P::VALUES {
                    (pack, index) = (packs.next().expect("packs were counted"), 0);
                }
                P::write(pack, index, (nonzero >> 32) as u16, nonzero as u32);
                index += 1;
            }
        }
        self.of_bank = [0; BANKS];
        self.taken.fill(0);
        self.nonzeros = 0;
    }
}

#[cfg(test)]
mod tests {
    use half::f16;
    use lacuna_kernels::Tf32;
    use lacuna_kernels::spmm::{Pack, WidePack};
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
