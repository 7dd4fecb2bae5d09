//! The cost model's constants: data, a file for a family of GPUs.
use std::sync::LazyLock;

use crate::op::{ModelFile, section};

/// The file of Hopper: H100 and H200.
const HOPPER: &str = include_str!("../../../models/hopper-spmm.json");

section! {
    /// Of all kernels.
    Common: launch
}
section! {
    /// Of kernels by rows. The file says what each means.
    RowSplitConstants: quad_latency lone_quad_latency row_latency empty_row reduction resident_warps registers
        register_exponent issue cache_line a_line b_line most_imbalance wide_block not_hidden
}
section! {
    /// Of those that are persistent.
    PersistentConstants: start spread_share
}
section! {
    /// Of kernels that fill tiles and multiply them with `mma`.
    mma of TileConstants: start step product row nonzero b_line not_hidden reduction
}
section! {
    /// Of those that multiply with `wgmma`.
    wgmma of TileConstants: start step product row prefetch late b_line not_hidden cluster
}
section! {
    /// Of those of prepacked 16-bit values.
    prepacked of TileConstants: start step product row nonzero late b_line not_hidden cluster
}

section! {
    /// Of those of prepacked `f32`.
    prepacked_f32 of TileConstants: start step product row nonzero late b_line not_hidden cluster
}

/// The constants of kernels that fill tiles and multiply them: 0 where a kind of kernel has none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TileConstants {
    pub(super) start: f64,
    pub(super) step: f64,
    pub(super) product: f64,
    pub(super) row: f64,
    pub(super) nonzero: f64,
    pub(super) prefetch: f64,
    pub(super) late: f64,
    pub(super) b_line: f64,
    pub(super) not_hidden: f64,
    pub(super) reduction: f64,
    pub(super) cluster: f64,
}

/// The constants of the heuristic's cost model, as data: what each means is in `models/hopper-spmm.json`. They belong to a
/// family of GPUs; `lacuna-bench fit` finds them from measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct CostModel {
    file: ModelFile,
    pub(super) common: Common,
    pub(super) row_split: RowSplitConstants,
    pub(super) persistent: PersistentConstants,
    pub(super) mma_f32: TileConstants,
    pub(super) mma_16_bit: TileConstants,
    pub(super) wgmma: TileConstants,
    pub(super) prepacked: TileConstants,
    pub(super) prepacked_f32: TileConstants,
}

impl CostModel {
    /// The library's, fitted to an H200 (docs/cost-models.md).
    pub fn hopper() -> &'static Self {
        static MODEL: LazyLock<CostModel> = LazyLock::new(|| {
            let file = serde_json::from_str(HOPPER).expect("a test reads the file");
            CostModel::new(file)
        });
        &MODEL
    }

    /// The model of a file.
    ///
    /// # Panics
    /// If a constant is missing.
    pub fn new(file: ModelFile) -> Self {
        let none = TileConstants::default();
        Self {
            common: Common::read(&file, "common"),
            row_split: RowSplitConstants::read(&file, "row_split"),
            persistent: PersistentConstants::read(&file, "persistent"),
            mma_f32: none.mma(&file, "mma_f32"),
            mma_16_bit: none.mma(&file, "mma_16_bit"),
            wgmma: none.wgmma(&file, "wgmma"),
            prepacked: none.prepacked(&file, "prepacked"),
            prepacked_f32: none.prepacked_f32(&file, "prepacked_f32"),
            file,
        }
    }

    /// The file with these constants.
    pub fn file(&self) -> &ModelFile {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Constant;

    #[test]
    fn the_shipped_constants_are_in_their_bounds_and_all_are_read() {
        let model = CostModel::hopper();
        let constants: Vec<&Constant> = model.file.sections.iter().flat_map(|of| &of.constants).collect();
        // A constant that nothing reads changes no struct: with another value, the rest is the same.
        for (section, of) in model.file.sections.iter().enumerate() {
            for (index, constant) in of.constants.iter().enumerate() {
                let [low, high] = constant.bounds;
                let name = format!("{}.{}", of.name, constant.name);
                assert!(0.0 <= low && low < high && (low..=high).contains(&constant.value), "{name}");
                assert!(constant.unit != "part" || high <= 1.0, "{name}");
                assert!(!constant.about.is_empty(), "{name}");
                let mut file = model.file.clone();
                file.sections[section].constants[index].value += 1.0;
                let mut other = CostModel::new(file);
                other.file = model.file.clone();
                assert!(other != *model, "{name} is not read");
            }
        }
        assert_eq!(constants.len(), 61);
        let kinds = ["f32", "16-bit", "prepacked 16-bit", "prepacked f32"]
            .map(|kind| model.file.fitted_to(kind).count());
        assert_eq!(kinds.iter().sum::<usize>(), constants.len());
    }

    #[test]
    fn other_values_go_where_they_belong() {
        let file = &CostModel::hopper().file;
        let count = file.fitted_to("16-bit").count();
        let other = CostModel::new(file.clone().with_values("16-bit", &vec![7.0; count]));
        assert_eq!(other.row_split, CostModel::hopper().row_split);
        assert_eq!((other.wgmma.late, other.mma_16_bit.start), (7.0, 7.0));
        assert_eq!(other.prepacked, CostModel::hopper().prepacked);
    }
}
