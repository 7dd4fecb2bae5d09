//! Expectations that many cases share.
use anyhow::{Result, ensure};
use lacuna::Error;

use crate::Number;

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
pub(crate) fn same_bits<T: Number>(what: &str, first: &[T], second: &[T], n: usize) -> Result<()> {
    same(what, first, second, n, |a, b| a.bits() == b.bits())
}

/// The same but for which NaN it is: processors differ in what they make of one.
pub(crate) fn same_numbers<T: Number>(what: &str, first: &[T], second: &[T], n: usize) -> Result<()> {
    same(what, first, second, n, |a, b| a.bits() == b.bits() || a.wide().is_nan() && b.wide().is_nan())
}

fn same<T: Number>(
    what: &str,
    first: &[T],
    second: &[T],
    n: usize,
    is_same: impl Fn(&T, &T) -> bool,
) -> Result<()> {
    ensure!(first.len() == second.len(), "{what}: {} elements, then {}", first.len(), second.len());
    let different = first.iter().zip(second).position(|(a, b)| !is_same(a, b));
    if let Some(at) = different {
        let (row, column) = (at / n.max(1), at % n.max(1));
        let (a, b) = (first[at].wide(), second[at].wide());
        anyhow::bail!("{what}: not the same bits; row {row}, column {column} is {a:e}, then {b:e}");
    }
    Ok(())
}
