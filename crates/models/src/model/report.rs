//! What a model tells of its layers.
use std::fmt;

/// What a model tells of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Its layers, in the order in which they run.
    pub layers: Vec<LayerReport>,
    /// Bytes of the memory that intermediate values share: their peak.
    pub peak_bytes: usize,
    /// Bytes that they would have, each by itself.
    pub sum_bytes: usize,
    /// Bytes of weights and biases, as kernels read them.
    pub weight_bytes: usize,
    /// Bytes of plans' own memory.
    pub workspace_bytes: usize,
}

/// What a layer is and costs.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerReport {
    /// Its name.
    pub name: String,
    /// The kernel; `none` where nothing is to be done, several joined by ` + `.
    pub kernel: String,
    /// Over how many blocks the channels are split; 1 where they are not.
    pub splits: usize,
    /// Bytes that it must move: inputs, weights and result, once each.
    pub bytes: usize,
    /// Multiply-adds, of dense weights; 0 where there are no weights.
    pub products: u64,
    /// The part of its weights that is zero; none where it has none.
    pub zero_weights: Option<f64>,
    /// Bytes of its weights and bias on the device.
    pub weight_bytes: usize,
    /// Bytes of its plan's own memory.
    pub workspace_bytes: usize,
}

impl fmt::Display for Report {
    /// A line a layer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for layer in &self.layers {
            let zeros =
                layer.zero_weights.map_or_else(|| "-".into(), |zeros| format!("{:.0} %", 100.0 * zeros));
            let LayerReport { name, kernel, splits, bytes, products, .. } = layer;
            writeln!(
                f,
                "{name}: {kernel}, splits {splits}, {products} products, {bytes} bytes, zeros {zeros}"
            )?;
        }
        let Self { peak_bytes, sum_bytes, weight_bytes, workspace_bytes, .. } = self;
        write!(
            f,
            "{peak_bytes} bytes of values at most ({sum_bytes} without sharing), {weight_bytes} of weights, \
             {workspace_bytes} of plans"
        )
    }
}
