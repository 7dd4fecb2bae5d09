//! The images of the challenge: handwritten digits, enlarged, and each pixel 0 or 1.
//!
//! [`from_digits`] makes them of MNIST's training images, as the challenge's authors say they did; [`drawn`] makes others
//! of the same kind where there is no MNIST. Both give a [`Pattern`](lacuna_matrix::Pattern): a row an image, and a
//! column a pixel that may be 1. Pixel (x, y), x to the right, is column x · side + y.
//!
//! [`from_digits`] gives the official images but for a few pixels; why is not known:
//!
//! | side | ones here | ones of the official images |
//! | ---: | ---: | ---: |
//! | 32 | 6,373,995 | 6,374,505 |
//! | 64 | 25,017,160 | 25,019,051 |
//! | 128 | 98,865,594 | 98,858,913 |
//! | 256 | 392,212,149 | 392,191,985 |
//!
//! [`Labels`] say which digits they are. The challenge does not ask for them; whoever trains a network does.
//!
//! Of the first 1,200 official images of side 32, 1,190 are equal, and 10 pixels of 122,713 ones differ. The categories
//! of 1,024 neurons and 120 layers are exactly the official 1,812.

mod digits;
mod drawn;
mod idx;
mod interpolate;
mod labels;
mod resample;

pub use digits::Digits;
pub use drawn::drawn;
pub use interpolate::from_digits;
pub use labels::Labels;

/// The largest side of the challenge, and here.
const MAX_SIDE: usize = 256;
