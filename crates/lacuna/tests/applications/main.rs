//! The solvers of the examples, on the simulator: they converge, and to what the data was drawn from.
#[path = "../../examples/common/clock.rs"]
mod clock;
#[path = "../../examples/lda/data.rs"]
mod documents;
#[path = "../../examples/factor_analysis/solver.rs"]
mod factors;
#[path = "../../examples/lda/matching.rs"]
mod matching;
#[path = "../../examples/beam_search/model.rs"]
mod model;
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

mod beam_search;
mod factor_analysis;
mod lda;
mod views;
