//! A build without feature `cuda`: no GPU, and a word on why.
#![cfg(not(feature = "cuda"))]
use lacuna::{Device, Error};

#[test]
fn there_is_no_gpu_and_the_error_names_the_feature() {
    let error = Device::cuda(0).unwrap_err();
    assert!(matches!(error, Error::NoCuda) && error.is_missing(), "{error}");
    assert!(error.to_string().contains("feature `cuda`"), "{error}");
}

#[test]
fn the_best_device_is_the_simulator() {
    let device = Device::best().unwrap();
    assert!(device.is_simulator());
    assert_eq!(device.zeros::<f32>(3).unwrap().len(), 3);
}
