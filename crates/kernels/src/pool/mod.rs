//! Pooling of feature maps: the greatest pixel of each window, or the mean of its pixels.
//!
//! ```text
//!   window.rs, any.rs                         planes.rs (NCHW)                channels.rs (NHWC)
//!   ┌───────┬───┐  a thread: results one      ┌─────────────┐ a group of     pixel 0  │ c c c c │ c c c c │  a lane has a vector
//!   │ ·   · │ · │  below another of a column, │ channel     │ lanes a        pixel 1  │ c c c c │ c c c c │  of channels; the warps
//!   │ ·   · │ · │  or one result; of a vector │ plane       │ channel        pixel 2  │ c c c c │ c c c c │  share the pixels, and
//!   └───────┴───┘  of channels in NHWC        └─────────────┘                  …                             join in shared memory
//! ```
//! Threads side by side have what lies side by side in memory. All loads of a thread are unconditional: a pixel outside of the map
//! becomes the nearest one inside, which is in the window too, since every window meets the map (padding is at most half of it). For
//! a maximum it counts twice, which changes nothing; a sum takes −0 instead. So no load waits for another or for a branch.
//!
//! Numbers are joined in f32, in an order that the kernel and the sizes determine, and rounded once. A mode is an argument: all threads
//! of a launch go the same way, and there is an entry point for both.
//!
//! Lower bound: the bytes of input and result, once each.
mod any;
mod channels;
mod join;
mod list;
mod planes;
mod window;

pub use any::AnyPool;
pub use channels::{ChannelPool, ChannelPoolArgs};
pub use join::PoolMode;
pub use planes::{PlanePool, PlanePoolArgs};
pub use window::{WindowPool, WindowPoolArgs};

use crate::ValueType;

/// Loads that kernels for windows of any size have under way at once.
const CHUNK: usize = 4;

/// How a kernel does its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// [`WindowPool`].
    Window {
        /// Rows and columns of a window.
        window: u32,
        /// Input pixels from one result to the next.
        stride: u32,
        /// Results of a thread, one below another.
        rows: u32,
    },
    /// [`AnyPool`].
    Any,
    /// [`PlanePool`].
    Planes,
    /// [`ChannelPool`].
    Channels,
}

/// What the host must know of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// How it works.
    pub scheme: Scheme,
    /// Elements that a thread loads at once: channels, but pixels of [`PlanePool`].
    pub vector: u32,
    /// Type of the maps.
    pub value: ValueType,
}
