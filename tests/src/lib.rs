//! The conformance suite: one set of cases, run on every device.
//!
//! A [`Case`] makes its inputs from a seed, does its work on a device and checks what comes out. Results are judged by
//! the oracle's componentwise bound, never by a flat tolerance. A folder holds the cases of one operation.
pub mod attention;
pub mod bias_act;
pub mod case;
pub mod cli;
pub mod conv;
pub mod dense_transpose;
pub mod device;
mod expect;
pub mod import;
pub mod layer_norm;
pub mod nhot;
pub mod pointwise;
pub mod pool;
pub mod report;
pub mod run;
pub mod sddmm;
pub mod softmax;
pub mod spdnn;
pub mod spmm;
pub mod target;
pub mod topn;
pub mod transpose;
mod tuned;

pub use case::{Case, Context, Effort, NotRun};
pub use lacuna_cases::Number;
use lacuna_cases::data::Data;

/// What the suite consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How many random problems to draw; `None` for some on the simulator, and more on a GPU.
    pub random: Option<usize>,
}

/// All cases, with those on real data if there is any. One case stands for those on data that is packed or missing.
pub fn cases(options: Options, data: &Data) -> Vec<Case> {
    let mut cases = device::cases();
    cases.extend(spmm::cases(options, data));
    cases.extend(import::cases());
    cases.extend(softmax::cases(options));
    cases.extend(attention::cases());
    cases.extend(bias_act::cases());
    cases.extend(layer_norm::cases());
    cases.extend(conv::cases());
    cases.extend(dense_transpose::cases());
    cases.extend(pointwise::cases());
    cases.extend(pool::cases());
    cases.extend(topn::cases());
    cases.extend(transpose::cases(options));
    cases.extend(sddmm::cases(options));
    cases.extend(nhot::cases(options));
    cases.extend(spdnn::cases(options));
    cases
}
