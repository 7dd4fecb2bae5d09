//! The oracle: every operation of Lacuna in plain Rust with `f64` sums, and the check of a result against it.
//!
//! Operands and results are `f32`, [`half::f16`] or [`half::bf16`] ([`Value`]). Products are summed in `f64`, of the
//! numbers that the operands hold. A result passes by a componentwise bound that follows from how floating-point sums err ([`bound`]), never by
//! a flat tolerance: each element may be off by what its own terms allow, and no more.
//!
//! ```
//! use lacuna_matrix::Csr;
//! use lacuna_reference::spmm;
//!
//! let a = Csr::new(1, 2, vec![0, 2], vec![0, 1], vec![0.1f32, 0.2])?;
//! let b = [1.0f32, 3.0]; // 2 × 1
//! let reference = spmm(&a, &b, 1)?;
//! let report = reference.check(&[0.1 * 1.0 + 0.2 * 3.0])?;
//! assert!(report.worst_over_bound <= 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attention;
mod bias_act;
pub mod bound;
mod conv;
mod dense_transpose;
mod elements;
mod error;
mod layer_norm;
mod nhot;
mod pointwise;
mod pool;
mod sddmm;
mod softmax;
mod spdnn;
mod spmm;
mod topn;
mod value;

pub use attention::{
    Arithmetic as AttentionArithmetic, AttentionGradients, AttentionReference, Heads, ScoreMod, attention,
    attention_backward, attention_backward_by_tiles,
};
pub use bias_act::{Activation, BiasActInputs, BiasActReference, bias_act};
pub use bound::Precision;
pub use conv::{ConvInputs, ConvReference, ConvShape, conv};
pub use dense_transpose::{DenseTransposeReference, dense_transpose};
pub use error::{Mismatch, ReferenceError};
pub use layer_norm::{LayerNormInputs, LayerNormReference, layer_norm};
pub use nhot::{NHotBags, NHotReference, nhot, nhot_table_gradient, nhot_weight_gradient};
pub use pointwise::{PointwiseReference, pointwise};
pub use pool::{PoolMode, PoolReference, PoolShape, pool};
pub use sddmm::{SampledReport, SddmmReference, sddmm};
pub use softmax::{SoftmaxReference, softmax, softmax_gradient};
pub use spdnn::{SpdnnLayer, SpdnnReference, spdnn};
pub use spmm::{
    Epilogue, ErrorReport, Extremum, ExtremumGradient, ExtremumReference, SpmmReference, spmm, spmm_extremum,
    spmm_extremum_gradient, spmm_extremum_rows, spmm_rows,
};
pub use topn::{TopNForm, TopNReference, topn};
pub use value::Value;
