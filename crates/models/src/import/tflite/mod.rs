//! Networks from TFLite files (TensorFlow Lite, LiteRT), pruned ones among them.
//!
//! ```no_run
//! use lacuna::Stream;
//! use lacuna_models::import::tflite::{self, Options};
//! use lacuna_models::model::{self, Model};
//!
//! # fn example(stream: &Stream) -> Result<(), Box<dyn std::error::Error>> {
//! let imported = tflite::read("pose_detection.tflite", &Options::default())?;
//! // Maps are NCHW unless said otherwise, the input too. Weights with many zeros are then sparse matrices.
//! let model: Model = Model::plan(stream, &imported.network, &imported.weights, &model::Options::default())?;
//! for output in &imported.outputs {
//!     println!("{} of {:?} is {:?} of each row", output.name, output.shape, output.features);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Convolutions keep their activations; sums become residuals of convolutions, margins their padding, where they can. What a layer has no form for
//! is refused by the operator's name.

mod elements;
mod error;
mod importer;
mod operator;
mod views;
mod windows;

use std::ops::Range;
use std::path::Path;

pub use error::{ImportError, OperatorProblem};
use importer::Importer;
use operator::Place;

use crate::files::tflite::{Element, Model};
use crate::network::{Network, Shape};
use crate::weights::Weights;

/// What may be chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Images of the input. If none, as many as the file has.
    pub images: Option<usize>,
}

/// A network from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// Its layers, named as the tensors that operators make. Its result is a matrix: of each image a row, with all outputs of the file one after
    /// another.
    pub network: Network,
    /// Its weights. Those that are sparse in the file are dense here: a model holds them as sparse matrices again.
    pub weights: Weights,
    /// What the file computes, in its order.
    pub outputs: Vec<Output>,
    /// The names of those layers whose weights are sparse in the file.
    pub sparse: Vec<String>,
}

/// An output of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// Its shape, the images first.
    pub shape: Vec<usize>,
    /// Which features of each row of the network's result it is. They have the file's order, whatever layout maps have: the last
    /// dimension's elements are side by side.
    pub features: Range<usize>,
}

/// Reads a file.
///
/// # Errors
/// As [`from_bytes`]; [`ImportError::File`], with the path, also where it cannot be read.
pub fn read(path: impl AsRef<Path>, options: &Options) -> Result<Imported, ImportError> {
    let path = path.as_ref();
    let model = Model::open(path).map_err(|source| ImportError::File { source })?;
    import(&model, options).map_err(|error| error.in_file(path))
}

/// Reads a file's bytes. Whatever they are, there is a result or an error, and memory grows with them, not with what they claim.
///
/// # Errors
/// [`ImportError::File`] where they are no TFLite file, or its values cannot be read; [`ImportError::Inputs`], [`ImportError::Input`] and
/// [`ImportError::Output`] where inputs and outputs are not those of one network; [`ImportError::Operator`] for what cannot be imported;
/// [`ImportError::Network`] where nothing is left of it.
pub fn from_bytes(bytes: &[u8], options: &Options) -> Result<Imported, ImportError> {
    let model = Model::new(bytes.to_vec()).map_err(|source| ImportError::File { source })?;
    import(&model, options)
}

fn import(model: &Model, options: &Options) -> Result<Imported, ImportError> {
    let (number, shape) = input(model, options)?;
    let mut importer = Importer::new(model, number, shape, super::budget(model.bytes()));
    for (index, operator) in model.operators().iter().enumerate() {
        importer.operator(Place { index, operator })?;
    }
    let mut outputs = Vec::new();
    let mut end: usize = 0;
    let mut rows = Vec::new();
    for &tensor in model.outputs() {
        let (id, dims) = importer.row(tensor)?;
        let begin = end;
        end = end.saturating_add(importer.drafts.shape(id).channels);
        let shape = [shape.images].into_iter().chain(dims).collect();
        outputs.push(Output { name: model.tensors()[tensor].name.clone(), shape, features: begin..end });
        rows.push(id);
    }
    let result = importer.side_by_side(rows)?;
    let Importer { drafts, weights, sparse, .. } = importer;
    Ok(Imported { network: drafts.finish(result)?, weights, outputs, sparse })
}

/// The number of the input, and its shape.
fn input(model: &Model, options: &Options) -> Result<(usize, Shape), ImportError> {
    let names = || model.inputs().iter().map(|&input| model.tensors()[input].name.clone()).collect();
    let &[number] = model.inputs() else { return Err(ImportError::Inputs { got: names() }) };
    let info = &model.tensors()[number];
    let error =
        |expected: &'static str, got: String| ImportError::Input { name: info.name.clone(), expected, got };
    if info.element != Element::F32 {
        return Err(error("numbers of type f32", format!("{:?}", info.element)));
    }
    let (&images, channels, size) = match &info.shape[..] {
        [images, features] => (images, *features, [1, 1]),
        [images, rows, columns, channels] => (images, *channels, [*rows, *columns]),
        _ => {
            let expected = "images × rows × columns × channels, or rows × features";
            return Err(error(expected, format!("{:?}", info.shape)));
        }
    };
    let shape = Shape::maps(options.images.unwrap_or(images), channels, size);
    let is_right = (1..=super::MOST).contains(&shape.elements());
    if !is_right {
        return Err(error("at least one element, and no more than memory can hold", shape.to_string()));
    }
    Ok((number, shape))
}
