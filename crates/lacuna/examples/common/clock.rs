//! What a step took.
use std::fmt;
use std::time::Duration;

/// The time of a step, and the part of it that went into products at the nonzeros.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub(crate) step: Duration,
    pub(crate) inner: Duration,
}

/// In milliseconds, as two columns of a table.
impl fmt::Display for Took {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [step, inner] = [self.step, self.inner].map(|time| time.as_secs_f64() * 1e3);
        write!(f, "{step:>9.2}  {inner:>9.2}")
    }
}
