//! What Lacuna's kernels are compared with: the vendor's libraries that are on the machine.
//!
//! Three peers: cuSPARSE's SpMM and SDDMM, cuBLAS's GEMM and cuDNN's convolution, which [`lacuna_vendor`] opens and wraps. A peer that is not
//! there is a value, [`Missing`], that names what was looked for, where, and the fix.
use lacuna_vendor::cublas::CuBlas;
use lacuna_vendor::cudnn::CuDnn;
use lacuna_vendor::cusparse::CuSparse;
use lacuna_vendor::{Missing, Search};

/// What was found of the peers; each may be missing on its own.
#[derive(Debug)]
pub struct Peers {
    /// cuSPARSE, or why it is not there.
    pub cusparse: Result<CuSparse, Missing>,
    /// cuBLAS, or why it is not there.
    pub cublas: Result<CuBlas, Missing>,
    /// cuDNN, or why it is not there.
    pub cudnn: Result<CuDnn, Missing>,
}

impl Peers {
    /// Looks for every peer. Needs neither a GPU nor a driver.
    pub fn load(search: &Search) -> Self {
        Self { cusparse: CuSparse::load(search), cublas: CuBlas::load(search), cudnn: CuDnn::load(search) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_peer_that_is_missing_says_what_was_tried() {
        let folder = tempfile::tempdir().unwrap();
        let peers = Peers::load(&Search::in_folders([folder.path()]));
        let names = [peers.cusparse.unwrap_err(), peers.cublas.unwrap_err(), peers.cudnn.unwrap_err()]
            .map(|missing| missing.names().join(" "));
        let expected = [
            "libcusparse.so.13 libcusparse.so.12 libcusparse.so.11 libcusparse.so",
            "libcublas.so.13 libcublas.so.12 libcublas.so.11 libcublas.so",
            "libcudnn.so.9 libcudnn.so.8 libcudnn.so",
        ];
        assert_eq!(names, expected);
    }
}
