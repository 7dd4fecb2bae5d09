//! A file a command.
mod ablation;
mod compare;
mod conv;
mod fit;
mod oracle;
mod plot;
mod pool;
mod run;
mod spdnn;
mod stats;
mod sweep;
mod tables;
mod transpose;

pub use ablation::ablation;
pub use compare::compare;
pub use conv::conv;
pub use fit::fit;
pub use oracle::oracle;
pub use plot::plot;
pub use pool::pool;
pub use run::run;
pub use spdnn::spdnn;
pub use stats::stats;
pub use sweep::sweep;
pub use tables::tables;
pub use transpose::transpose;
