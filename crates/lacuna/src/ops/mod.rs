//! The operations: a folder each, with its options, its problem with the cost of its kernels, and its plan. What stands at the
//! library's root stands here.
//!
//! | operation, with page `docs/<operation>.md` | what it does |
//! | --- | --- |
//! | `attention` | sparse attention for any mask, in one kernel or in three steps, and its gradient |
//! | `bias_act` | bias, activation (ReLU, clamp, GELU) and residual of a dense matrix in one pass |
//! | `conv` | convolution of feature maps, with zeros left out, and bias, residual and activation |
//! | `dense_transpose` | the transposes of a batch of dense matrices: feature maps from NCHW to NHWC and back |
//! | `import` | patterns from index arrays of another program's that are on the device |
//! | `layer_norm` | layer normalisation of rows of features, or over the channels of maps |
//! | `nhot` | embedding-bag lookup: sums of the rows of a dense table that bags of indices name, and its gradients |
//! | `pointwise` | pointwise (1×1) convolution with sparse weights, as a product with each image's map |
//! | `pool` | pooling of feature maps: the greatest pixel or the mean of windows, or of the whole map |
//! | `sddmm` | the product of two dense matrices at the nonzeros of a sparse one |
//! | `softmax` | softmax over the rows of a sparse matrix, and its gradient |
//! | `spdnn` | inference of sparse feed-forward networks, with samples that become zero left out |
//! | `spmm` | a sparse matrix times a dense one |
//! | `topn` | softmax and top-N of dense rows in one pass, and beam search |
//! | `transpose` | the transpose of a sparse matrix, on the device |
pub mod attention;
pub mod bias_act;
pub mod conv;
pub mod dense_transpose;
pub mod import;
pub mod layer_norm;
pub mod nhot;
pub mod pointwise;
pub mod pool;
pub mod sddmm;
pub mod softmax;
pub mod spdnn;
pub mod spmm;
pub mod topn;
pub mod transpose;

pub use attention::{AttentionSteps, BlockAttention, SparseAttention};
pub use bias_act::BiasAct;
pub use conv::Conv;
pub use dense_transpose::DenseTranspose;
pub use import::ForeignIndex;
pub use layer_norm::LayerNorm;
pub use nhot::{Bags, NHot, nhot};
pub use pointwise::SparsePointwiseConv;
pub use pool::Pool;
pub use sddmm::{Sddmm, sddmm};
pub use softmax::SparseSoftmax;
pub use spdnn::SparseNetwork;
pub use spmm::{LONG_ROWS, Precision, Spmm, spmm};
pub use topn::{BeamSearch, TopN};
