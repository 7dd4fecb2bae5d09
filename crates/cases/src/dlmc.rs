//! The Deep Learning Matrix Collection, as it lies in a folder.
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::data::{named_files, unreadable};

/// The file that gives N of each layer of ResNet-50, for one image.
const BATCH_SIZES: &str = "rn50_batchsizes.txt";

/// One weight matrix of the collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Its path inside the collection without the extension: `rn50/magnitude_pruning/0.9/final_dense`.
    pub name: String,
    /// Its file, `.smtx`.
    pub path: PathBuf,
    /// Columns of B for one image, of ResNet-50's matrices. The Transformer's are free.
    pub n: Option<usize>,
}

/// The matrices below `folder`, by name.
///
/// # Errors
/// What cannot be read, or which layer of ResNet-50 has no N, and what to do.
pub fn weights(folder: &Path) -> Result<Vec<Weights>, String> {
    let batch_sizes = batch_sizes(&folder.join(BATCH_SIZES))?;
    let weights = named_files(folder, "smtx")?.into_iter().map(|(name, path)| {
        let layer = name.strip_prefix("rn50/").and_then(|name| name.rsplit('/').next());
        let n = layer.map(|layer| {
            let n = batch_sizes.get(layer).copied();
            n.ok_or_else(|| format!("{BATCH_SIZES} has no line for {layer}; unpack the data again"))
        });
        Ok(Weights { n: n.transpose()?, name, path })
    });
    weights.collect()
}

/// Lines of the form `layer,N`.
fn batch_sizes(path: &Path) -> Result<HashMap<String, usize>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    let size = |line: &str| {
        let (layer, n) = line.split_once(',')?;
        Some((layer.trim().to_owned(), n.trim().parse().ok()?))
    };
    Ok(text.lines().filter_map(size).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn layers_have_their_n_or_say_which_has_none() {
        let folder = TempDir::new().unwrap();
        fs::create_dir_all(folder.path().join("rn50/0.9")).unwrap();
        fs::create_dir_all(folder.path().join("transformer/0.9")).unwrap();
        for name in ["rn50/0.9/conv.smtx", "transformer/0.9/ffn.smtx"] {
            fs::write(folder.path().join(name), "1, 1, 0\n0 0\n\n").unwrap();
        }
        fs::write(folder.path().join(BATCH_SIZES), "conv,49\n").unwrap();
        let found: Vec<_> = weights(folder.path()).unwrap().into_iter().map(|w| (w.name, w.n)).collect();
        assert_eq!(found, [("rn50/0.9/conv".into(), Some(49)), ("transformer/0.9/ffn".into(), None)]);
        fs::write(folder.path().join(BATCH_SIZES), "other,49\n").unwrap();
        assert!(weights(folder.path()).unwrap_err().contains("conv"));
    }
}
