//! Masks of files: which weights of a layer are left.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lacuna_matrix::Pattern;
use lacuna_matrix::io::{ReadError, smtx};
use thiserror::Error;

use crate::network::{Convolution, Network};
use crate::weights::{Tensor, Weights, WeightsError};

/// Masks of a network's layers, as the Deep Learning Matrix Collection has them: a pattern a file, outputs × inputs, without values.
#[derive(Clone, Debug, Default)]
pub struct Masks {
    /// By layer.
    masks: BTreeMap<String, Mask>,
    /// The file of each layer that has none there.
    missing: BTreeMap<String, PathBuf>,
}

/// What is left of a tensor.
#[derive(Clone, Debug)]
struct Mask {
    tensor: String,
    shape: Vec<usize>,
    pattern: Pattern,
}

/// Why there are no masks.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MaskError {
    /// A file cannot be read, or is no `.smtx`.
    #[error("layer {layer}: {source}")]
    Read {
        /// The layer.
        layer: String,
        /// What is wrong with the file.
        source: ReadError,
    },
    /// A mask has not the size of the layer's weights.
    #[error(
        "layer {layer}: {}: expected a mask of {} × {}, outputs × inputs, got {} × {}; build the network with these sizes, or \
         take another file", file.display(), expected[0], expected[1], got[0], got[1]
    )]
    Shape {
        /// The layer.
        layer: String,
        /// The file.
        file: PathBuf,
        /// Outputs and inputs of the layer.
        expected: [usize; 2],
        /// Rows and columns of the mask.
        got: [usize; 2],
    },
    /// A layer has no file, where all are wanted.
    #[error("layer {layer}: there is no file {}; put it there, or prune this layer in another way", file.display())]
    Missing {
        /// The layer.
        layer: String,
        /// Its file.
        file: PathBuf,
    },
}

impl Masks {
    /// The masks of a folder for the layers of a network whose weights can be a sparse matrix. `file` is the name of a layer's file there; none for a
    /// layer that is to keep all weights. Layers without their file are [`missing`](Self::missing).
    ///
    /// ```
    /// use lacuna_models::networks::TransformerBase;
    /// use lacuna_models::prune::Masks;
    /// use lacuna_models::weights::Weights;
    ///
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let network = TransformerBase::dense(256, 256)?.network(1)?;
    /// let masks = Masks::read("dlmc/transformer/magnitude_pruning/0.9".as_ref(), &network, TransformerBase::dlmc_file)?;
    /// masks.expect_all()?;
    /// let mut weights = Weights::drawn(&network, 1)?;
    /// weights.append(masks.masked_drawn(&weights)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`MaskError::Read`] and [`MaskError::Shape`], with the layer and the file.
    pub fn read(
        folder: &Path,
        network: &Network,
        file: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, MaskError> {
        let mut masks = Self::default();
        for layer in network.layers() {
            let sparse = network.convolution(layer).filter(Convolution::may_be_sparse);
            let Some(Convolution { shape, filters: Some((tensor, extents)), .. }) = sparse else { continue };
            let Some(path) = file(&layer.name).map(|name| folder.join(name)) else { continue };
            let layer = layer.name.clone();
            if !path.is_file() {
                masks.missing.insert(layer, path);
                continue;
            }
            let pattern = match smtx::read_path(&path) {
                Ok(pattern) => pattern,
                Err(source) => return Err(MaskError::Read { layer, source }),
            };
            let (expected, got) = ([shape.filters, shape.channels], [pattern.rows(), pattern.cols()]);
            if got != expected {
                return Err(MaskError::Shape { layer, file: path, expected, got });
            }
            masks.masks.insert(layer, Mask { tensor, shape: extents, pattern });
        }
        Ok(masks)
    }

    /// The layers that have a mask, and it.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Pattern)> {
        self.masks.iter().map(|(layer, mask)| (layer.as_str(), &mask.pattern))
    }

    /// The layers whose file is not there, and it.
    pub fn missing(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.missing.iter().map(|(layer, file)| (layer.as_str(), file.as_path()))
    }

    /// An error unless each layer has its file.
    ///
    /// # Errors
    /// [`MaskError::Missing`], for the first of them.
    pub fn expect_all(&self) -> Result<(), MaskError> {
        let missing = |(layer, file): (&String, &PathBuf)| MaskError::Missing {
            layer: layer.clone(),
            file: file.clone(),
        };
        self.missing.first_key_value().map_or(Ok(()), |first| Err(missing(first)))
    }

    /// Of [drawn](Weights::drawn) weights, the tensors of layers that have a mask, with 0 wherever it has nothing. What is left grows by √(elements /
    /// nonzeros), so that sums keep their size: trained weights must not be given.
    ///
    /// # Errors
    /// [`WeightsError::Missing`] and [`WeightsError::Shape`] for weights of another network.
    pub fn masked_drawn(&self, weights: &Weights) -> Result<Weights, WeightsError> {
        let mut masked = Weights::new();
        for Mask { tensor, shape, pattern } in self.masks.values() {
            let dense = weights.get(tensor, shape)?.values();
            let mut values = vec![0.0; dense.len()];
            let factor = (dense.len() as f32 / pattern.nnz().max(1) as f32).sqrt();
            for row in 0..pattern.rows() {
                for &column in pattern.row_columns(row) {
                    let at = row * pattern.cols() + column as usize;
                    values[at] = factor * dense[at];
                }
            }
            masked.insert(tensor.clone(), Tensor::new(shape.clone(), values)?);
        }
        Ok(masked)
    }
}
