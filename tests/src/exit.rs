//! Exit codes: 0 good, 1 a failure found, 2 bad usage, 3 something missing on the machine.
use std::fmt;

use lacuna::Error;

/// What was asked for makes no sense.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Usage {}

/// The exit code of a run that could not do its work.
pub fn code_of(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<Error>() {
        Some(error) if error.is_missing() => 3,
        Some(error) if error.is_usage() => 2,
        None if error.is::<Usage>() => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_contract() {
        assert_eq!(code_of(&anyhow::anyhow!("a check failed")), 1);
        assert_eq!(code_of(&Error::Cuda { call: "cuLaunchKernel", why: String::new() }.into()), 1);
        assert_eq!(code_of(&Usage("no".into()).into()), 2);
        assert_eq!(code_of(&Error::Range { start: 2, end: 1, len: 3 }.into()), 2);
        for missing in [
            Error::NoCuda,
            Error::NoDevice { index: 1, count: 1 },
            Error::BrokenDriver { why: String::new() },
        ] {
            assert_eq!(code_of(&anyhow::Error::from(missing).context("while starting")), 3);
        }
    }
}
