//! How long rows are, as the cost model sees them: by classes whose lengths are alike.
use super::choose::Problem;
use crate::pattern::{LengthClass, RowLengths};

/// The lengths of a matrix's rows, longest first.
pub(super) struct Rows<'a> {
    lengths: &'a RowLengths,
    longest: f64,
    /// Where between its least and its largest length a class has its mean, from 0 to 1, alike in all: so that together they
    /// have A's nonzeros.
    place: f64,
}

impl<'a> Rows<'a> {
    pub(super) fn of(problem: &'a Problem) -> Self {
        let mut rows = Self { lengths: &problem.lengths, longest: problem.longest_row as f64, place: 0.0 };
        let (mut least, mut range) = (0.0, 0.0);
        for class in rows.lengths.classes() {
            let [low, high] = rows.range(&class);
            least += f64::from(class.rows) * low;
            range += f64::from(class.rows) * (high - low);
        }
        rows.place = ((problem.nnz as f64 - least) / f64::max(range, 1.0)).clamp(0.0, 1.0);
        rows
    }

    /// Rows of a class, and their mean length.
    pub(super) fn classes(&self) -> impl Iterator<Item = (f64, f64)> {
        self.lengths.classes().map(|class| {
            let [low, high] = self.range(&class);
            (f64::from(class.rows), low + self.place * (high - low))
        })
    }

    /// Rows without nonzeros.
    pub(super) fn empty(&self) -> f64 {
        f64::from(self.lengths.rows() - self.lengths.nonempty())
    }

    /// About the length of the shortest row.
    pub(super) fn shortest(&self) -> f64 {
        if self.empty() > 0.0 { 0.0 } else { self.classes().last().map_or(0.0, |(_, length)| length) }
    }

    /// About the length of the row that has so many longer ones: a class's lengths fall from its largest to its least, and
    /// have its mean.
    pub(super) fn length_at(&self, rank: f64) -> f64 {
        let ends = |class: &LengthClass| f64::from(class.before) + f64::from(class.rows);
        let Some(class) = self.lengths.classes().find(|class| rank < ends(class)) else { return 0.0 };
        let [low, high] = self.range(&class);
        let place = self.place.max(1e-6);
        let left = (ends(&class) - rank) / f64::from(class.rows);
        low + (high - low) * left.powf((1.0 - place) / place)
    }

    /// The least and the largest length of a class.
    fn range(&self, class: &LengthClass) -> [f64; 2] {
        let high = class.length as f64;
        let low = if class.length <= 1 { high } else { high / 2.0 + 1.0 };
        [low, high.min(self.longest).max(low)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::choose::tests::problem;
    use super::*;

    #[test]
    fn classes_have_all_nonzeros_and_lengths_fall() {
        // 700; 9 rows of 10; 90 of 3; 20 of 1; 8 empty.
        let lengths: Vec<u32> =
            [(700, 1), (10, 9), (3, 90), (1, 20), (0, 8)].iter().flat_map(|&(l, n)| vec![l; n]).collect();
        let offsets: Vec<u32> = std::iter::once(0)
            .chain(lengths.iter().scan(0, |end, l| {
                *end += l;
                Some(*end)
            }))
            .collect();
        let nnz = *offsets.last().unwrap() as usize;
        let problem = Problem {
            longest_row: 700,
            lengths: RowLengths::of(&offsets),
            ..problem(lengths.len(), nnz, 32, 4)
        };
        let rows = Rows::of(&problem);
        let sum: f64 = rows.classes().map(|(count, length)| count * length).sum();
        assert!((sum - nnz as f64).abs() < 1e-6, "{sum} {nnz}");
        assert_eq!((rows.empty(), rows.shortest()), (8.0, 0.0));
        assert_eq!((rows.length_at(0.0), rows.length_at(127.0), rows.length_at(1e9)), (700.0, 0.0, 0.0));
        let at: Vec<f64> = (0..120).map(|rank| rows.length_at(f64::from(rank))).collect();
        assert!(at.is_sorted_by(|a, b| a >= b), "{at:?}");
    }

    #[test]
    fn even_rows_have_the_mean() {
        let problem = problem(100, 30_000, 32, 4);
        let rows = Rows::of(&problem);
        assert_eq!(rows.classes().collect::<Vec<_>>(), [(100.0, 300.0)]);
        assert_eq!((rows.empty(), rows.shortest()), (0.0, 300.0));
    }
}
