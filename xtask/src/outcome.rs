//! How a command ends: which error gives which exit code.
use std::process::ExitCode;

use lacuna_ptx::BuildError;

use crate::rust_cuda::MissingToolchain;

/// Something that this machine lacks. The text says what, and how to get it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Missing(pub(crate) String);

/// Arguments that do not go together.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// A program of ours ended with this exit code, and has said why.
#[derive(Debug, thiserror::Error)]
#[error("the program ended with {}", code.map_or_else(|| "a signal".into(), |code| format!("exit code {code}")))]
pub(crate) struct Failed {
    /// Its exit code; none if a signal ended it.
    pub(crate) code: Option<i32>,
}

/// 1 for a failure found, 2 for bad usage, 3 for something missing on the machine.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    code(error).into()
}

fn code(error: &anyhow::Error) -> u8 {
    if let Some(Failed { code: Some(code) }) = error.downcast_ref() {
        return u8::try_from(*code).unwrap_or(1);
    }
    let of_build = error.chain().find_map(|cause| cause.downcast_ref::<BuildError>());
    let missing_for_build = matches!(
        of_build,
        Some(
            BuildError::NoCompiler { .. }
                | BuildError::UnusableCompiler { .. }
                | BuildError::UnusablePtxas { .. }
                | BuildError::NoCacheDir
                | BuildError::Cache { .. }
        )
    );
    let missing =
        |cause: &(dyn std::error::Error + 'static)| cause.is::<Missing>() || cause.is::<MissingToolchain>();
    if error.chain().any(|cause| cause.is::<Usage>()) {
        2
    } else if missing_for_build || error.chain().any(missing) {
        3
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn codes_of_the_contract() {
        assert_eq!(code(&anyhow::anyhow!("a check failed")), 1);
        assert_eq!(code(&Usage("no".into()).into()), 2);
        assert_eq!(code(&anyhow::Error::from(Missing("no".into())).context("while setting up")), 3);
        assert_eq!(code(&MissingToolchain { lacks: Vec::new() }.into()), 3);
        let no_cache: anyhow::Result<()> = Err(BuildError::NoCacheDir).context("while building");
        assert_eq!(code(&no_cache.unwrap_err()), 3);
        assert_eq!(code(&BuildError::NoTarget.into()), 1);
        assert_eq!(code(&Failed { code: Some(3) }.into()), 3);
        assert_eq!(code(&Failed { code: None }.into()), 1);
    }
}
