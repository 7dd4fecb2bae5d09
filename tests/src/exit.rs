//! Exit codes: 0 good, 1 a failure found, 2 bad usage, 3 something missing on the machine.
use std::fmt;

use lacuna::Error;

/// What was asked for makes no sense.
#[derive(Debug)]
pub struct Usage(pub String);

/// The machine lacks something. The text says what, and how to get it.
#[derive(Debug)]
pub struct Missing(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Usage {}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Missing {}

/// The exit code of a run that could not do its work.
pub fn code_of(error: &anyhow::Error) -> u8 {
    if error.is::<Usage>() {
        return 2;
    }
    let lacking = matches!(
        error.downcast_ref::<Error>(),
        Some(
            Error::NoCuda
                | Error::NoDriver { .. }
                | Error::NoDevice { .. }
                | Error::OldGpu { .. }
                | Error::Ptx { .. }
        )
    );
    if lacking || error.is::<Missing>() { 3 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_contract() {
        assert_eq!(code_of(&anyhow::anyhow!("a check failed")), 1);
        assert_eq!(code_of(&Usage("no".into()).into()), 2);
        assert_eq!(code_of(&Missing("no".into()).into()), 3);
        assert_eq!(code_of(&Error::NoCuda.into()), 3);
        assert_eq!(code_of(&Error::NoDevice { index: 1, count: 1 }.into()), 3);
    }
}
