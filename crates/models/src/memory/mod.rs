//! Where intermediate values of a network lie: planned once, by when each of them is needed.
//!
//! Values whose times do not overlap share memory. [`Memory`] says which value lies where, [`Arena`] how offsets are found.

mod arena;
mod places;
mod planes;

pub use arena::{ALIGNMENT, Arena, Lifetime};
pub use places::{Home, Memory, Place};
pub(crate) use planes::plane_strides;
