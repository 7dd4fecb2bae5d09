//! Images kept in a file: a bit a pixel, row by row, as the library's readers of text would take minutes for large ones.
use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use lacuna::matrix::Pattern;
use rayon::prelude::*;
use tempfile::NamedTempFile;

/// Reads `images` images of `pixels` pixels.
///
/// # Errors
/// If the file cannot be read, or has another size.
pub(super) fn read(path: &Path, images: usize, pixels: usize) -> Result<Pattern> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let row_bytes = pixels.div_ceil(8);
    let expected = images * row_bytes;
    ensure!(
        bytes.len() == expected,
        "{} has {} bytes, but {images} images of {pixels} pixels are {expected}; delete it",
        path.display(),
        bytes.len()
    );
    let is_set = |row: &[u8], pixel: usize| row[pixel / 8] >> (pixel % 8) & 1 != 0;
    let ones =
        |row: &[u8]| (0..pixels).filter(|&pixel| is_set(row, pixel)).map(|pixel| pixel as u32).collect();
    let rows: Vec<Vec<u32>> = bytes.par_chunks(row_bytes.max(1)).map(ones).collect();
    Ok(Pattern::of_rows(pixels, rows)?)
}

/// Writes images, whole or not at all.
///
/// # Errors
/// If that fails.
pub(super) fn write(path: &Path, images: &Pattern) -> Result<()> {
    let row_bytes = images.cols().div_ceil(8);
    let mut bytes = vec![0_u8; images.rows() * row_bytes];
    for row in 0..images.rows() {
        for &pixel in images.row_columns(row) {
            bytes[row * row_bytes + pixel as usize / 8] |= 1 << (pixel % 8);
        }
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    // Ranks of a job may write the same file at once.
    let mut part = NamedTempFile::new_in(folder).context("cannot make a file in the cache")?;
    part.write_all(&bytes).with_context(|| format!("cannot write {}", part.path().display()))?;
    part.persist(path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/images.bits");
        let images = Pattern::new(3, 11, vec![0, 2, 2, 4], vec![0, 10, 7, 8]).unwrap();
        write(&path, &images).unwrap();
        assert_eq!(read(&path, 3, 11).unwrap(), images);
        let error = read(&path, 4, 11).unwrap_err().to_string();
        assert!(error.contains("has 6 bytes") && error.contains("delete it"), "{error}");
    }
}
