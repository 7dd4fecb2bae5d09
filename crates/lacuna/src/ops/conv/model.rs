//! The cost model's constants: data, a file for a family of GPUs.
use std::sync::LazyLock;

use crate::op::{ModelFile, section};

/// The file of Hopper: H100 and H200.
const HOPPER: &str = include_str!("../../../models/hopper-conv.json");

section! {
    /// Of all kernels that split channels. The file says what each means.
    Common: launch reduce bytes_a_cycle
}
section! {
    /// Of tiles by `mma`.
    Mma: eight slot slot_16 alone block
}
section! {
    /// Of tiles by warpgroups.
    Wgmma: product start_product alone fill fill_16 slot slot_16 not_hidden block write
}
section! {
    /// Of filters of one tap without shared memory.
    Pointwise: product input input_16 strided wait wait_16 block write
}
section! {
    /// Of filters of one tap by warpgroups.
    WgmmaPointwise: product fill fill_16 filter strided block write
}
section! {
    /// Of panels by warpgroups.
    WgmmaPanels: product row wait tile write block
}

/// The constants of the cost model of kernels on tensor cores, as data: what each means is in `models/hopper-conv.json`. They
/// belong to a family of GPUs; `lacuna-bench fit` finds them from measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct CostModel {
    file: ModelFile,
    pub(super) common: Common,
    pub(super) mma: Mma,
    pub(super) wgmma: Wgmma,
    pub(super) pointwise: Pointwise,
    pub(super) wgmma_pointwise: WgmmaPointwise,
    pub(super) wgmma_panels: WgmmaPanels,
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
            mma: Mma::read(&file, "mma"),
            wgmma: Wgmma::read(&file, "wgmma"),
            pointwise: Pointwise::read(&file, "pointwise"),
            wgmma_pointwise: WgmmaPointwise::read(&file, "wgmma_pointwise"),
            wgmma_panels: WgmmaPanels::read(&file, "wgmma_panels"),
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
        for (section, of) in model.file.sections.iter().enumerate() {
            for (index, Constant { name, value, bounds: [low, high], about, .. }) in
                of.constants.iter().enumerate()
            {
                let name = format!("{}.{name}", of.name);
                assert!(0.0 <= *low && low < high && (*low..=*high).contains(value), "{name}");
                assert!(!about.is_empty(), "{name}");
                // A constant that nothing reads changes no struct: with another value, the rest is the same.
                let mut file = model.file.clone();
                file.sections[section].constants[index].value += 1.0;
                let mut other = CostModel::new(file);
                other.file = model.file.clone();
                assert!(other != *model, "{name} is not read");
            }
        }
    }
}
