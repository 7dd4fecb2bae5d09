//! Categories: the images that are left after the last layer, an image a line, counted from 1 and ascending.

use super::gz::read_file;
use lacuna_matrix::io::scan::Scanner;
use lacuna_matrix::io::{ReadError, WriteError, write_file};
use std::io::{self, BufRead, Write};
use std::path::Path;

/// Reads categories, made to count from 0, of `images` images.
///
/// Blank lines are passed over.
///
/// # Errors
/// If reading fails, or a line is no number of 1 to `images` above the one before.
pub fn read(reader: impl BufRead, images: usize) -> Result<Vec<u32>, ReadError> {
    let mut scanner = Scanner::new(reader, b' ');
    let mut categories = Vec::new();
    loop {
        if scanner.peek()?.is_some() {
            // Counted from 1, so the least that may come is the last one, counted from 0, and two.
            let least = categories.last().map_or(1, |&last: &u32| u64::from(last) + 2);
            let category = scanner.parse(format_args!("an image of {least} to {images}"), |word| {
                word.parse::<u32>()
                    .ok()
                    .filter(|&image| u64::from(image) >= least && image as usize <= images)
            })?;
            categories.push(category - 1);
            scanner.end_of_line()?;
        }
        if !scanner.next_line()? {
            return Ok(categories);
        }
    }
}

/// Reads the categories in a file, which may be packed by gzip.
///
/// # Errors
/// As [`read`], with the path.
pub fn read_path(path: impl AsRef<Path>, images: usize) -> Result<Vec<u32>, ReadError> {
    read_file(path.as_ref(), |reader| read(reader, images))
}

/// Writes categories that count from 0. Small writes are many: give a buffered writer.
///
/// # Errors
/// If the writer fails.
pub fn write(categories: &[u32], mut writer: impl Write) -> io::Result<()> {
    categories.iter().try_for_each(|category| writeln!(writer, "{}", u64::from(*category) + 1))
}

/// Writes categories that count from 0 into a file.
///
/// # Errors
/// If the file cannot be made or written.
pub fn write_path(categories: &[u32], path: impl AsRef<Path>) -> Result<(), WriteError> {
    write_file(path.as_ref(), |writer| write(categories, writer))
}
