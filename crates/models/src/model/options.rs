//! What may be asked of a model.
use std::collections::BTreeMap;

use lacuna::conv::{Algorithm, MapLayout};
use lacuna::{Precision, spmm};

/// What may be asked of a model: of all layers, and of some by their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// How maps lie, in all of the network. Sparse weights want NCHW in front of maps of more than a pixel.
    pub layout: MapLayout,
    /// What is asked of layers of which nothing else is said.
    pub layers: LayerOptions,
    /// What is asked of these.
    pub by_name: BTreeMap<String, LayerOptions>,
}

/// What may be asked of a layer with weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerOptions {
    /// How its weights are held.
    pub weights: Held,
    /// The algorithm, where its weights are dense.
    pub algorithm: Algorithm,
    /// The algorithm, where its weights are sparse.
    pub sparse_algorithm: spmm::Algorithm,
    /// How exactly sums are computed.
    pub precision: Precision,
    /// The part of its input that is likely to be zero, by which kernels are chosen. If none, it is 0 where no ReLU comes before, and otherwise the
    /// library's default.
    pub zeros: Option<f64>,
}

/// How weights are held on the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Held {
    /// As all of their elements.
    Dense,
    /// As a sparse matrix: of linear layers, and of taps of 1×1 in NCHW.
    Sparse,
    /// As a sparse matrix where a layer can, and more than this part of its weights is zero; otherwise dense.
    SparseAbove(f64),
    /// As is faster on this GPU: where a layer can have sparse weights, and more than this part of them is zero, both ways are timed when the model
    /// is planned. Two plans may then choose, and round, differently. On the simulator as [`SparseAbove`](Self::SparseAbove) the default.
    FasterAbove(f64),
}

/// The part of zeros above which weights are sparse, where nothing is measured.
pub(super) const SPARSE_ABOVE: f64 = 0.7;

impl Default for LayerOptions {
    /// Sparse above 0.7: from there on SpMM beats dense products in full fp32 (docs/when-sparsity-pays.md). This library's own dense kernels use
    /// tensor cores, and many pixels want more zeros (docs/models-times.md): [`Held::FasterAbove`] finds out.
    fn default() -> Self {
        Self {
            weights: Held::SparseAbove(SPARSE_ABOVE),
            algorithm: Algorithm::Auto,
            sparse_algorithm: spmm::Algorithm::Auto,
            precision: Precision::Single,
            zeros: None,
        }
    }
}

impl Options {
    /// The twin to compare with: all weights dense, and sums left to cuDNN.
    pub fn cudnn() -> Self {
        let layers =
            LayerOptions { weights: Held::Dense, algorithm: Algorithm::CuDnn, ..LayerOptions::default() };
        Self { layers, ..Self::default() }
    }

    /// All weights dense, with the library's own kernels.
    pub fn dense() -> Self {
        let layers = LayerOptions { weights: Held::Dense, ..LayerOptions::default() };
        Self { layers, ..Self::default() }
    }

    /// With maps that lie so.
    #[must_use]
    pub fn layout(self, layout: MapLayout) -> Self {
        Self { layout, ..self }
    }

    /// With this asked of all layers of which nothing else is said.
    #[must_use]
    pub fn layers(self, layers: LayerOptions) -> Self {
        Self { layers, ..self }
    }

    /// With this asked of the layer of this name.
    #[must_use]
    pub fn layer(mut self, name: impl Into<String>, options: LayerOptions) -> Self {
        self.by_name.insert(name.into(), options);
        self
    }

    /// What is asked of the layer of this name.
    pub fn of(&self, name: &str) -> &LayerOptions {
        self.by_name.get(name).unwrap_or(&self.layers)
    }
}
