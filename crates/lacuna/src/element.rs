//! What a buffer can hold.
use std::fmt::Debug;

/// A number that buffers on a device hold.
pub trait Element: bytemuck::Pod + PartialEq + Debug + Send + Sync {}
impl Element for f32 {}
impl Element for half::f16 {}
impl Element for half::bf16 {}
impl Element for u8 {}
impl Element for u32 {}
impl Element for u16 {}
impl Element for i32 {}
impl Element for i64 {}
impl Element for u64 {}
