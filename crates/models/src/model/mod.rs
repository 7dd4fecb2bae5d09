//! Networks on a device: planned once, and then run without allocation and without the host.

mod error;
mod gaps;
mod inputs;
mod options;
mod report;
mod run;
mod steps;

pub use error::ModelError;
pub use options::{Held, LayerOptions, Options};
pub use report::{LayerReport, Report};
pub use run::Model;
