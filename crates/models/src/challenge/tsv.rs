//! The challenge's text files: an element a line, three numbers with tabs between them, indices from 1.
//!
//! ```text
//! input  output  6.250000e-02        a layer, sorted by output, then input
//! image  pixel   1                   the images
//! ```
//! Read is any order of lines, and spaces for tabs; written is the official form. Blank lines are passed over. The files
//! say nothing of their size, so readers are told it. Reading by path unpacks gzip.

use super::gz::read_file;
use lacuna_matrix::io::scan::Scanner;
use lacuna_matrix::io::{ReadError, WriteError, write_file};
use lacuna_matrix::{Coo, Csr, Pattern};
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::sync::Arc;

/// Reads a layer of `neurons` neurons: rows are outputs, columns inputs.
///
/// # Errors
/// If reading fails, a line is no element of such a layer, or an edge is given twice.
pub fn read_layer(reader: impl BufRead, neurons: usize) -> Result<Csr<f32>, ReadError> {
    let (mut outputs, mut inputs, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let lines = each_line(reader, (neurons, neurons), |scanner| {
        inputs.push(index(scanner, "an input", neurons)?);
        outputs.push(index(scanner, "an output", neurons)?);
        values.push(
            scanner.parse("a finite number", |word| word.parse().ok().filter(|v: &f32| v.is_finite()))?,
        );
        Ok(())
    })?;
    let layer = Coo::new(neurons, neurons, outputs, inputs, values).and_then(|coo| coo.to_csr());
    layer.map_err(|source| ReadError::Format { place: lines.place(), source })
}

/// Reads `images` images of `pixels` pixels: a row an image, a column a pixel.
///
/// # Errors
/// If reading fails, a line is no element of such images, a value is not 1, or a pixel is given twice.
pub fn read_images(reader: impl BufRead, images: usize, pixels: usize) -> Result<Pattern, ReadError> {
    let (mut rows, mut columns) = (Vec::new(), Vec::new());
    let lines = each_line(reader, (images, pixels), |scanner| {
        rows.push(index(scanner, "an image", images)?);
        columns.push(index(scanner, "a pixel", pixels)?);
        scanner.parse("the value 1", |word| word.parse().ok().filter(|&value: &f32| value == 1.0))?;
        Ok(())
    })?;
    let values = vec![(); rows.len()];
    let read = Coo::new(images, pixels, rows, columns, values).and_then(|coo| coo.to_csr());
    let read = read.map_err(|source| ReadError::Format { place: lines.place(), source })?;
    let pattern = read.pattern().clone();
    drop(read);
    // Nobody else has it, so it is not copied: the images of 65,536 pixels take 1.6 GB.
    Ok(Arc::unwrap_or_clone(pattern))
}

/// Reads the layer in a file, which may be packed by gzip.
///
/// # Errors
/// As [`read_layer`], with the path.
pub fn read_layer_path(path: impl AsRef<Path>, neurons: usize) -> Result<Csr<f32>, ReadError> {
    read_file(path.as_ref(), |reader| read_layer(reader, neurons))
}

/// Reads the images in a file, which may be packed by gzip.
///
/// # Errors
/// As [`read_images`], with the path.
pub fn read_images_path(path: impl AsRef<Path>, images: usize, pixels: usize) -> Result<Pattern, ReadError> {
    read_file(path.as_ref(), |reader| read_images(reader, images, pixels))
}

/// Gives each line that is not blank to `read`, but no more lines than the matrix has places.
fn each_line<R: BufRead>(
    reader: R,
    (rows, columns): (usize, usize),
    mut read: impl FnMut(&mut Scanner<R>) -> Result<(), ReadError>,
) -> Result<Scanner<R>, ReadError> {
    let most = (rows as u64).saturating_mul(columns as u64).min(u32::MAX.into());
    let mut scanner = Scanner::new(reader, b'\t');
    let mut elements = 0;
    loop {
        if scanner.peek()?.is_some() {
            if elements == most {
                let (place, got) = (scanner.place(), "more".into());
                return Err(ReadError::Count { place, what: "elements at most", expected: most, got });
            }
            read(&mut scanner)?;
            scanner.end_of_line()?;
            elements += 1;
        }
        if !scanner.next_line()? {
            return Ok(scanner);
        }
    }
}

/// The next word as an index, made to count from 0.
fn index<R: BufRead>(scanner: &mut Scanner<R>, what: &str, end: usize) -> Result<u32, ReadError> {
    scanner.parse(format_args!("{what} of 1 to {end}"), |word| {
        word.parse::<u32>().ok().filter(|&index| index >= 1 && index as usize <= end).map(|index| index - 1)
    })
}

/// Writes a layer of finite values, so that [`read_layer`] gives the same one. Small writes are many: give a buffered writer.
///
/// A value is written as `6.250000e-02`, with two digits more where it takes them to be read back as it was.
///
/// # Errors
/// If the writer fails.
pub fn write_layer(layer: &Csr<f32>, mut writer: impl Write) -> io::Result<()> {
    // Layers have few different values: one after another are mostly the same.
    let mut last = (0f32, scientific(0.0));
    for row in 0..layer.rows() {
        let (inputs, values) = layer.row(row);
        for (input, value) in inputs.iter().zip(values) {
            if value.to_bits() != last.0.to_bits() {
                last = (*value, scientific(*value));
            }
            writeln!(writer, "{}\t{}\t{}", u64::from(*input) + 1, row + 1, last.1)?;
        }
    }
    Ok(())
}

/// Writes images, so that [`read_images`] gives the same ones. Small writes are many: give a buffered writer.
///
/// # Errors
/// If the writer fails.
pub fn write_images(images: &Pattern, mut writer: impl Write) -> io::Result<()> {
    for row in 0..images.rows() {
        for pixel in images.row_columns(row) {
            writeln!(writer, "{}\t{}\t1", row + 1, u64::from(*pixel) + 1)?;
        }
    }
    Ok(())
}

/// Writes a layer into a file.
///
/// # Errors
/// If the file cannot be made or written.
pub fn write_layer_path(layer: &Csr<f32>, path: impl AsRef<Path>) -> Result<(), WriteError> {
    write_file(path.as_ref(), |writer| write_layer(layer, writer))
}

/// Writes images into a file.
///
/// # Errors
/// If the file cannot be made or written.
pub fn write_images_path(images: &Pattern, path: impl AsRef<Path>) -> Result<(), WriteError> {
    write_file(path.as_ref(), |writer| write_images(images, writer))
}

/// A value as C's `%e` writes it; with eight decimals where six would be another number.
fn scientific(value: f32) -> String {
    let short = format!("{value:.6e}");
    let written = if short.parse() == Ok(value) { short } else { format!("{value:.8e}") };
    match written.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
            format!("{mantissa}e{sign}{digits:0>2}")
        }
        // Neither NaN nor an infinity has an exponent.
        None => written,
    }
}

#[cfg(test)]
mod tests {
    use super::scientific;

    #[test]
    fn numbers_are_those_of_c() {
        for (value, written) in [
            (0.0625, "6.250000e-02"),
            (0.0, "0.000000e+00"),
            (-3.0, "-3.000000e+00"),
            (1e20, "1.000000e+20"),
            (f32::MAX, "3.40282347e+38"),
            (1.0 / 3.0, "3.33333343e-01"),
        ] {
            assert_eq!(scientific(value), written);
        }
    }
}
