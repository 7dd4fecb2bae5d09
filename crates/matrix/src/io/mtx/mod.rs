//! Matrix Market, coordinate format: an element a line, indices from 1.
//!
//! Read are `real`, `integer` (rounded to `f32`) and `pattern` (value 1) matrices that are `general`,
//! `symmetric` or `skew-symmetric`; the mirrored elements of the latter two are filled in. Comments and blank
//! lines may stand anywhere after the first line. `array`, `complex` and `hermitian` files are refused.
//!
//! A real may be `nan`, `inf` or `-inf`; one too large for `f32` is an error, not an infinity.

mod header;

use super::error::{Place, ReadError, WriteError};
use super::scan::Scanner;
use super::{capacity_hint, check_rows, read_file, write_file};
use crate::{Coo, Csr, Pattern};
use header::{Field, Symmetry};
use std::io::{self, BufRead, Write};
use std::path::Path;

/// Reads a matrix in which each place is given once.
///
/// # Errors
/// As [`read_coo`]; also if a place is given twice (for a symmetric matrix: also its mirror image), or if there
/// are more than 4 million rows and 64 times as many rows as nonzeros.
pub fn read(reader: impl BufRead) -> Result<Csr<f32>, ReadError> {
    let mut scanner = Scanner::new(reader, b' ');
    let coo = read_elements(&mut scanner)?;
    check_rows(coo.rows() as u64, coo.nnz() as u64)?;
    coo.to_csr().map_err(|source| ReadError::Format { place: scanner.place(), source })
}

/// Reads the elements in the order of the file; mirrored ones follow theirs.
///
/// # Errors
/// If reading fails, or the text is not of the format, or is of a kind that is not supported.
pub fn read_coo(reader: impl BufRead) -> Result<Coo<f32>, ReadError> {
    read_elements(&mut Scanner::new(reader, b' '))
}

/// Reads the matrix in a file.
///
/// # Errors
/// As [`read`], with the path.
pub fn read_path(path: impl AsRef<Path>) -> Result<Csr<f32>, ReadError> {
    read_file(path.as_ref(), read)
}

/// Reads the elements in a file.
///
/// # Errors
/// As [`read_coo`], with the path.
pub fn read_coo_path(path: impl AsRef<Path>) -> Result<Coo<f32>, ReadError> {
    read_file(path.as_ref(), read_coo)
}

fn read_elements<R: BufRead>(scanner: &mut Scanner<R>) -> Result<Coo<f32>, ReadError> {
    let (field, symmetry) = header::read(scanner)?;
    if !next_data_line(scanner)? {
        return Err(scanner.syntax("a line with rows, columns and elements", "the end of the file"));
    }
    let rows = scanner.number::<u32>("the number of rows")?;
    let cols = scanner.number::<u32>("the number of columns")?;
    let stored = u64::from(scanner.number::<u32>("the number of elements")?);
    scanner.end_of_line()?;
    if symmetry != Symmetry::General && rows != cols {
        let got = format!("{rows} rows and {cols} columns");
        return Err(scanner.syntax("as many rows as columns in a symmetric matrix", &got));
    }

    let mut row_indices = Vec::with_capacity(capacity_hint(stored));
    let mut col_indices = Vec::with_capacity(capacity_hint(stored));
    let mut values = Vec::with_capacity(capacity_hint(stored));
    let mut push = |row, column, value| {
        row_indices.push(row);
        col_indices.push(column);
        values.push(value);
    };
    let mut seen = 0;
    while next_data_line(scanner)? {
        if seen == stored {
            return Err(count(scanner.place(), stored, "more".into()));
        }
        let row = index(scanner, "row", rows)?;
        let column = index(scanner, "column", cols)?;
        let value = value(scanner, field)?;
        scanner.end_of_line()?;
        push(row, column, value);
        match symmetry {
            Symmetry::Symmetric if row != column => push(column, row, value),
            Symmetry::SkewSymmetric if row != column => push(column, row, -value),
            Symmetry::SkewSymmetric => {
                let expected = "no diagonal element in a skew-symmetric matrix";
                return Err(scanner.syntax(expected, &format!("row and column {}", row + 1)));
            }
            _ => {}
        }
        seen += 1;
    }
    if seen < stored {
        return Err(count(scanner.place(), stored, seen.to_string()));
    }
    Coo::new(rows as usize, cols as usize, row_indices, col_indices, values)
        .map_err(|source| ReadError::Format { place: scanner.place(), source })
}

/// Goes to the next line that holds data; `false` at the end of the file.
fn next_data_line<R: BufRead>(scanner: &mut Scanner<R>) -> Result<bool, ReadError> {
    while scanner.next_line()? {
        if !matches!(scanner.peek()?, None | Some(b'%')) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The next word as an index, made to count from 0.
fn index<R: BufRead>(scanner: &mut Scanner<R>, what: &str, end: u32) -> Result<u32, ReadError> {
    scanner.parse(format_args!("a {what} of 1 to {end}"), |word| {
        word.parse::<u32>().ok().filter(|index| (1..=end).contains(index)).map(|index| index - 1)
    })
}

fn value<R: BufRead>(scanner: &mut Scanner<R>, field: Field) -> Result<f32, ReadError> {
    match field {
        Field::Pattern => Ok(1.0),
        Field::Integer => Ok(scanner.number::<i64>("an integer of 64 bits")? as f32),
        Field::Real => scanner.parse("a real number that f32 can hold", real),
    }
}

/// A word as `f32`; too large a number is refused, though the parser would make an infinity of it.
fn real(word: &str) -> Option<f32> {
    let names_infinity = !word.contains(|c: char| c.is_ascii_digit());
    word.parse().ok().filter(|value: &f32| !value.is_infinite() || names_infinity)
}

fn count(place: Place, expected: u64, got: String) -> ReadError {
    ReadError::Count { place, what: "elements", expected, got }
}

/// Writes a matrix as `real general`, so that [`read`] gives the same one. Small writes are many: give a
/// buffered writer.
///
/// # Errors
/// If the writer fails.
pub fn write(matrix: &Csr<f32>, mut writer: impl Write) -> io::Result<()> {
    write_header(matrix.pattern(), "real", &mut writer)?;
    for row in 0..matrix.rows() {
        let (columns, values) = matrix.row(row);
        for (column, value) in columns.iter().zip(values) {
            writeln!(writer, "{} {} {value}", row + 1, u64::from(*column) + 1)?;
        }
    }
    Ok(())
}

/// Writes a pattern as `pattern general`. Small writes are many: give a buffered writer.
///
/// # Errors
/// If the writer fails.
pub fn write_pattern(pattern: &Pattern, mut writer: impl Write) -> io::Result<()> {
    write_header(pattern, "pattern", &mut writer)?;
    for row in 0..pattern.rows() {
        for column in pattern.row_columns(row) {
            writeln!(writer, "{} {}", row + 1, u64::from(*column) + 1)?;
        }
    }
    Ok(())
}

fn write_header(pattern: &Pattern, field: &str, writer: &mut impl Write) -> io::Result<()> {
    writeln!(writer, "%%MatrixMarket matrix coordinate {field} general")?;
    writeln!(writer, "{} {} {}", pattern.rows(), pattern.cols(), pattern.nnz())
}

/// Writes a matrix into a file.
///
/// # Errors
/// If the file cannot be made or written.
pub fn write_path(matrix: &Csr<f32>, path: impl AsRef<Path>) -> Result<(), WriteError> {
    write_file(path.as_ref(), |writer| write(matrix, writer))
}
