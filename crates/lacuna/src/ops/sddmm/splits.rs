//! How K is split among thread blocks, and the memory that holds what they add up.
//!
//! Few nonzeros whose sums are long fill a GPU only so: weights' gradients, whose K is an image's pixels times the batch.
use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::sddmm::{Operands, Scheme, SumSplits, SumSplitsArgs, Tile};
use lacuna_kernels::{Entry, entries};

use super::Problem;
use super::model::CostModel;
use crate::op::{MAX_GRID_YZ, launch_kernel};
use crate::{Buffer, Device, Result, Stream, Value};

/// Splits at most.
const MOST: usize = 128;
/// Sums of splits at most, over the batch: 256 MiB.
const MOST_SUMS: usize = 1 << 26;
/// Bytes of K of which splits are multiples: a cache line. So vectors stay aligned, and lines are read by one split.
const LINE: usize = 128;

/// The parts of K.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Splits {
    /// How many: at least 1.
    pub(super) count: usize,
    /// Columns of A and B of each, but that the last may have fewer.
    pub(super) k: usize,
}

impl Splits {
    /// About `wanted` parts: fewer where lines do not suffice.
    fn of(problem: &Problem, wanted: usize) -> Self {
        let line = LINE / problem.value.bytes() as usize;
        if wanted <= 1 || problem.k <= line {
            return Self { count: 1, k: problem.k };
        }
        let k = problem.k.div_ceil(wanted).next_multiple_of(line);
        Self { count: problem.k.div_ceil(k), k }
    }
}

impl Problem {
    /// The splits that this kernel takes: as many as are asked for, or those of the least cost by the model. None where it cannot do K
    /// in any.
    pub(super) fn splits(&self, model: &CostModel, entry: &Entry<Tile>) -> Option<Splits> {
        let widest = match entry.tile.scheme {
            Scheme::ColumnPanel { lanes, vectors, .. } => (lanes * vectors * entry.tile.vector) as usize,
            _ => usize::MAX,
        };
        let room = MOST_SUMS / (self.nnz * self.batch.min(MAX_GRID_YZ)).max(1);
        let most = room.clamp(1, MOST);
        let fits = |splits: &Splits| splits.k <= widest;
        if let Some(wanted) = self.splits {
            return Some(Splits::of(self, wanted.min(most))).filter(fits);
        }
        let all = counts(most).map(|count| Splits::of(self, count)).filter(fits);
        let cost = |splits: &Splits| model.cost_of_splits(self, entry, *splits);
        all.min_by(|a, b| cost(a).total_cmp(&cost(b)))
    }

    /// The problem of which a split is a product.
    pub(super) fn of_splits(&self, splits: Splits) -> Self {
        Self { k: splits.k, batch: self.batch * splits.count, ..*self }
    }
}

/// Numbers of splits that are tried: 1, 2, 3, 4, 6, 8, 12 and so on up to `most`.
fn counts(most: usize) -> impl Iterator<Item = usize> {
    let rising = (0..).flat_map(|power: u32| [2 << power, 3 << power]).map(|twice: usize| twice.div_ceil(2));
    rising.take_while(move |&count| count <= most)
}

/// Room for the sums of splits, in the plan.
#[derive(Debug)]
pub(super) struct SumsOfSplits(Option<Buffer<f32>>);

impl SumsOfSplits {
    /// Whether no kernel of the plan writes any.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Products that a launch can have.
    pub(super) fn products_at_once(splits: Splits) -> usize {
        MAX_GRID_YZ / splits.count
    }

    /// Room for what any of these splits of the problem writes.
    pub(super) fn new(
        device: &Device,
        problem: &Problem,
        splits: impl Iterator<Item = Splits>,
    ) -> Result<Self> {
        let sums = |splits: Splits| match splits.count {
            1 => 0,
            count => problem.nnz * count * problem.batch.min(Self::products_at_once(splits)),
        };
        let most = splits.map(sums).max().unwrap_or(0);
        Ok(Self(if most > 0 { Some(device.uninitialized(most)?) } else { None }))
    }

    /// Where kernels write sums; address 0 where there is one split.
    pub(super) fn pointer(&self, splits: Splits) -> GlobalMut<f32> {
        match &self.0 {
            Some(room) if splits.count > 1 => GlobalMut::from_address(room.as_slice().address()),
            _ => GlobalMut::from_address(0),
        }
    }

    /// Adds the sums of these operands' splits up, of so many products.
    pub(super) fn add_up<T: Value>(
        &self,
        stream: &Stream,
        operands: Operands<T::Device>,
        products: u32,
    ) -> Result<()> {
        let sums = GlobalPtr::from_address(operands.partial.address());
        let operands = Operands { partial: GlobalMut::from_address(0), ..operands };
        let args = SumSplitsArgs { sums, operands };
        let grid = |entry: &Entry<Tile>| [operands.nonzeros.div_ceil(entry.tile.block_items), 1, products];
        launch_kernel::<SumSplits<T::Device>>(stream, entries::sddmm(), grid, &args)
    }
}

#[cfg(test)]
mod tests {
    use super::super::choose::tests::problem;
    use super::super::{Algorithm, choose};
    use super::*;

    #[test]
    fn splits_are_whole_lines_and_none_is_empty() {
        let of = |k, wanted| {
            let Splits { count, k } = Splits::of(&problem(640, k, 4), wanted);
            (count, k)
        };
        assert_eq!(of(1024, 4), (4, 256));
        assert_eq!(of(784, 2), (2, 416), "the last has the rest");
        assert_eq!(of(96, 64), (3, 32), "no more than lines");
        assert_eq!(of(33, 2), (2, 32));
        assert_eq!((of(32, 2), of(0, 2), of(1000, 1)), ((1, 32), (1, 0), (1, 1000)));
    }

    #[test]
    fn numbers_of_splits_rise_and_end_with_the_most() {
        let all: Vec<usize> = counts(MOST).collect();
        assert_eq!(all, [1, 2, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128]);
        assert_eq!((counts(1).collect(), counts(5).last()), (vec![1], Some(4)));
    }

    #[test]
    fn few_long_sums_are_split_and_many_short_ones_are_not() {
        let splits = |nnz, k| {
            let problem = Problem { precision: crate::Precision::Single, ..problem(nnz, k, 4) };
            let best = &choose(&problem)[0];
            CostModel::hopper().splits(&problem, best.entry)
        };
        assert!(splits(900, 100_352) > Some(8));
        assert!(splits(20_000, 3136) > Some(1));
        assert_eq!(splits(1 << 20, 128), Some(1));
    }

    #[test]
    fn column_panels_take_a_long_k_in_splits() {
        let panels = |splits| {
            let problem = Problem { splits, ..problem(100_000, 2048, 4) };
            let is_panel =
                |choice: &super::super::Choice| matches!(choice.algorithm, Algorithm::ColumnPanel { .. });
            let found = choose(&problem).into_iter().find(is_panel);
            found.and_then(|choice| CostModel::hopper().splits(&problem, choice.entry))
        };
        assert!(panels(None) >= Some(4));
        assert_eq!((panels(Some(1)), panels(Some(3)), panels(Some(4))), (None, None, Some(4)));
    }

    #[test]
    fn sums_of_splits_have_bounds() {
        let problem = Problem { splits: Some(64), ..problem(MOST_SUMS / 3, 4096, 4) };
        let splits = |problem: &Problem| CostModel::hopper().splits(problem, choose(problem)[0].entry);
        assert_eq!(splits(&problem), Some(3));
        assert_eq!(splits(&Problem { batch: 2, ..problem }), Some(1));
        assert_eq!(splits(&Problem { nnz: 10, ..problem }), Some(64));
    }
}
