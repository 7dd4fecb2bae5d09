//! Expectations that many cases share.
use anyhow::{Result, ensure};
use lacuna::Error;

/// The call must be refused, by an error that `kind` accepts and whose text holds every part of `says`.
pub(crate) fn refused<T>(
    what: &str,
    result: lacuna::Result<T>,
    kind: impl Fn(&Error) -> bool,
    says: &[&str],
) -> Result<()> {
    let Err(error) = result else { anyhow::bail!("{what}: expected an error, but it was accepted") };
    ensure!(kind(&error), "{what}: refused by the wrong error: {error}");
    let text = error.to_string();
    for part in says {
        ensure!(text.contains(part), "{what}: the error does not say `{part}`: {text}");
    }
    Ok(())
}

/// Two results must be the same to the last bit.
pub(crate) fn same_bits(what: &str, first: &[f32], second: &[f32], n: usize) -> Result<()> {
    ensure!(first.len() == second.len(), "{what}: {} elements, then {}", first.len(), second.len());
    let different = first.iter().zip(second).position(|(a, b)| a.to_bits() != b.to_bits());
    if let Some(at) = different {
        let (row, column, a, b) = (at / n.max(1), at % n.max(1), first[at], second[at]);
        anyhow::bail!("{what}: not the same bits; row {row}, column {column} is {a:e}, then {b:e}");
    }
    Ok(())
}
