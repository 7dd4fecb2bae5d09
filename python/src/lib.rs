//! Lacuna as a Python module: `lacuna._lacuna`, which the Python files of package `lacuna` call.
//!
//! It is thin. Tensors come as addresses, with shapes and strides that the Python files have checked; what the library works out
//! once (plans) is kept with the pattern, and found again by what it was planned for. Calls that were planned may come with the
//! tensors themselves (`…_direct`): module `torch` looks at them, and refuses what the Python files then explain. Every call that may work on a device gives up
//! Python's lock. Nothing here waits for a device but what makes patterns, bags, masks and packed weights, and the first plan of each.
mod attention;
mod attention_backward;
mod device;
mod error;
mod lookup;
mod mask;
mod pattern;
mod plans;
mod products;
mod sddmm;
mod softmax;
mod topn;
mod torch;

use pyo3::prelude::*;

/// The native half of package `lacuna`.
#[pymodule]
mod _lacuna {
    #[pymodule_export]
    use crate::attention::MaskBlocks;
    #[pymodule_export]
    use crate::device::{Device, Memory};
    #[pymodule_export]
    use crate::lookup::Bags;
    #[pymodule_export]
    use crate::mask::Mask;
    #[pymodule_export]
    use crate::pattern::Pattern;
    #[pymodule_export]
    use crate::products::Packed;
    #[pymodule_export]
    use crate::torch::connect;
    use pyo3::prelude::*;

    /// Says whether this was built for GPUs.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("HAS_CUDA", cfg!(feature = "cuda"))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
