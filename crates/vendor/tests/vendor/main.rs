//! The vendor's libraries without a GPU: against fake libraries that compute on the host and keep a journal of their
//! calls.

mod cublas;
mod cudnn;
mod cusparse;
mod described;
mod driver;
mod fake;
mod nvml;
mod sddmm;
mod search;
