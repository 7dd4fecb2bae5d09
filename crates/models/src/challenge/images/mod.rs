//! The images of the challenge: handwritten digits, enlarged, and each pixel 0 or 1.
//!
//! [`from_digits`] makes them of MNIST's training images, as the challenge's authors say they did; [`drawn`] makes others
//! of the same kind where there is no MNIST. Both give a [`Pattern`](lacuna_matrix::Pattern): a row an image, and a
//! column a pixel that may be 1. Pixel (x, y), x to the right, is column x · side + y.
//!
//! At side 32 [`from_digits`] gives 6,373,995 ones where the official file has 6,374,505, and the network of 120 layers
//! has the same categories on both.

mod digits;
mod drawn;
mod interpolate;
mod resample;

pub use digits::Digits;
pub use drawn::drawn;
pub use interpolate::from_digits;

/// The largest side of the challenge, and here.
const MAX_SIDE: usize = 256;
