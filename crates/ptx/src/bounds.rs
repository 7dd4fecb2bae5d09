//! Launch bounds: what an entry promises of its launches, so that ptxas can give it registers.
use crate::BuildError;

/// What every launch of an entry keeps to. Rust has no attribute for it; the builder writes it into the PTX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchBounds {
    /// Threads of a block at most, 1 to 1024, as ptxas is told. Blocks lie along x.
    pub max_threads: u32,
    /// Blocks that must fit on an SM together; 0 asks for nothing.
    pub min_blocks: u32,
    /// Blocks of a cluster along x; with more than 1, as every launch is then made of them, the entry says so.
    pub cluster: u32,
    /// Whether the entry's parameter begins with a tensor map, which lies at a multiple of 64 bytes.
    pub has_map: bool,
    /// Threads of a block as it is launched. Not written into the PTX; the occupancy counts it.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block. Not written into the PTX; the occupancy counts it.
    pub shared_bytes: u32,
}

impl LaunchBounds {
    /// Blocks of up to so many threads, and nothing else.
    pub const fn threads(max_threads: u32) -> Self {
        Self { max_threads, min_blocks: 0, cluster: 1, has_map: false, threads: max_threads, shared_bytes: 0 }
    }

    /// The directives that stand between an entry's parameters and its body.
    pub(crate) fn directives(&self, entry: &str) -> Result<String, BuildError> {
        if !(1..=1024).contains(&self.max_threads) {
            return Err(BuildError::Bounds { entry: entry.into(), max_threads: self.max_threads });
        }
        let mut text = format!(".maxntid {}, 1, 1\n", self.max_threads);
        if self.min_blocks > 0 {
            text += &format!(".minnctapersm {}\n", self.min_blocks);
        }
        if self.cluster > 1 {
            text += &format!(".explicitcluster\n.reqnctapercluster {}, 1, 1\n", self.cluster);
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_blocks_ask_for_nothing() {
        assert_eq!(LaunchBounds::threads(128).directives("k").unwrap(), ".maxntid 128, 1, 1\n");
        let bounds = LaunchBounds { min_blocks: 8, shared_bytes: 512, ..LaunchBounds::threads(64) };
        assert_eq!(bounds.directives("k").unwrap(), ".maxntid 64, 1, 1\n.minnctapersm 8\n");
    }

    #[test]
    fn clusters_of_one_are_not_told() {
        let bounds = LaunchBounds { cluster: 2, ..LaunchBounds::threads(64) };
        let text = ".maxntid 64, 1, 1\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n";
        assert_eq!(bounds.directives("k").unwrap(), text);
    }

    #[test]
    fn impossible_blocks_are_refused() {
        for threads in [0, 1025] {
            let error = LaunchBounds::threads(threads).directives("k").unwrap_err();
            assert!(matches!(error, BuildError::Bounds { max_threads, .. } if max_threads == threads));
        }
    }
}
