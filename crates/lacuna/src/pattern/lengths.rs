//! How long rows are, in few numbers.

/// How many rows of a matrix are longer than each power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLengths {
    rows: u32,
    /// Rows of at least one nonzero.
    nonempty: u32,
    /// Rows of more than 2^k nonzeros.
    longer: [u32; 32],
}

/// Rows whose lengths are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LengthClass {
    /// Longer rows.
    pub(crate) before: u32,
    /// Rows of this class.
    pub(crate) rows: u32,
    /// What none of them is longer than, and half of which each is longer than.
    pub(crate) length: u64,
}

impl RowLengths {
    /// The row lengths of a CSR matrix with these row offsets.
    pub fn of(row_offsets: &[u32]) -> Self {
        // Rows by the logarithm of their length, rounded up: those of at most 2^k that are longer than 2^(k - 1).
        let (mut rows, mut empty) = ([0_u32; 33], 0);
        for ends in row_offsets.windows(2) {
            let length = ends[1] - ends[0];
            rows[(u32::BITS - length.saturating_sub(1).leading_zeros()) as usize] += 1;
            empty += u32::from(length == 0);
        }
        let mut longer = [0; 32];
        let mut above = 0;
        for (longer, rows) in longer.iter_mut().zip(&rows[1..]).rev() {
            above += rows;
            *longer = above;
        }
        let rows = row_offsets.len().saturating_sub(1) as u32;
        Self { rows, nonempty: rows - empty, longer }
    }

    /// The row lengths of which these counts are longer than 1, 2, 4, … nonzeros.
    ///
    /// # Panics
    /// If counts grow, or are more than 32.
    pub fn from_counts(rows: u32, nonempty: u32, longer: &[u32]) -> Self {
        let all: Vec<u32> = [rows, nonempty].iter().chain(longer).copied().collect();
        assert!(
            longer.len() <= 32 && all.is_sorted_by(|a, b| a >= b),
            "expected falling counts, got {all:?}"
        );
        let mut lengths = Self { rows, nonempty, longer: [0; 32] };
        lengths.longer[..longer.len()].copy_from_slice(longer);
        lengths
    }

    /// The row lengths of rows that have so many nonzeros together, all as many or one more.
    pub fn even(rows: usize, nnz: usize) -> Self {
        let rows_or_one = rows.max(1);
        let (each, more) = (nnz / rows_or_one, (nnz % rows_or_one) as u32);
        let rows = rows as u32;
        let longer_than = |length: u64| match each as u64 {
            each if each > length => rows,
            each if each == length => more,
            _ => 0,
        };
        let longer = std::array::from_fn(|k| longer_than(1 << k));
        Self { rows, nonempty: longer_than(0), longer }
    }

    /// Counts of rows longer than 1, 2, 4, … nonzeros, as far as there are some.
    pub fn counts(&self) -> impl Iterator<Item = u32> {
        self.longer.into_iter().take_while(|&count| count > 0)
    }

    /// The number of rows.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// The number of rows of at least one nonzero.
    pub fn nonempty(&self) -> u32 {
        self.nonempty
    }

    /// Rows longer than the least power of two that is not below `length`.
    pub(crate) fn longer(&self, length: u64) -> u32 {
        let class = length.max(1).next_power_of_two().trailing_zeros();
        self.longer.get(class as usize).copied().unwrap_or(0)
    }

    /// The classes with rows, longest first.
    pub(crate) fn classes(&self) -> impl Iterator<Item = LengthClass> {
        let class = |k: usize| {
            let before = self.longer.get(k).copied().unwrap_or(0);
            let through = if k == 0 { self.nonempty } else { self.longer[k - 1] };
            LengthClass { before, rows: through - before, length: 1 << k }
        };
        (0..=self.longer.len()).rev().map(class).filter(|class| class.rows > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_rows_and_counts() {
        for (rows, each, more) in [(8_u32, 5, 3), (3, 0, 2), (5, 64, 0), (1, 1000, 0), (0, 0, 0)] {
            let ends: Vec<u32> = (0..=rows).map(|row| row * each + row.min(more)).collect();
            let lengths = RowLengths::of(&ends);
            assert_eq!(RowLengths::even(rows as usize, (rows * each + more) as usize), lengths);
            let counts: Vec<u32> = lengths.counts().collect();
            assert_eq!(RowLengths::from_counts(rows, lengths.nonempty(), &counts), lengths);
        }
    }

    #[test]
    fn classes_end_at_powers_of_two() {
        let ends = [0, 1, 1, 3, 6, 10, 15, 15 + 1024, 15 + 1024 + 1025];
        let lengths = RowLengths::of(&ends);
        assert_eq!((lengths.rows(), lengths.nonempty()), (8, 7));
        let classes: Vec<_> =
            lengths.classes().map(|class| (class.before, class.rows, class.length)).collect();
        // 1025; 1024; 5; 3 and 4; 2; 1.
        assert_eq!(classes, [(0, 1, 2048), (1, 1, 1024), (2, 1, 8), (3, 2, 4), (5, 1, 2), (6, 1, 1)]);
        for (length, longer) in
            [(0, 6), (1, 6), (2, 5), (3, 3), (4, 3), (5, 2), (1024, 1), (1025, 0), (1 << 40, 0)]
        {
            assert_eq!(lengths.longer(length), longer, "{length}");
        }
        assert_eq!(RowLengths::of(&[0, u32::MAX]).classes().next().unwrap().length, 1 << 32);
        assert_eq!(RowLengths::of(&[0, 0, 0]).classes().count(), 0);
        assert_eq!(RowLengths::of(&[]).rows(), 0);
    }
}
