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
    use lacuna::matrix::io::ReadError;
    let library = error.downcast_ref::<lacuna::Error>();
    let code = if library.is_some_and(lacuna::Error::is_missing) {
        3
    } else if error.is::<Usage>() || error.is::<ReadError>() || library.is_some_and(lacuna::Error::is_usage) {
        2
    } else {
        1
    };
    ExitCode::from(code)
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
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn causes_are_said_once() {
        let error = anyhow::anyhow!("no such file").context("cannot read a: no such file").context("run");
        assert_eq!(describe(&error), "run: cannot read a: no such file");
    }

    #[test]
    fn codes_of_the_contract() {
        let code = |error: anyhow::Error| format!("{:?}", code_of(&error));
        let of = |number: u8| format!("{:?}", ExitCode::from(number));
        assert_eq!(code(Usage("no".into()).into()), of(2));
        assert_eq!(code(anyhow::Error::from(lacuna::Error::NoCuda).context("case")), of(3));
        assert_eq!(code(lacuna::Error::OtherPattern { operation: "SpMM" }.into()), of(2));
        assert_eq!(code(lacuna::Error::BrokenDriver { why: "803".into() }.into()), of(3));
        assert_eq!(code(anyhow::anyhow!("cuSPARSE failed")), of(1));
        let missing: anyhow::Result<()> = Err(lacuna::Error::NoCuda).context("device");
        assert_eq!(code(missing.unwrap_err()), of(3));
    }
}
