//! The transposed bags: for each row of the table the bags that name it.
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
        let indices = pattern.host_indices.iter().map(|&index| index.to_row());
        let sorted = sort(pattern.table_rows, &pattern.host_offsets, indices, padding);
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

/// Sorts by counting: a pass over the indices to count, one over the rows, and one over the indices to put them in place.
fn sort(
    table_rows: usize,
    bag_offsets: &[u32],
    indices: impl Iterator<Item = usize> + Clone,
    padding: Option<usize>,
) -> Sorted {
    let is_named = |row: &usize| Some(*row) != padding;
    let mut offsets = vec![0; table_rows + 1];
    for row in indices.clone().filter(is_named) {
        offsets[row + 1] += 1;
    }
    let (mut rows, mut offsets_of_named, mut longest) = (Vec::new(), vec![0], 0);
    let mut end = 0;
    for (row, offset) in offsets[1..].iter_mut().enumerate() {
        if *offset > 0 {
            longest = longest.max(*offset as usize);
            end += *offset;
            rows.push(row);
            offsets_of_named.push(end);
        }
        *offset = end;
    }
    let (mut bags, mut places) = (vec![0; end as usize], vec![0; end as usize]);
    let mut next = offsets.clone();
    let mut bag = 0;
    for (place, row) in indices.enumerate() {
        while bag_offsets[bag + 1] as usize <= place {
            bag += 1;
        }
        if is_named(&row) {
            let to = &mut next[row];
            bags[*to as usize] = bag as u32;
            places[*to as usize] = place as u32;
            *to += 1;
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
        let indices = [4, 1, 1, 1, 2, 4];
        let sorted = sort(6, &[0, 2, 2, 5, 6], indices.into_iter(), Some(2));
        assert_eq!(sorted.rows, [1, 4]);
        assert_eq!(sorted.offsets, [0, 0, 3, 3, 3, 5, 5]);
        assert_eq!(sorted.offsets_of_named, [0, 3, 5]);
        assert_eq!(sorted.places, [1, 2, 3, 0, 5]);
        assert_eq!(sorted.bags, [0, 2, 2, 0, 3]);
        assert_eq!(sorted.longest, 3);
    }

    #[test]
    fn nothing_is_sorted_too() {
        let sorted = sort(0, &[0], [].into_iter(), None);
        assert_eq!((sorted.offsets, sorted.offsets_of_named), (vec![0], vec![0]));
        let sorted = sort(2, &[0, 0, 1], [1].into_iter(), Some(1));
        assert_eq!((sorted.rows.len(), sorted.offsets, sorted.longest), (0, vec![0, 0, 0], 0));
    }
}
