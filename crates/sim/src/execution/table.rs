//! The kernels of the library, to be launched by name.
use std::any::{Any, type_name};

use lacuna_kernels::Kernel;

use crate::execution::error::LaunchError;
use crate::execution::simulator::Simulator;
use crate::report::Report;

type Run = fn(&'static str, &Simulator, [u32; 3], &dyn Any) -> Result<Report, LaunchError>;

/// A kernel of the library's list.
#[derive(Clone, Copy, Debug)]
pub struct SimKernel {
    name: &'static str,
    run: Run,
}

impl SimKernel {
    const fn of<K: Kernel>(name: &'static str) -> Self {
        Self { name, run: run::<K> }
    }

    /// The name of its entry point.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Launches it: as [`Simulator::launch`], with `args` a reference to its own `Args`.
    ///
    /// # Errors
    /// As [`Simulator::launch`], and [`LaunchError::Arguments`] where `args` is of another type.
    pub fn launch(
        &self,
        simulator: &Simulator,
        grid: [u32; 3],
        args: &dyn Any,
    ) -> Result<Report, LaunchError> {
        (self.run)(self.name, simulator, grid, args)
    }
}

fn run<K: Kernel>(
    name: &'static str,
    simulator: &Simulator,
    grid: [u32; 3],
    args: &dyn Any,
) -> Result<Report, LaunchError> {
    let expected = type_name::<K::Args>();
    let args = args.downcast_ref::<K::Args>().ok_or(LaunchError::Arguments { kernel: name, expected })?;
    simulator.launch_named::<K>(name, grid, *args)
}

macro_rules! table {
    ($($operation:ident { $($(#[$attribute:meta])* { $($name:expr => $kernel:ty;)+ })+ })+) => {
        /// All kernels of the library, in the order of its list.
        pub fn kernels() -> &'static [SimKernel] {
            // Not a static: that would compile every kernel into this crate's own tests, which run none of them.
            const { &[$($($(SimKernel::of::<$kernel>($name),)+)+)+] }
        }
    };
}
lacuna_kernels::for_each_kernel!(table);

/// The kernel with this entry point.
pub fn find(name: &str) -> Option<&'static SimKernel> {
    kernels().iter().find(|kernel| kernel.name == name)
}
