//! TFLite: networks of TensorFlow Lite (LiteRT), among them pruned ones in daily use.
//!
//! A file is a FlatBuffer of a schema of TensorFlow's, version 3. Read are its tensors, with the values of those that have them, and its
//! operators. Weights may be sparse there ([`TensorInfo::is_sparse`]) and `f16`: the graph then makes them dense and `f32` by operators of its own, which
//! [`Model::source`] goes back through.
//!
//! ```no_run
//! use lacuna_models::files::tflite::{Model, OperatorKind};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Model::open("pose_detection.tflite")?;
//! for operator in model.operators() {
//!     let OperatorKind::Conv2d { window, .. } = &operator.kind else { continue };
//!     if let Some(filters) = operator.inputs[1].and_then(|input| model.source(input)) {
//!         let filters = model.numbers(filters)?;
//!         println!("{:?}, strides {:?}", filters.shape(), window.strides);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod error;
mod flat;
mod model;
mod operator;
mod sparsity;

pub use error::{TensorProblem, TfliteError};
pub use model::{Element, Model, TensorInfo};
pub use operator::{Activation, Operator, OperatorKind, Padding, Window};
