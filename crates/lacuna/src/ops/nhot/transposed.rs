//! The transposed bags: for each row of the table the bags that name it.
use rayon::prelude::*;

use super::bags::BagPattern;
use super::{BagIndex, Mode, Options};
use crate::{Buffer, Device, Result};

/// For each row of the table the places where bags name it, in ascending order.
#[derive(Debug)]
pub(super) struct Transposed<I: BagIndex> {
    /// The rows that are named, ascending.
    pub(super) rows: Buffer<I>,
    /// Where each of these starts, and the end of the last.
    pub(super) offsets_of_named: Buffer<u32>,
    /// The same for all rows of the table.
    pub(super) offsets: Buffer<u32>,
    /// The bag of each nonzero.
    pub(super) bags: Buffer<u32>,
    /// Its number among the indices.
    pub(super) places: Buffer<u32>,
    /// Nonzeros of the row that is named most.
    pub(super) longest: usize,
}

/// Those on the host, without the padding index.
struct Sorted {
    rows: Vec<usize>,
    offsets_of_named: Vec<u32>,
    offsets: Vec<u32>,
    bags: Vec<u32>,
    places: Vec<u32>,
    longest: usize,
}

impl<I: BagIndex> Transposed<I> {
    pub(super) fn new(device: &Device, pattern: &BagPattern<I>, padding: Option<usize>) -> Result<Self> {
        let sorted = sort(pattern.table_rows, &pattern.host_offsets, &pattern.host_indices, padding);
        let rows: Vec<I> = sorted.rows.iter().map(|&row| I::from_row(row)).collect();
        Ok(Self {
            rows: device.upload(&rows)?,
            offsets_of_named: device.upload(&sorted.offsets_of_named)?,
            offsets: device.upload(&sorted.offsets)?,
            bags: device.upload(&sorted.bags)?,
            places: device.upload(&sorted.places)?,
            longest: sorted.longest,
        })
    }
}

/// Groups of a table's rows at most: as many places to write at as caches and page tables hold.
const MOST_GROUPS: usize = 512;
/// Rows of a group at least.
const LEAST_ROWS: usize = 1 << 12;

/// Sorts by counting, in two steps, so that neither writes all over memory: into groups of neighbouring rows, and within each
/// group by rows, groups in parallel.
fn sort<I: BagIndex>(
    table_rows: usize,
    bag_offsets: &[u32],
    indices: &[I],
    padding: Option<usize>,
) -> Sorted {
    let of_group = table_rows.div_ceil(MOST_GROUPS).max(LEAST_ROWS).next_power_of_two();
    let (shift, groups) = (of_group.trailing_zeros(), table_rows.div_ceil(of_group));
    let is_named = |row: usize| Some(row) != padding;
    let mut starts = vec![0_u32; groups + 1];
    for row in indices.iter().map(|index| index.to_row()).filter(|&row| is_named(row)) {
        starts[(row >> shift) + 1] += 1;
    }
    for group in 0..groups {
        starts[group + 1] += starts[group];
    }
    let named = starts[groups] as usize;
    // Of each nonzero its row in the group, its bag and its place.
    let mut grouped = vec![[0_u32; 3]; named];
    let mut next = starts.clone();
    for (bag, ends) in bag_offsets.windows(2).enumerate() {
        for place in ends[0]..ends[1] {
            let row = indices[place as usize].to_row();
            if is_named(row) {
                let to = &mut next[row >> shift];
                grouped[*to as usize] = [(row & (of_group - 1)) as u32, bag as u32, place];
                *to += 1;
            }
        }
    }

    let mut offsets = vec![0_u32; table_rows + 1];
    let (mut bags, mut places) = (vec![0; named], vec![0; named]);
    let mut rest = (&mut bags[..], &mut places[..]);
    let parts = offsets[1..].chunks_mut(of_group).zip(starts.windows(2)).map(|(next, ends)| {
        let count = (ends[1] - ends[0]) as usize;
        let (bags, places) = std::mem::take(&mut rest);
        let (bags, more_bags) = bags.split_at_mut(count);
        let (places, more_places) = places.split_at_mut(count);
        rest = (more_bags, more_places);
        (next, ends[0], bags, places)
    });
    parts.collect::<Vec<_>>().into_par_iter().for_each(|(next, start, bags, places)| {
        let nonzeros = &grouped[start as usize..][..bags.len()];
        nonzeros.iter().for_each(|&[row, ..]| next[row as usize] += 1);
        let mut from = start;
        for next in next.iter_mut() {
            from += std::mem::replace(next, from);
        }
        for &[row, bag, place] in nonzeros {
            let next = &mut next[row as usize];
            let to = (*next - start) as usize;
            (bags[to], places[to]) = (bag, place);
            // In the end it is where the row ends.
            *next += 1;
        }
    });
    let (mut rows, mut offsets_of_named, mut longest) = (Vec::new(), vec![0], 0);
    for (row, ends) in offsets.windows(2).enumerate() {
        if ends[1] > ends[0] {
            longest = longest.max((ends[1] - ends[0]) as usize);
            rows.push(row);
            offsets_of_named.push(ends[1]);
        }
    }
    Sorted { rows, offsets_of_named, offsets, bags, places, longest }
}

/// What each bag's gradient is multiplied by: one over its number of nonzeros in a mean.
#[derive(Debug)]
pub(super) struct Scales(Option<Buffer<f32>>);

impl Scales {
    pub(super) fn new<I: BagIndex>(
        device: &Device,
        pattern: &BagPattern<I>,
        options: &Options,
    ) -> Result<Self> {
        if options.mode == Mode::Sum {
            return Ok(Self(None));
        }
        let scale = |ends: &[u32]| {
            let bag = &pattern.host_indices[ends[0] as usize..ends[1] as usize];
            let padding = bag.iter().filter(|index| Some(index.to_row()) == options.padding_index).count();
            // As the kernel has it. Of a bag that names none, nothing is read.
            1.0 / (bag.len() - padding) as f32
        };
        let scales: Vec<f32> = pattern.host_offsets.windows(2).map(scale).collect();
        Ok(Self(Some(device.upload(&scales)?)))
    }

    /// The address of the first bag's; 0 where all are 1.
    pub(super) fn address(&self) -> u64 {
        self.0.as_ref().map_or(0, |scales| scales.as_slice().address())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_their_places_in_order() {
        // Bags: 4 1 | | 1 1 2 | 4. Row 2 is the padding.
        let sorted = sort(6, &[0, 2, 2, 5, 6], &[4_u32, 1, 1, 1, 2, 4], Some(2));
        assert_eq!(sorted.rows, [1, 4]);
        assert_eq!(sorted.offsets, [0, 0, 3, 3, 3, 5, 5]);
        assert_eq!(sorted.offsets_of_named, [0, 3, 5]);
        assert_eq!(sorted.places, [1, 2, 3, 0, 5]);
        assert_eq!(sorted.bags, [0, 2, 2, 0, 3]);
        assert_eq!(sorted.longest, 3);
    }

    #[test]
    fn nothing_is_sorted_too() {
        let sorted = sort::<u32>(0, &[0], &[], None);
        assert_eq!((sorted.offsets, sorted.offsets_of_named), (vec![0], vec![0]));
        let sorted = sort(2, &[0, 0, 1], &[1_u64], Some(1));
        assert_eq!((sorted.rows.len(), sorted.offsets, sorted.longest), (0, vec![0, 0, 0], 0));
    }

    /// Tables of several groups, the last of which is not whole.
    #[test]
    fn groups_of_a_table_are_sorted_as_the_whole() {
        let rows = 3 * LEAST_ROWS + 5;
        let indices: Vec<u32> =
            (0..20_000_u32).map(|at| at.wrapping_mul(2_654_435_761) % rows as u32).collect();
        let offsets = [0, 1, 1, 9000, 20_000];
        let sorted = sort(rows, &offsets, &indices, Some(7));
        let mut expected: Vec<u32> = (0..20_000).filter(|&place| indices[place as usize] != 7).collect();
        expected.sort_by_key(|&place| indices[place as usize]);
        let bag = |&place: &u32| offsets.partition_point(|&start| start <= place) as u32 - 1;
        assert_eq!(sorted.bags, expected.iter().map(bag).collect::<Vec<_>>());
        assert_eq!(sorted.places, expected);
        let starts = |row: usize| expected.partition_point(|&place| (indices[place as usize] as usize) < row);
        assert!((0..=rows).all(|row| sorted.offsets[row] as usize == starts(row)));
    }
}
