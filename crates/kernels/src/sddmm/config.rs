//! The constants of an SDDMM kernel, and the proof that they fit together.
use core::marker::PhantomData;

use lacuna_gpu::WARP;

use super::tile::{Scheme, Tile};
use crate::{Bounds, DeviceIndex, DeviceValue, PADDING};

/// SDDMM by nonzeros: a group of `LANES` lanes computes [`TILE`] neighbouring nonzeros of D, `N` at a time.
///
/// - `T`, `I`: types of all values, and of C's column indices. Sums are `f32`.
/// - `V`: elements of K that a lane loads at once (1, 2, 4 or 8; 16 bytes at most).
/// - `C`: such vectors of a lane in a chunk of K, which is `LANES · V · C` elements. Where it has all of K, a row of A is
///   loaded once for all its nonzeros of the tile.
/// - `N`: nonzeros whose rows of B are under way together (2 or 4).
/// - `LANES`: lanes of a group (4, 8, 16 or 32). A whole warp serves long K, and few nonzeros.
/// - `WARPS`: warps of a block. They never wait for each other, but share what L1 holds of B.
///
/// Constants that do not fit together are refused when the kernel is named, not when it runs:
///
/// ```
/// use lacuna_kernels::Kernel;
/// use lacuna_kernels::sddmm::NonzeroSplit;
/// assert_eq!(<NonzeroSplit<f32, u32, 4, 1, 4, 8, 8> as Kernel>::TILE.block_items, 1024);
/// ```
/// ```compile_fail,E0080
/// # use lacuna_kernels::Kernel;
/// # use lacuna_kernels::sddmm::NonzeroSplit;
/// let _ = <NonzeroSplit<f32, u32, 4, 1, 4, 64, 8> as Kernel>::TILE; // a group of more lanes than a warp has
/// ```
#[derive(Debug)]
pub struct NonzeroSplit<
    T,
    I,
    const V: usize,
    const C: usize,
    const N: usize,
    const LANES: usize,
    const WARPS: u32,
>(PhantomData<(T, I)>);

/// Nonzeros of a tile.
pub const TILE: u32 = 32;

impl<T, I, const V: usize, const C: usize, const N: usize, const LANES: usize, const WARPS: u32>
    NonzeroSplit<T, I, V, C, N, LANES, WARPS>
where
    T: DeviceValue,
    I: DeviceIndex,
{
    /// Lanes of a group.
    pub(super) const GROUP: u32 = LANES as u32;
    /// Groups of a warp.
    pub(super) const WARP_GROUPS: u32 = WARP / Self::GROUP;
    /// Threads of a block.
    pub(super) const BLOCK_THREADS: u32 = WARPS * WARP;
    /// Groups of a block.
    pub(super) const BLOCK_GROUPS: u32 = WARPS * Self::WARP_GROUPS;
    /// Elements from one vector of a lane to its next: all lanes' vectors side by side.
    pub(super) const STEP: u32 = Self::GROUP * V as u32;
    /// Elements of a chunk of K.
    pub(super) const CHUNK: u32 = Self::STEP * C as u32;

    /// 24 warps of an SM leave a thread 80 registers, which do for `f32`. Conversions from 16 bits want a few more; told of
    /// fewer warps, ptxas mostly stays below 80 all the same, and spills nothing.
    pub(super) const REGISTER_BOUNDS: Bounds = Bounds {
        max_threads: Self::BLOCK_THREADS,
        min_blocks: if size_of::<T>() == 4 { 24 / WARPS } else { 2 },
    };

    /// The constants as numbers.
    pub(super) const NUMBERS: Tile = {
        assert!(
            V.is_power_of_two() && V * size_of::<T>() <= 16,
            "a lane loads 1, 2, 4 or 8 elements in 16 bytes"
        );
        assert!(C >= 1, "a lane has a part of K");
        assert!(N == 2 || N == 4, "the indices of 2 or 4 nonzeros are one load");
        assert!(
            LANES.is_power_of_two() && LANES >= 4 && LANES <= WARP as usize,
            "lanes of one warp pair up in shuffles"
        );
        assert!(WARPS >= 1 && Self::BLOCK_THREADS <= 1024, "a block has at most 1024 threads");
        assert!(N <= PADDING, "the indices of the last nonzeros are loaded with their neighbours");
        Tile {
            value: T::TYPE,
            index: I::TYPE,
            vector: V as u32,
            block_items: Self::BLOCK_GROUPS * TILE,
            scheme: Scheme::NonzeroSplit { lanes: LANES as u32, vectors: C as u32, at_once: N as u32 },
        }
    };
}
