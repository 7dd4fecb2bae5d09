//! cuDNN's status numbers.

use std::ffi::c_int;

/// The name of a status, as in the header: those of cuDNN 8 are below 1000, those of cuDNN 9 above.
pub(crate) fn name(code: c_int) -> &'static str {
    match code {
        0 => "CUDNN_STATUS_SUCCESS",
        1 => "CUDNN_STATUS_NOT_INITIALIZED",
        2 => "CUDNN_STATUS_ALLOC_FAILED",
        3 => "CUDNN_STATUS_BAD_PARAM",
        4 => "CUDNN_STATUS_INTERNAL_ERROR",
        5 => "CUDNN_STATUS_INVALID_VALUE",
        6 => "CUDNN_STATUS_ARCH_MISMATCH",
        7 => "CUDNN_STATUS_MAPPING_ERROR",
        8 => "CUDNN_STATUS_EXECUTION_FAILED",
        9 => "CUDNN_STATUS_NOT_SUPPORTED",
        10 => "CUDNN_STATUS_LICENSE_ERROR",
        11 => "CUDNN_STATUS_RUNTIME_PREREQUISITE_MISSING",
        12 => "CUDNN_STATUS_RUNTIME_IN_PROGRESS",
        13 => "CUDNN_STATUS_RUNTIME_FP_OVERFLOW",
        14 => "CUDNN_STATUS_VERSION_MISMATCH",
        1001 => "CUDNN_STATUS_NOT_INITIALIZED",
        1002 => "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
        1003 => "CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH",
        1004 => "CUDNN_STATUS_DEPRECATED",
        1005 => "CUDNN_STATUS_LICENSE_ERROR",
        1006 => "CUDNN_STATUS_RUNTIME_IN_PROGRESS",
        1007 => "CUDNN_STATUS_RUNTIME_FP_OVERFLOW",
        1008 => "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED",
        2000 => "CUDNN_STATUS_BAD_PARAM",
        2001 => "CUDNN_STATUS_INVALID_VALUE",
        2002 => "CUDNN_STATUS_BAD_PARAM_NULL_POINTER",
        2003 => "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER",
        2004 => "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED",
        2005 => "CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND",
        2006 => "CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT",
        2007 => "CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH",
        2008 => "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH",
        2009 => "CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES",
        2010 => "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE",
        2011 => "CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH",
        2012 => "CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE",
        3000 => "CUDNN_STATUS_NOT_SUPPORTED",
        3001 => "CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN",
        3002 => "CUDNN_STATUS_NOT_SUPPORTED_SHAPE",
        3003 => "CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE",
        3004 => "CUDNN_STATUS_NOT_SUPPORTED_LAYOUT",
        3005 => "CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER",
        3006 => "CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART",
        3007 => "CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH",
        3008 => "CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING",
        3009 => "CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE",
        3010 => "CUDNN_STATUS_NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT",
        3011 => "CUDNN_STATUS_NOT_SUPPORTED_PADDING",
        3012 => "CUDNN_STATUS_NOT_SUPPORTED_BAD_LAUNCH_PARAM",
        3013 => "CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API",
        3014 => "CUDNN_STATUS_NOT_SUPPORTED_INVALID_DYNAMIC_SHAPE",
        4000 => "CUDNN_STATUS_INTERNAL_ERROR",
        4001 => "CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED",
        4002 => "CUDNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE",
        4003 => "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED",
        4004 => "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        4005 => "CUDNN_STATUS_INTERNAL_ERROR_BAD_LAUNCH_PARAM",
        4006 => "CUDNN_STATUS_INTERNAL_ERROR_TEXTURE_CREATION_FAILED",
        5000 => "CUDNN_STATUS_EXECUTION_FAILED",
        5001 => "CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER",
        5002 => "CUDNN_STATUS_EXECUTION_FAILED_CUBLAS",
        5003 => "CUDNN_STATUS_EXECUTION_FAILED_CUDART",
        5004 => "CUDNN_STATUS_EXECUTION_FAILED_CURAND",
        _ => "unknown status",
    }
}

#[cfg(test)]
mod tests {
    use crate::status::{Status, Vendor};

    #[test]
    fn each_of_the_two_numberings_has_its_names() {
        let names = [1, 9, 1001, 2000, 3007, 4004, 5003, 6000]
            .map(|code| Status::new(Vendor::CuDnn, code).to_string());
        let expected = [
            "CUDNN_STATUS_NOT_INITIALIZED (1)",
            "CUDNN_STATUS_NOT_SUPPORTED (9)",
            "CUDNN_STATUS_NOT_INITIALIZED (1001)",
            "CUDNN_STATUS_BAD_PARAM (2000)",
            "CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH (3007)",
            "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED (4004)",
            "CUDNN_STATUS_EXECUTION_FAILED_CUDART (5003)",
            "unknown status (6000)",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn what_it_cannot_do_is_told_from_what_went_wrong() {
        let unsupported = |code| Status::new(Vendor::CuDnn, code).is_unsupported();
        assert!([6, 9, 3000, 3007, 3014, 3999].into_iter().all(unsupported));
        assert!(![0, 1, 3, 8, 1001, 2000, 2012, 4000, 5000].into_iter().any(unsupported));
    }

    #[test]
    fn both_numberings_have_the_same_advice() {
        let advice = |code| Status::new(Vendor::CuDnn, code).advice();
        for (old, new, words) in [
            (1, 1001, "no CUDA context is current"),
            (2, 4004, "out of memory"),
            (8, 5000, "compute-sanitizer"),
            (11, 1008, "cuBLAS and NVRTC"),
            (3, 2000, "CUDNN_LOGLEVEL_DBG"),
            (9, 3000, "leave it out"),
        ] {
            assert!(advice(old).contains(words) && advice(new) == advice(old), "{}", advice(old));
        }
    }
}
