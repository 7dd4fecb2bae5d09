//! Networks with their weights, from files that others wrote.
//!
//! [`onnx`] reads ONNX, which most frameworks export; [`tflite`] reads TensorFlow Lite.

mod drafts;
pub mod onnx;
pub mod tflite;

/// How often weights may be made from a file's bytes, as its parts may share them: times its bytes, and so many elements more.
const SHARING: usize = 16;
const FEW: usize = 1 << 16;
/// The most elements of a value.
const MOST: usize = isize::MAX as usize / size_of::<f32>();

/// How many elements of weights may be made of a file.
fn budget(bytes: usize) -> usize {
    bytes.saturating_mul(SHARING).saturating_add(FEW)
}
