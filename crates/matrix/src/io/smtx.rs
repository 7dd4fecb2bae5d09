//! `.smtx`, the format of the Deep Learning Matrix Collection: a pattern without values.
//!
//! ```text
//! rows, cols, nnz
//! row_offset row_offset …      (rows + 1 of them)
//! column column …              (nnz of them)
//! ```
//! Spaces and commas both separate. Rows whose columns do not ascend are sorted, which changes nothing where
//! there are no values. A file without nonzeros may leave its second and third lines blank.

use super::error::{ReadError, WriteError};
use super::scan::Scanner;
use super::{capacity_hint, check_rows, read_file, write_file};
use crate::Pattern;
use std::io::{self, BufRead, Write};
use std::path::Path;

/// Reads a pattern.
///
/// # Errors
/// If reading fails, or the text is not of the format, or its parts do not make up a [`Pattern`].
pub fn read(reader: impl BufRead) -> Result<Pattern, ReadError> {
    let mut scanner = Scanner::new(reader, b',');
    let rows = u64::from(scanner.number::<u32>("the number of rows")?);
    let cols = scanner.number::<u32>("the number of columns")?;
    let nnz = u64::from(scanner.number::<u32>("the number of nonzeros")?);
    scanner.end_of_line()?;

    scanner.next_line()?;
    let mut row_offsets = numbers(&mut scanner, "row offsets", rows + 1)?;
    if row_offsets.is_empty() && nnz == 0 {
        check_rows(rows, nnz)?;
        row_offsets.resize(rows as usize + 1, 0);
    }
    expect_count(&scanner, "row offsets", rows + 1, row_offsets.len())?;

    scanner.next_line()?;
    let columns_at = scanner.place();
    let col_indices = numbers(&mut scanner, "column indices", nnz)?;
    expect_count(&scanner, "column indices", nnz, col_indices.len())?;

    while scanner.next_line()? {
        scanner.end_of_line()?;
    }
    Pattern::from_unsorted(rows as usize, cols as usize, row_offsets, col_indices)
        .map_err(|source| ReadError::Format { place: columns_at, source })
}

/// The numbers of this line, with an error as soon as there are more than `most`.
fn numbers<R: BufRead>(
    scanner: &mut Scanner<R>,
    what: &'static str,
    most: u64,
) -> Result<Vec<u32>, ReadError> {
    let mut numbers = Vec::with_capacity(capacity_hint(most));
    while scanner.peek()?.is_some() {
        if numbers.len() as u64 == most {
            return Err(ReadError::Count {
                place: scanner.place(),
                what,
                expected: most,
                got: "more".into(),
            });
        }
        let expected = format_args!("{what} of 0 to {}", u32::MAX);
        numbers.push(scanner.parse(expected, |word| word.parse().ok())?);
    }
    Ok(numbers)
}

/// An error unless as many were read as announced.
fn expect_count<R: BufRead>(
    scanner: &Scanner<R>,
    what: &'static str,
    expected: u64,
    got: usize,
) -> Result<(), ReadError> {
    if got as u64 == expected {
        return Ok(());
    }
    Err(ReadError::Count { place: scanner.place(), what, expected, got: got.to_string() })
}

/// Reads the pattern in a file.
///
/// # Errors
/// As [`read`], with the path.
pub fn read_path(path: impl AsRef<Path>) -> Result<Pattern, ReadError> {
    read_file(path.as_ref(), read)
}

/// Writes a pattern. Small writes are many: give a buffered writer.
///
/// # Errors
/// If the writer fails.
pub fn write(pattern: &Pattern, mut writer: impl Write) -> io::Result<()> {
    writeln!(writer, "{}, {}, {}", pattern.rows(), pattern.cols(), pattern.nnz())?;
    write_line(&mut writer, pattern.row_offsets())?;
    write_line(&mut writer, pattern.col_indices())
}

fn write_line(writer: &mut impl Write, numbers: &[u32]) -> io::Result<()> {
    let mut separator = "";
    for number in numbers {
        write!(writer, "{separator}{number}")?;
        separator = " ";
    }
    writeln!(writer)
}

/// Writes a pattern into a file.
///
/// # Errors
/// If the file cannot be made or written.
pub fn write_path(pattern: &Pattern, path: impl AsRef<Path>) -> Result<(), WriteError> {
    write_file(path.as_ref(), |writer| write(pattern, writer))
}
