//! Exit codes: 0 good, 1 a failure found, 2 bad usage, 3 something missing on the machine.
use std::fmt;
use std::process::ExitCode;

use lacuna::matrix::io::ReadError;

/// What `--help` says of them.
pub const HELP: &str =
    "Exit codes: 0 good, 1 a failure found, 2 bad usage, 3 something missing on the machine.";

/// How a command ended that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is well.
    Good,
    /// It found something wrong: a result out of bounds, or a case that became slower.
    Failure,
}

impl Outcome {
    /// Good, if all is well.
    pub fn good_if(well: bool) -> Self {
        if well { Self::Good } else { Self::Failure }
    }
}

/// What was asked for makes no sense.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Usage {}

/// Ends `program`: says on stderr why a command could not do its work, and gives the exit code.
pub fn finish(program: &str, result: anyhow::Result<Outcome>) -> ExitCode {
    match result {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Failure) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{program}: {}", describe(&error));
            ExitCode::from(code_of(&error))
        }
    }
}

/// The exit code of a command that could not do its work.
pub fn code_of(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<lacuna::Error>() {
        Some(error) if error.is_missing() => 3,
        Some(error) if error.is_usage() => 2,
        None if error.is::<Usage>() || error.is::<ReadError>() => 2,
        _ => 1,
    }
}

/// An error with its causes, less those whose words it holds already.
pub fn describe(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use lacuna::Error;

    use super::*;

    #[test]
    fn causes_are_said_once() {
        let error = anyhow::anyhow!("no such file").context("cannot read a: no such file").context("run");
        assert_eq!(describe(&error), "run: cannot read a: no such file");
    }

    #[test]
    fn codes_of_the_contract() {
        assert_eq!(code_of(&anyhow::anyhow!("cuSPARSE failed")), 1);
        assert_eq!(code_of(&Error::Cuda { call: "cuLaunchKernel", why: String::new() }.into()), 1);
        assert_eq!(code_of(&Usage("no".into()).into()), 2);
        assert_eq!(code_of(&Error::Range { start: 2, end: 1, len: 3 }.into()), 2);
        assert_eq!(code_of(&Error::OtherPattern { operation: "SpMM" }.into()), 2);
        for missing in [
            Error::NoCuda,
            Error::NoDevice { index: 1, count: 1 },
            Error::BrokenDriver { why: String::new() },
        ] {
            assert_eq!(code_of(&anyhow::Error::from(missing).context("while starting")), 3);
        }
    }
}
