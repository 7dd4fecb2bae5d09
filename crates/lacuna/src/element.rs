//! What a buffer can hold.
use lacuna_gpu::Scalar;

/// A number that buffers on a device hold.
pub trait Element: Scalar + bytemuck::Pod {}
impl Element for f32 {}
impl Element for u32 {}
impl Element for u16 {}
impl Element for u64 {}
