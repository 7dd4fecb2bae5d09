//! What a step took.
use std::time::Duration;

/// The time of a step, and the part of it that went into products at the nonzeros.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub(crate) step: Duration,
    pub(crate) inner: Duration,
}

impl Took {
    /// In milliseconds, for a table: the step, then the products.
    pub(crate) fn columns(&self) -> String {
        let [step, inner] = [self.step, self.inner].map(|time| time.as_secs_f64() * 1e3);
        format!("{step:>9.2}  {inner:>9.2}")
    }
}
