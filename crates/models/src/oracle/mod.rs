//! A network in `f64` on the host, with the error that a right result may have.
//!
//! [`run`] carries errors through all layers: what a device may have of each value is within a bound of the exact one. A layer's result errs by
//! - what its own sums may be off (`lacuna_reference::bound`), of inputs as large as they may be with their errors;
//! - where values have 16 bits, the rounding of each result to them, once;
//! - the error of its input: through |w| of a convolution, as their mean of a mean, as it is of a maximum, a clamp (both take numbers no
//!   further apart than they were) and a sum.
//!
//! That is the worst case, and grows by Σ|w| a layer: some layers of drawn weights multiply it by ten each, so that behind fifty layers it says nothing.
//! [`check_layer`] is for those: it takes what the device itself gave to a layer as exact, so that the bound is that of one layer.
//! A network whose layers are all right is right.
//!
//! Inputs and weights are taken as the type of values has them, rounded. A result beyond its largest number is infinite on a device, and told as wrong.

mod approximate;
mod layers;
mod run;

pub(crate) use approximate::sum_error;
pub use approximate::{Approximate, Check, OracleError};
pub use run::{check_layer, run};

/// A type of a network's values: `f32`, `half::f16` or `half::bf16`.
pub trait Number: lacuna::Value + lacuna_reference::Value {}
impl<T: lacuna::Value + lacuna_reference::Value> Number for T {}

/// The numbers that they hold.
fn numbers<T: lacuna::Value>(values: &[T]) -> Vec<f32> {
    values.iter().map(|value| value.to_f32()).collect()
}
