//! The vendors' status numbers, with names and advice.

use std::ffi::c_int;
use std::fmt;

use crate::cudnn;
use crate::error::Error;

/// Endings of the file names of CUDA's libraries, newest first. The bare one is a toolkit's development link.
pub(crate) const CUDA_ENDINGS: &[&str] = &[".so.13", ".so.12", ".so.11", ".so"];
/// The same of cuDNN, which counts its own versions.
const CUDNN_ENDINGS: &[&str] = &[".so.9", ".so.8", ".so"];

/// A vendor library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// NVIDIA cuSPARSE.
    CuSparse,
    /// NVIDIA cuBLAS.
    CuBlas,
    /// NVIDIA cuDNN.
    CuDnn,
}

impl Vendor {
    /// The file name up to its version.
    pub(crate) fn stem(self) -> &'static str {
        match self {
            Vendor::CuSparse => "libcusparse",
            Vendor::CuBlas => "libcublas",
            Vendor::CuDnn => "libcudnn",
        }
    }

    /// The endings of the file name to try, newest first.
    pub(crate) fn endings(self) -> &'static [&'static str] {
        match self {
            Vendor::CuSparse | Vendor::CuBlas => CUDA_ENDINGS,
            Vendor::CuDnn => CUDNN_ENDINGS,
        }
    }

    /// The file names, up to their versions, of CUDA's libraries that it needs; each after those that it needs itself.
    ///
    /// cuDNN's own parts lie beside it, where it finds them.
    pub(crate) fn companions(self) -> &'static [&'static str] {
        match self {
            Vendor::CuSparse => &["libnvJitLink"],
            Vendor::CuBlas => &["libcublasLt"],
            Vendor::CuDnn => &["libcublasLt", "libcublas", "libnvrtc"],
        }
    }

    /// The oldest product that holds it.
    pub(crate) fn product(self) -> &'static str {
        match self {
            Vendor::CuSparse | Vendor::CuBlas => "CUDA 11.4",
            Vendor::CuDnn => "cuDNN 8",
        }
    }

    /// The library's own number of that product.
    pub(crate) fn oldest_major(self) -> c_int {
        match self {
            Vendor::CuSparse | Vendor::CuBlas => 11,
            Vendor::CuDnn => 8,
        }
    }

    /// The Python package that holds it.
    pub(crate) fn wheel(self) -> &'static str {
        match self {
            Vendor::CuSparse => "nvidia-cusparse",
            Vendor::CuBlas => "nvidia-cublas",
            Vendor::CuDnn => "nvidia-cudnn-cu13",
        }
    }

    /// The same for drivers of CUDA 12.
    pub(crate) fn wheel_of_cuda_12(self) -> &'static str {
        match self {
            Vendor::CuSparse => "nvidia-cusparse-cu12",
            Vendor::CuBlas => "nvidia-cublas-cu12",
            Vendor::CuDnn => "nvidia-cudnn-cu12",
        }
    }
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Vendor::CuSparse => "cuSPARSE",
            Vendor::CuBlas => "cuBLAS",
            Vendor::CuDnn => "cuDNN",
        })
    }
}

/// What a vendor's function returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Status {
    vendor: Vendor,
    code: i32,
}

impl Status {
    pub(crate) fn new(vendor: Vendor, code: c_int) -> Self {
        Self { vendor, code }
    }

    /// Turns all but success into an error that names `function`.
    pub(crate) fn check(self, function: &'static str) -> Result<(), Error> {
        if self.code == 0 { Ok(()) } else { Err(Error::Call { function, status: self }) }
    }

    /// Whose status this is.
    pub fn vendor(self) -> Vendor {
        self.vendor
    }

    /// The number, as in the vendor's header.
    pub fn code(self) -> i32 {
        self.code
    }

    /// The name, as in the vendor's header; `unknown status` for a number it did not have when this was
    /// written.
    pub fn name(self) -> &'static str {
        match (self.vendor, self.code) {
            (Vendor::CuSparse, 0) => "CUSPARSE_STATUS_SUCCESS",
            (Vendor::CuSparse, 1) => "CUSPARSE_STATUS_NOT_INITIALIZED",
            (Vendor::CuSparse, 2) => "CUSPARSE_STATUS_ALLOC_FAILED",
            (Vendor::CuSparse, 3) => "CUSPARSE_STATUS_INVALID_VALUE",
            (Vendor::CuSparse, 4) => "CUSPARSE_STATUS_ARCH_MISMATCH",
            (Vendor::CuSparse, 5) => "CUSPARSE_STATUS_MAPPING_ERROR",
            (Vendor::CuSparse, 6) => "CUSPARSE_STATUS_EXECUTION_FAILED",
            (Vendor::CuSparse, 7) => "CUSPARSE_STATUS_INTERNAL_ERROR",
            (Vendor::CuSparse, 8) => "CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED",
            (Vendor::CuSparse, 9) => "CUSPARSE_STATUS_ZERO_PIVOT",
            (Vendor::CuSparse, 10) => "CUSPARSE_STATUS_NOT_SUPPORTED",
            (Vendor::CuSparse, 11) => "CUSPARSE_STATUS_INSUFFICIENT_RESOURCES",
            (Vendor::CuBlas, 0) => "CUBLAS_STATUS_SUCCESS",
            (Vendor::CuBlas, 1) => "CUBLAS_STATUS_NOT_INITIALIZED",
            (Vendor::CuBlas, 3) => "CUBLAS_STATUS_ALLOC_FAILED",
            (Vendor::CuBlas, 7) => "CUBLAS_STATUS_INVALID_VALUE",
            (Vendor::CuBlas, 8) => "CUBLAS_STATUS_ARCH_MISMATCH",
            (Vendor::CuBlas, 11) => "CUBLAS_STATUS_MAPPING_ERROR",
            (Vendor::CuBlas, 13) => "CUBLAS_STATUS_EXECUTION_FAILED",
            (Vendor::CuBlas, 14) => "CUBLAS_STATUS_INTERNAL_ERROR",
            (Vendor::CuBlas, 15) => "CUBLAS_STATUS_NOT_SUPPORTED",
            (Vendor::CuBlas, 16) => "CUBLAS_STATUS_LICENSE_ERROR",
            (Vendor::CuDnn, code) => cudnn::status_name(code),
            _ => "unknown status",
        }
    }

    /// Whether the library has no such operation for this problem or this GPU.
    pub fn is_unsupported(self) -> bool {
        matches!(
            (self.vendor, self.code),
            (Vendor::CuSparse, 4 | 8 | 10) | (Vendor::CuBlas, 8 | 15) | (Vendor::CuDnn, 6 | 9 | 3000..=3999)
        )
    }

    /// What to do about it.
    pub fn advice(self) -> &'static str {
        if self.is_unsupported() {
            return "the library cannot do this on this GPU; leave it out";
        }
        match (self.vendor, self.code) {
            (_, 1) | (Vendor::CuDnn, 1001) => {
                "no CUDA context is current, or the driver is older than the library; make a context first, or \
                       put a library of the driver's CUDA version in LACUNA_PEERS_PATH"
            }
            (Vendor::CuSparse, 2) | (Vendor::CuBlas, 3) | (Vendor::CuDnn, 2 | 4004) => {
                "the GPU is out of memory; free some or take a smaller problem"
            }
            (Vendor::CuSparse, 11) => "the problem asks too much of the GPU; take a smaller one",
            (Vendor::CuSparse, 6) | (Vendor::CuBlas, 13) | (Vendor::CuDnn, 8 | 5000..=5999) => {
                "a kernel failed, perhaps an earlier one of ours; run under compute-sanitizer"
            }
            (Vendor::CuDnn, 11 | 14 | 1002 | 1008) => {
                "a library that cuDNN opens itself is missing or of another version; put all of one cuDNN's files in \
                       one folder, and name it and the folders of cuBLAS and NVRTC in LACUNA_PEERS_PATH"
            }
            _ => {
                "the library refused the call; its variable tells more: CUSPARSE_LOG_LEVEL, CUBLAS_LOGINFO_DBG or \
                       CUDNN_LOGLEVEL_DBG"
            }
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_has_each_vendors_own_name() {
        assert_eq!(Status::new(Vendor::CuSparse, 3).name(), "CUSPARSE_STATUS_INVALID_VALUE");
        assert_eq!(Status::new(Vendor::CuBlas, 3).name(), "CUBLAS_STATUS_ALLOC_FAILED");
        assert_eq!(Status::new(Vendor::CuBlas, 99).to_string(), "unknown status (99)");
    }

    #[test]
    fn a_failed_call_says_function_number_name_and_advice() {
        let error = Status::new(Vendor::CuSparse, 10).check("cusparseSpMM").unwrap_err();
        assert!(error.is_unsupported());
        assert_eq!(
            error.to_string(),
            "cusparseSpMM returned CUSPARSE_STATUS_NOT_SUPPORTED (10): the library cannot do this on this GPU; \
             leave it out"
        );
        let error = Status::new(Vendor::CuBlas, 1).check("cublasCreate_v2").unwrap_err();
        assert!(!error.is_unsupported());
        assert!(error.to_string().contains("no CUDA context is current"), "{error}");
    }

    #[test]
    fn success_is_no_error() {
        assert!(Status::new(Vendor::CuBlas, 0).check("cublasSgemm_v2").is_ok());
    }
}
