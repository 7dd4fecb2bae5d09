//! The solvers of the examples, on the simulator: they converge, and to what the data was drawn from.
#[path = "../../examples/common/clock.rs"]
mod clock;
#[path = "../../examples/lda/data.rs"]
mod documents;
#[path = "../../examples/sparse_mlp/drawn.rs"]
mod drawn;
#[path = "../../examples/factor_analysis/solver.rs"]
mod factors;
#[path = "../../examples/sparse_mlp/images.rs"]
mod images;
#[path = "../../examples/sparse_mlp/inference.rs"]
mod inference;
#[path = "../../examples/sparse_mlp/layer.rs"]
mod layer;
#[path = "../../examples/sparse_mlp/loss.rs"]
mod loss;
#[path = "../../examples/lda/matching.rs"]
mod matching;
#[path = "../../examples/beam_search/model.rs"]
mod model;
#[path = "../../examples/sparse_mlp/momentum.rs"]
mod momentum;
#[path = "../../examples/sparse_mlp/network.rs"]
mod network;
#[path = "../../examples/beam_search/plain.rs"]
mod plain;
#[path = "../../examples/factor_analysis/data.rs"]
mod ratings;
#[path = "../../examples/beam_search/search.rs"]
mod search;
#[path = "../../examples/common/side.rs"]
mod side;
#[path = "../../examples/lda/solver.rs"]
mod topics;
#[path = "../../examples/sparse_mlp/training.rs"]
mod training;

mod beam_search;
mod factor_analysis;
mod lda;
mod sparse_mlp;
mod views;
