//! The first line of a Matrix Market file.

use super::super::error::ReadError;
use super::super::scan::{Scanner, shorten};
use std::io::BufRead;

/// What the elements of the file look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Real,
    Integer,
    /// No values: each element counts as 1.
    Pattern,
}

/// Which elements a stored one stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symmetry {
    /// Itself alone.
    General,
    /// Itself and its mirror image.
    Symmetric,
    /// Itself and its negated mirror image.
    SkewSymmetric,
}

const SUPPORTED: &str = "`%%MatrixMarket matrix coordinate` with real, integer or pattern, and general, symmetric \
                         or skew-symmetric (pattern: not skew)";

/// Reads the first line up to its end.
pub(super) fn read<R: BufRead>(scanner: &mut Scanner<R>) -> Result<(Field, Symmetry), ReadError> {
    let banner = next(scanner)?;
    if banner != "%%matrixmarket" {
        return Err(scanner.syntax("`%%MatrixMarket`", &shorten(banner.as_bytes())));
    }
    let object = next(scanner)?;
    let format = next(scanner)?;
    if object != "matrix" || format != "coordinate" {
        return Err(unsupported(scanner, &format!("{object} {format}")));
    }
    let (field_name, symmetry_name) = (next(scanner)?, next(scanner)?);
    scanner.end_of_line()?;
    let field = match field_name.as_str() {
        "real" => Some(Field::Real),
        "integer" => Some(Field::Integer),
        "pattern" => Some(Field::Pattern),
        _ => None,
    };
    let symmetry = match symmetry_name.as_str() {
        "general" => Some(Symmetry::General),
        "symmetric" => Some(Symmetry::Symmetric),
        // A pattern has no sign to turn.
        "skew-symmetric" if field != Some(Field::Pattern) => Some(Symmetry::SkewSymmetric),
        _ => None,
    };
    match (field, symmetry) {
        (Some(field), Some(symmetry)) => Ok((field, symmetry)),
        _ => Err(unsupported(scanner, &format!("{field_name} {symmetry_name}"))),
    }
}

/// The next word, in small letters; empty at the end of the line.
fn next<R: BufRead>(scanner: &mut Scanner<R>) -> Result<String, ReadError> {
    Ok(scanner.word()?.unwrap_or_default().to_ascii_lowercase())
}

fn unsupported<R: BufRead>(scanner: &Scanner<R>, got: &str) -> ReadError {
    ReadError::Unsupported { place: scanner.place(), got: shorten(got.as_bytes()), supported: SUPPORTED }
}
