//! The peers without a GPU: against fake libraries that compute on the host and keep a journal of their
//! calls.

mod cublas;
mod cudnn;
mod cusparse;
mod fake;
mod nvml;
mod sddmm;
mod search;
