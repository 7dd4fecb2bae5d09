//! The cost model's constants: data, a file for a family of GPUs.
use std::sync::LazyLock;

use crate::op::{ModelFile, section};

/// The file of Hopper: H100 and H200.
const HOPPER: &str = include_str!("../../../models/hopper-sddmm.json");

section! {
    /// Of kernels that go by nonzeros and by tiles. The file says what each means.
    Common: start
}
section! {
    /// Of kernels that go by nonzeros.
    Nonzeros: l1_line gather product latency resident_warps free_registers
}
section! {
    /// Of those by panels, where B's rows are in L1.
    ByPanels: kernel l1_line turn product latency idle longest_part
}
section! {
    /// Of tiles by `mma`.
    Tiles: piece l2_line place nonzero start not_shared small_block
}
section! {
    /// Of all of these, what 16-bit values take longer.
    SixteenBit: nonzero_conversion panel_conversion piece
}
section! {
    /// Of tiles by warpgroups.
    Warpgroups: line tile place nonzero
}
section! {
    /// Of what adds the sums of splits up.
    SplitSums: launch sum
}

/// The constants of the heuristic's cost model, as data: what each means is in `models/hopper-sddmm.json`. They belong to a
/// family of GPUs; `lacuna-bench fit` finds them from measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct CostModel {
    file: ModelFile,
    pub(super) common: Common,
    pub(super) nonzeros: Nonzeros,
    pub(super) panels: ByPanels,
    pub(super) tiles: Tiles,
    pub(super) sixteen_bit: SixteenBit,
    pub(super) warpgroups: Warpgroups,
    /// Those of `f32` in three products.
    pub(super) split_warpgroups: Warpgroups,
    pub(super) split_sums: SplitSums,
}

impl CostModel {
    /// The library's, fitted to an H100 (docs/cost-models.md).
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
        Self {
            common: Common::read(&file, "common"),
            nonzeros: Nonzeros::read(&file, "nonzeros"),
            panels: ByPanels::read(&file, "panels"),
            tiles: Tiles::read(&file, "tiles"),
            sixteen_bit: SixteenBit::read(&file, "sixteen_bit"),
            warpgroups: Warpgroups::read(&file, "warpgroups"),
            split_warpgroups: Warpgroups::read(&file, "split_warpgroups"),
            split_sums: SplitSums::read(&file, "split_sums"),
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
        let mut count = 0;
        for (section, of) in model.file.sections.iter().enumerate() {
            for (index, Constant { name, value, unit, bounds: [low, high], about, .. }) in
                of.constants.iter().enumerate()
            {
                let name = format!("{}.{name}", of.name);
                assert!(0.0 <= *low && low < high && (*low..=*high).contains(value), "{name}");
                assert!(unit != "part" || *high <= 1.0, "{name}");
                assert!(!about.is_empty(), "{name}");
                // A constant that nothing reads changes no struct: with another value, the rest is the same.
                let mut file = model.file.clone();
                file.sections[section].constants[index].value += 1.0;
                let mut other = CostModel::new(file);
                other.file = model.file.clone();
                assert!(other != *model, "{name} is not read");
                count += 1;
            }
        }
        assert_eq!(count, 34);
        assert_eq!(["f32", "16-bit"].map(|kind| model.file.fitted_to(kind).count()), [27, 7]);
    }

    #[test]
    fn other_values_go_where_they_belong() {
        let shipped = CostModel::hopper();
        let other = CostModel::new(shipped.file.clone().with_values("16-bit", &[7.0; 7]));
        assert_eq!(
            other.sixteen_bit,
            SixteenBit { nonzero_conversion: 7.0, panel_conversion: 7.0, piece: 7.0 }
        );
        assert_eq!(other.warpgroups, Warpgroups { line: 7.0, tile: 7.0, place: 7.0, nonzero: 7.0 });
        assert_eq!(
            (other.common, other.nonzeros, other.panels),
            (shipped.common, shipped.nonzeros, shipped.panels)
        );
        assert_eq!((other.tiles, other.split_sums), (shipped.tiles, shipped.split_sums));
        assert_eq!(other.split_warpgroups, shipped.split_warpgroups);
    }
}
