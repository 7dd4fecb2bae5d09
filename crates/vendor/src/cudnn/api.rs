//! The C functions of cuDNN, as `cudnn.h` has declared them since cuDNN 8.

use std::ffi::{c_int, c_void};

use crate::api::api;
use crate::data_type::DataType;
use crate::loaded::RawHandle;
use crate::status::Vendor;

/// `cudnnTensorDescriptor_t`, or the type of another descriptor: all are pointers.
pub(crate) type RawDescriptor = *mut c_void;

/// `CUDNN_TENSOR_NCHW`.
pub(crate) const NCHW: c_int = 0;
/// `CUDNN_TENSOR_NHWC`.
pub(crate) const NHWC: c_int = 1;
/// `CUDNN_CROSS_CORRELATION`: taps are not mirrored, which networks call a convolution.
pub(crate) const CROSS_CORRELATION: c_int = 1;
/// `CUDNN_ACTIVATION_RELU`.
pub(crate) const RELU: c_int = 1;
/// `CUDNN_ACTIVATION_IDENTITY`.
pub(crate) const IDENTITY: c_int = 5;
/// `CUDNN_PROPAGATE_NAN`.
pub(crate) const PROPAGATE_NAN: c_int = 1;

/// The number in `cudnnDataType_t`, which is not that of `cudaDataType_t`.
pub(crate) fn data_type(data_type: DataType) -> c_int {
    match data_type {
        DataType::F32 => 0,
        DataType::F16 => 2,
        DataType::Bf16 => 9,
    }
}

/// `cudnnConvolutionFwdAlgoPerf_t`: how one algorithm did.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Performance {
    pub(crate) algorithm: c_int,
    pub(crate) status: c_int,
    pub(crate) milliseconds: f32,
    pub(crate) workspace_bytes: usize,
    pub(crate) determinism: c_int,
    pub(crate) math_type: c_int,
    pub(crate) reserved: [c_int; 3],
}

api! {
    Vendor::CuDnn;

    fn get_property = "cudnnGetProperty"(property: c_int, value: *mut c_int);
    fn create = "cudnnCreate"(handle: *mut RawHandle);
    fn destroy = "cudnnDestroy"(handle: RawHandle);
    fn set_stream = "cudnnSetStream"(handle: RawHandle, stream: *mut c_void);

    fn create_tensor = "cudnnCreateTensorDescriptor"(tensor: *mut RawDescriptor);
    fn describe_tensor = "cudnnSetTensor4dDescriptor"(
        tensor: RawDescriptor, format: c_int, data_type: c_int,
        batch: c_int, channels: c_int, height: c_int, width: c_int,
    );
    fn destroy_tensor = "cudnnDestroyTensorDescriptor"(tensor: RawDescriptor);
    fn create_filter = "cudnnCreateFilterDescriptor"(filter: *mut RawDescriptor);
    fn describe_filter = "cudnnSetFilter4dDescriptor"(
        filter: RawDescriptor, data_type: c_int, format: c_int,
        filters: c_int, channels: c_int, height: c_int, width: c_int,
    );
    fn destroy_filter = "cudnnDestroyFilterDescriptor"(filter: RawDescriptor);
    fn create_convolution = "cudnnCreateConvolutionDescriptor"(convolution: *mut RawDescriptor);
    fn describe_convolution = "cudnnSetConvolution2dDescriptor"(
        convolution: RawDescriptor, padding_height: c_int, padding_width: c_int,
        stride_height: c_int, stride_width: c_int, dilation_height: c_int, dilation_width: c_int,
        mode: c_int, compute_type: c_int,
    );
    fn set_group_count = "cudnnSetConvolutionGroupCount"(convolution: RawDescriptor, groups: c_int);
    fn set_math_type = "cudnnSetConvolutionMathType"(convolution: RawDescriptor, math_type: c_int);
    fn destroy_convolution = "cudnnDestroyConvolutionDescriptor"(convolution: RawDescriptor);
    fn create_activation = "cudnnCreateActivationDescriptor"(activation: *mut RawDescriptor);
    fn describe_activation = "cudnnSetActivationDescriptor"(
        activation: RawDescriptor, mode: c_int, nan: c_int, coefficient: f64,
    );
    fn destroy_activation = "cudnnDestroyActivationDescriptor"(activation: RawDescriptor);

    fn fill = "cudnnSetTensor"(
        handle: RawHandle, tensor: RawDescriptor, values: *mut c_void, value: *const c_void,
    );
    fn find_forward = "cudnnFindConvolutionForwardAlgorithmEx"(
        handle: RawHandle, input: RawDescriptor, input_values: *const c_void,
        filter: RawDescriptor, filter_values: *const c_void, convolution: RawDescriptor,
        out: RawDescriptor, out_values: *mut c_void,
        asked: c_int, returned: *mut c_int, results: *mut Performance,
        workspace: *mut c_void, workspace_bytes: usize,
    );
    fn rank_forward = "cudnnGetConvolutionForwardAlgorithm_v7"(
        handle: RawHandle, input: RawDescriptor, filter: RawDescriptor, convolution: RawDescriptor,
        out: RawDescriptor, asked: c_int, returned: *mut c_int, results: *mut Performance,
    );
    fn forward_workspace = "cudnnGetConvolutionForwardWorkspaceSize"(
        handle: RawHandle, input: RawDescriptor, filter: RawDescriptor, convolution: RawDescriptor,
        out: RawDescriptor, algorithm: c_int, bytes: *mut usize,
    );
    fn forward = "cudnnConvolutionForward"(
        handle: RawHandle, alpha: *const c_void, input: RawDescriptor, input_values: *const c_void,
        filter: RawDescriptor, filter_values: *const c_void, convolution: RawDescriptor, algorithm: c_int,
        workspace: *mut c_void, workspace_bytes: usize,
        beta: *const c_void, out: RawDescriptor, out_values: *mut c_void,
    );
    fn forward_fused = "cudnnConvolutionBiasActivationForward"(
        handle: RawHandle, alpha: *const c_void, input: RawDescriptor, input_values: *const c_void,
        filter: RawDescriptor, filter_values: *const c_void, convolution: RawDescriptor, algorithm: c_int,
        workspace: *mut c_void, workspace_bytes: usize,
        alpha_added: *const c_void, added: RawDescriptor, added_values: *const c_void,
        bias: RawDescriptor, bias_values: *const c_void, activation: RawDescriptor,
        out: RawDescriptor, out_values: *mut c_void,
    );
}
