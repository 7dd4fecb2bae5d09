//! What papers published.

/// Tokens of a sequence in table III of *Sparse GPU Kernels for Deep Learning* (SC 2020).
pub const TOKENS: usize = 12_288;
/// Tokens a second of table III's Transformer with a sparse mask, on a V100. With a dense one it is 32,477.
pub const TABLE_III: f64 = 67_857.0;

/// A row of table IV of *Sparse GPU Kernels for Deep Learning* (SC 2020): MobileNetV1 on ImageNet, one image, on a V100. Sparse ones have 90 % zeros in
/// their 1×1 layers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Whether it is sparse.
    pub is_sparse: bool,
    /// The width.
    pub width: f64,
    /// Accuracy, per cent.
    pub accuracy: f64,
    /// Images a second.
    pub frames_per_s: f64,
}

const fn row(is_sparse: bool, width: f64, accuracy: f64, frames_per_s: f64) -> Row {
    Row { is_sparse, width, accuracy, frames_per_s }
}

/// Table IV.
pub const TABLE_IV: [Row; 9] = [
    row(false, 1.0, 72.7, 2518.0),
    row(false, 1.2, 73.8, 2046.0),
    row(false, 1.4, 74.8, 1729.0),
    row(true, 1.3, 72.9, 2874.0),
    row(true, 1.4, 73.3, 2706.0),
    row(true, 1.5, 73.8, 2537.0),
    row(true, 1.6, 74.1, 2366.0),
    row(true, 1.7, 74.4, 2226.0),
    row(true, 1.8, 74.9, 2095.0),
];

impl Row {
    /// The row of a width, sparse or dense.
    pub fn of(is_sparse: bool, width: f64) -> Option<&'static Self> {
        TABLE_IV.iter().find(|row| row.is_sparse == is_sparse && (row.width - width).abs() < 1e-9)
    }

    /// The most accurate dense network of the table that is not more accurate than this one: the nearest from below, so that a sparse network
    /// that is faster loses nothing by it.
    pub fn dense_of_same_accuracy(&self) -> Option<&'static Self> {
        let dense = TABLE_IV.iter().filter(|row| !row.is_sparse && row.accuracy <= self.accuracy);
        dense.max_by(|a, b| a.accuracy.total_cmp(&b.accuracy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sparse_network_has_a_dense_one_that_is_as_accurate() {
        let dense = |width| Row::of(true, width)?.dense_of_same_accuracy().map(|row| row.width);
        let widths = [1.3, 1.4, 1.5, 1.6, 1.7, 1.8].map(dense);
        assert_eq!(widths, [1.0, 1.0, 1.2, 1.2, 1.2, 1.4].map(Some));
        assert_eq!((Row::of(true, 1.0), Row::of(false, 1.8)), (None, None));
        // The paper's own claim: 21 to 24 % at equal accuracy.
        let speedup = |width| {
            let sparse = Row::of(true, width)?;
            Some(sparse.frames_per_s / sparse.dense_of_same_accuracy()?.frames_per_s)
        };
        assert!(speedup(1.5).unwrap() > 1.23 && speedup(1.8).unwrap() > 1.21);
    }
}
