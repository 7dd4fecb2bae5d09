//! Where the A of a tile comes from: how its producers fill stages.
use lacuna_gpu::Gpu;

use super::TileArgs;

/// What a producer warp needs to fill its part of A in the stages.
pub trait TileSource<T>: Sized + 'static {
    /// What a lane has loaded for a step.
    type Loaded;
    /// Of a row is loaded ahead what one nonzero in so many columns makes; 0 where that is not told apart.
    const COLUMNS_PER_PREFETCH: u32;
    /// Nonzeros of a step that are loaded ahead, if that does not depend on rows; otherwise 0.
    const AHEAD: u32;
    /// Whether what is loaded never changes.
    const IS_CONSTANT: bool;

    /// For warp `warp` of group `group`, of the rows from `row` on; the group's first step is the one of its number.
    ///
    /// # Safety
    /// The arguments describe live memory, here and below.
    unsafe fn new<G: Gpu>(gpu: G, args: &TileArgs<T>, group_warp: [u32; 2], row: u32) -> Self;
    /// Looks up where the values of a step are, if there is one.
    ///
    /// # Safety
    /// See [`new`](Self::new).
    unsafe fn look_up<G: Gpu>(&mut self, gpu: G, step: Option<u32>);
    /// Loads what was looked up. The whole warp comes here, and below.
    ///
    /// # Safety
    /// See [`new`](Self::new).
    unsafe fn next<G: Gpu>(&self, gpu: G) -> Self::Loaded;
    /// Clears the warp's part of a stage whose A is at `a`. Of a group's only stage, it may know what the warp has put there
    /// `before`.
    ///
    /// # Safety
    /// The stage is empty.
    unsafe fn clear<G: Gpu>(&self, gpu: G, a: u32, before: Option<&Self::Loaded>);
    /// Fills it.
    ///
    /// # Safety
    /// All warps of the group have cleared their parts of it, or do so before they come here.
    unsafe fn fill<G: Gpu>(&self, gpu: G, a: u32, loaded: &Self::Loaded);
}
