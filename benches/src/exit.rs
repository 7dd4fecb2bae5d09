//! Exit codes: 0 good, 1 a failure found, 2 bad usage, 3 something missing on the machine.
use std::process::ExitCode;

/// How a command ended that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is well.
    Good,
    /// It found something wrong: a result out of bounds, or a case that became slower.
    Failure,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Good => Self::SUCCESS,
            Outcome::Failure => Self::from(1),
        }
    }
}

/// What was asked for makes no sense.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Usage {}

/// The exit code of a command that could not do its work.
pub fn code_of(error: &anyhow::Error) -> ExitCode {
    use lacuna::Error;
    let code = if error.is::<Usage>() {
        2
    } else {
        match error.downcast_ref::<Error>() {
            Some(Error::NoCuda | Error::NoDriver { .. } | Error::NoDevice { .. } | Error::OldGpu { .. }) => 3,
            Some(Error::Ptx { .. } | Error::OutOfMemory { .. }) => 3,
            Some(_) => 1,
            None => 2,
        }
    };
    ExitCode::from(code)
}
