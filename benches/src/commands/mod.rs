//! A file a command.
mod ablation;
mod compare;
mod oracle;
mod plot;
mod run;
mod stats;
mod sweep;

pub use ablation::ablation;
pub use compare::compare;
pub use oracle::oracle;
pub use plot::plot;
pub use run::run;
pub use stats::stats;
pub use sweep::sweep;
