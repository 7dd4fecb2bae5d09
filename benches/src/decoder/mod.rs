//! A step of a translation decoder (ACL 2019): checked, then timed as a whole and part by part.
mod check;
mod measure;
mod print;
mod record;

pub use measure::{How, measure};
pub use print::line;
pub use record::{LIMIT, PartRecord, Record, TF32_LIMIT};
