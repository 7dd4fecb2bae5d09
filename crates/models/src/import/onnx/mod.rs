//! ONNX: a network and its weights from a file that a framework exported.
//!
//! | nodes | become |
//! | --- | --- |
//! | `Conv`: any taps and strides, groups of 1 or of one channel each | [`Conv`](crate::network::Conv); a margin that differs on two sides, a [`Pad`](crate::network::Pad) before it |
//! | `BatchNormalization` | the norm of the convolution before, or [`Scale`](crate::network::Scale) |
//! | `Relu`, `Clip` | the activation of the layer before, or a depthwise convolution by 1 |
//! | `Add` of two values | the residual of a convolution, or [`Add`](crate::network::Add) |
//! | `Add` of a number for each channel | the bias of the layer before, or a depthwise convolution by 1 |
//! | `MaxPool`, `AveragePool`, `GlobalAveragePool`, `ReduceMean` of maps | [`Pool`](crate::network::Pool) |
//! | `Gemm`, `MatMul` by a matrix of the file | [`Linear`](crate::network::Linear) |
//! | `Concat` of channels | [`Concat`](crate::network::Concat) |
//! | `Flatten`, `Reshape`, `Squeeze` that give rows of features | [`Flatten`](crate::network::Flatten), or nothing |
//! | `Transpose` between channels first and last | nothing: [`Imported::layout`] tells how the file has its input |
//! | `Pad` with a constant | the margin of a convolution, or [`Pad`](crate::network::Pad) |
//! | `Identity`, `Dropout`, `Constant` | nothing |
//! | `Softmax` as the last node | nothing: [`Imported::softmax`] says that it is left to the host |
//!
//! All other nodes, and attributes that no layer has, are errors that name the node. Nodes that the result does not need are not read. Values are
//! `f32`; those of `FLOAT16`, `BFLOAT16` and `DOUBLE` are converted.
//!
//! ```no_run
//! use lacuna_models::import::onnx::{self, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let imported = onnx::read("network.onnx", &Options::default())?;
//! println!("{} layers, input {}", imported.network.layers().len(), imported.network.input_shape());
//! # Ok(())
//! # }
//! ```

mod constant;
mod error;
mod graph;
mod importer;
mod linear;
mod node;
mod schema;
mod sums;
mod views;
mod windows;

use std::path::Path;

use lacuna::conv::MapLayout;
use prost::Message;

pub use error::{NodeProblem, OnnxError};
use graph::Graph;
use importer::{Importer, View};
use schema::{ModelProto, ValueInfoProto};

use crate::network::{Network, Shape};
use crate::weights::Weights;

/// What may be chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Images of the input. If none, as many as the file has, or 1 where it leaves them open.
    pub images: Option<usize>,
    /// Rows and columns of the input. If none, those of the file.
    pub size: Option<[usize; 2]>,
    /// The value that is the result, by its name: any that a node makes. If none, the one result of the file.
    pub output: Option<String>,
}

/// A network from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// Its layers, named as the nodes.
    pub network: Network,
    /// Its weights.
    pub weights: Weights,
    /// How the file has its input. The network has it as the model's options say.
    pub layout: MapLayout,
    /// The softmax that the file ends with, by the name of its result. The network's result is what goes into it, and the rest is left to the host.
    pub softmax: Option<String>,
}

/// Reads a file.
///
/// # Errors
/// As [`from_bytes`], with the path; [`OnnxError::Read`] where it cannot be read.
pub fn read(path: impl AsRef<Path>, options: &Options) -> Result<Imported, OnnxError> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|source| OnnxError::Read { source }.in_file(path))?;
    from_bytes(&bytes, options).map_err(|error| error.in_file(path))
}

/// Reads a file's bytes. Whatever they are, there is a result or an error, and memory grows with them, not with what they claim.
///
/// # Errors
/// [`OnnxError::Damaged`] where they are no ONNX file; [`OnnxError::Inputs`], [`OnnxError::Input`] and [`OnnxError::Output`] where input or result are not
/// those of one network; [`OnnxError::Tensor`] and [`OnnxError::Node`] for what cannot be imported; [`OnnxError::Network`] where nothing is left of it.
pub fn from_bytes(bytes: &[u8], options: &Options) -> Result<Imported, OnnxError> {
    let damaged = |why: String| OnnxError::Damaged { why };
    let model = ModelProto::decode(bytes).map_err(|error| damaged(error.to_string()))?;
    let graph = model.graph.ok_or_else(|| damaged("there is no graph".into()))?;
    let graph = Graph::new(&graph, options.output.as_deref())?;
    let (input, view, images) = input(&graph, options)?;
    let (nodes, output) = (graph.nodes.clone(), graph.output);
    let mut importer = Importer::new(graph, input, view, images, super::budget(bytes.len()));
    for node in nodes {
        importer.node(node)?;
    }
    let Some(value) = importer.result(output)? else {
        return Err(OnnxError::Output { wanted: Some(output.to_owned()), got: Vec::new() });
    };
    let Importer { drafts, weights, softmax, .. } = importer;
    let network = drafts.finish(value.id)?;
    let layout = if view == View::Nhwc { MapLayout::Nhwc } else { MapLayout::Nchw };
    Ok(Imported { network, weights, layout, softmax: softmax.map(str::to_owned) })
}

/// The input's shape, the order of its dimensions, and its images in the file.
fn input(graph: &Graph<'_>, options: &Options) -> Result<(Shape, View, Option<usize>), OnnxError> {
    let ValueInfoProto { name, r#type } = graph.input;
    let error = |expected: &'static str, got: String| OnnxError::Input { name: name.clone(), expected, got };
    let tensor = r#type.as_ref().and_then(|of| of.tensor_type.as_ref());
    let Some(shape) = tensor.and_then(|tensor| tensor.shape.as_ref()) else {
        return Err(error("a tensor with a shape", "none".into()));
    };
    // An extent that is not a number, or 0 or less, is chosen when the network runs.
    let extents: Vec<Option<usize>> = shape
        .dim
        .iter()
        .map(|dim| dim.dim_value.and_then(|value| node::sizes(&[value])).map(|[size]| size))
        .collect();
    let extents: Vec<Option<usize>> =
        extents.into_iter().map(|extent| extent.filter(|&extent| extent > 0)).collect();
    let got = || format!("{extents:?}");
    let (view, images, channels, size) = match extents[..] {
        [images, features] => (View::Matrix, images, features, [Some(1); 2]),
        [images, a, b, c] if is_channels_last(graph) => (View::Nhwc, images, c, [a, b]),
        [images, a, b, c] => (View::Nchw, images, a, [b, c]),
        _ => return Err(error("images × channels × rows × columns, or rows × features", got())),
    };
    let Some(channels) = channels else { return Err(error("a known number of channels", got())) };
    let chosen = options.size.map(|size| size.map(Some)).filter(|_| view != View::Matrix);
    let [Some(rows), Some(columns)] = chosen.unwrap_or(size) else {
        return Err(error("a known number of rows and columns: choose them by `Options::size`", got()));
    };
    let number = options.images.or(images).unwrap_or(1);
    let are_right = [number, rows, columns].iter().all(|&size| (1..=i32::MAX as usize).contains(&size));
    if !are_right {
        let expected = "images, rows and columns of at least 1, below 2³¹";
        return Err(error(expected, format!("{number} × {rows} × {columns}")));
    }
    let shape = Shape::maps(number, channels, [rows, columns]);
    if shape.elements() > super::MOST {
        return Err(error("a value that memory can hold", got()));
    }
    Ok((shape, view, images))
}

/// Whether all that reads the input moves its channels to the front.
fn is_channels_last(graph: &Graph<'_>) -> bool {
    let name = graph.input.name.as_str();
    let mut readers =
        graph.nodes.iter().filter(|node| node.0.input.iter().any(|input| input == name)).peekable();
    readers.peek().is_some()
        && readers.all(|node| node.op() == "Transpose" && node.ints("perm") == Some(&[0, 3, 1, 2]))
}
