//! A file a command.
mod compare;
mod fit;
mod plot;
mod run;
mod stats;
mod sweep;
mod transpose;

pub use compare::compare;
pub use fit::fit;
pub use plot::plot;
pub use run::run;
pub use stats::stats;
pub use sweep::sweep;
pub use transpose::transpose;
