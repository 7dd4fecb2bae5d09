//! Networks as data: a graph of layers, whose shapes are checked when it is built.
//!
//! A [`Network`] knows sizes and names of tensors, no device and no weights. [`Model`](crate::model::Model) runs it on a
//! device, [`oracle`](crate::oracle) in `f64` on the host; [`Memory`](crate::memory::Memory) says where values lie.
//!
//! ```
//! use lacuna_models::network::{Conv, Linear, Network, Pool, Shape};
//!
//! # fn main() -> Result<(), lacuna_models::network::NetworkError> {
//! let mut builder = Network::builder(Shape::maps(1, 3, [32, 32]));
//! let x = builder.input();
//! let y = builder.layer("stem", Conv::new(16, [3, 3]).padding([1, 1]).norm("stem_norm").relu(), &[x])?;
//! let z = builder.layer("body", Conv::new(16, [3, 3]).padding([1, 1]).relu().residual(), &[y, y])?;
//! let mean = builder.layer("mean", Pool::global_average(), &[z])?;
//! let scores = builder.layer("head", Linear::new(10), &[mean])?;
//! let network = builder.finish(scores)?;
//! assert_eq!(network.output_shape(), Shape::matrix(1, 10));
//! # Ok(())
//! # }
//! ```
//!
//! # A new type of layer
//! 1. A file in `layers`: a struct with what a user chooses, and from the shapes of its inputs the shape of its result
//!    (`output`). One that multiplies by weights says as which convolution (`convolution`), and has all else from there; another
//!    with weights says which (`parameters`).
//! 2. A variant of [`Operation`], in `layers/mod.rs`. The compiler then names the places that must know it: the layer's rules
//!    there, its launch in `model/steps`, its `f64` form in `oracle/layers`.
//! 3. Where the result is the input, or lies in parts of a wider value, a line in `memory/places.rs`.

mod builder;
mod convolution;
mod error;
mod graph;
mod layers;
mod shape;

pub use builder::Builder;
pub use convolution::{Convolution, Norm, Parameter, Role};
pub use error::{NetworkError, Problem};
pub use graph::{Layer, Network, ValueId};
pub use lacuna::conv::Activation;
pub(crate) use layers::Part;
pub use layers::{
    Add, Attention, Concat, Conv, DepthToSpace, Flatten, FlattenNhwc, LayerNorm, Linear, Operation, Pad,
    PadChannels, Padding, Pool, Resize, Sampling, Scale, Window,
};
pub use shape::Shape;
