//! The kernels of the list: which values, A and B go together.
use core::marker::PhantomData;

use super::boxes::Boxes;
use super::columns::Columns;
use super::halves::Halves;
use super::singles::Singles;
use super::{Pack, Prepacked, ROWS, WgmmaKernel, WidePack};
use crate::spmm::mma::{Rows, StageFilling, Stages};

/// SpMM by warpgroups for 16-bit values of `T`, that are put where their columns are: tiles of 64·`M` rows and 2·`L` columns, by `M`
/// consumer warpgroups, through the stages `S`. B comes in boxes: N, strides and addresses are multiples of eight elements.
///
/// - Of `S`, more chunks make the vectors of rows longer, and barriers fewer.
/// - `PART`: of a step of a row the producers load ahead what one nonzero in so many columns makes. With a larger one, fewer
///   lanes share a row, which is faster unless the row has more.
/// - `BLOCKS`: blocks that share a tile.
pub type WgmmaTiles<T, S, const L: usize, const PART: u32, const M: u32, const BLOCKS: u32> =
    WgmmaKernel<Eights<T, L, M>, Rows<T, Scattering<S, PART, M>>, Boxes<Eights<T, L, M>, S, L>, S, L, BLOCKS>;

/// As [`WgmmaTiles`], where rows of B and C may begin at multiples of four elements. B comes in vectors.
pub type WgmmaTilesOfFours<T, S, const L: usize, const PART: u32, const M: u32, const BLOCKS: u32> =
    WgmmaKernel<Fours<T, L, M>, Rows<T, Scattering<S, PART, M>>, Columns<Fours<T, L, M>, S, L>, S, L, BLOCKS>;

/// As [`WgmmaTiles`], for values that are [packed](Pack), of which a warp loads `AHEAD` packs ahead of each step. Each group of
/// producers has a stage of its own.
pub type PrepackedTiles<T, S, const L: usize, const AHEAD: usize, const M: u32, const BLOCKS: u32> =
    WgmmaKernel<Eights<T, L, M>, Prepacked<T, Pack, S, AHEAD, M>, Boxes<Eights<T, L, M>, S, L>, S, L, BLOCKS>;

/// As [`PrepackedTiles`], with B in vectors: small tiles have few steps, of which the first comes sooner so.
pub type PrepackedTilesByThreads<T, S, const L: usize, const AHEAD: usize, const M: u32, const BLOCKS: u32> =
    WgmmaKernel<
        Eights<T, L, M>,
        Prepacked<T, Pack, S, AHEAD, M>,
        Columns<Eights<T, L, M>, S, L>,
        S,
        L,
        BLOCKS,
    >;

/// As [`PrepackedTiles`], where rows of B and C may begin at multiples of four elements. B comes in vectors.
pub type PrepackedTilesOfFours<T, S, const L: usize, const AHEAD: usize, const M: u32, const BLOCKS: u32> =
    WgmmaKernel<Fours<T, L, M>, Prepacked<T, Pack, S, AHEAD, M>, Columns<Fours<T, L, M>, S, L>, S, L, BLOCKS>;

/// As [`PrepackedTilesOfFours`], for `f32` in products `P`: tiles of 128 rows and 64·`M` columns, by `M` consumer warpgroups.
pub type SinglePrepackedTiles<P, S, const AHEAD: usize, const M: u32, const BLOCKS: u32> = WgmmaKernel<
    Singles<P, M>,
    Prepacked<f32, WidePack<P>, S, AHEAD, 1>,
    Columns<Singles<P, M>, S, 64>,
    S,
    64,
    BLOCKS,
>;

/// 16-bit values whose rows begin at multiples of eight elements.
type Eights<T, const L: usize, const M: u32> = Halves<T, L, M, false>;
/// The same at multiples of four.
type Fours<T, const L: usize, const M: u32> = Halves<T, L, M, true>;

/// How values are scattered that lie row by row.
#[derive(Debug)]
pub struct Scattering<S, const PART: u32, const M: u32>(PhantomData<S>);

impl<S: Stages, const PART: u32, const M: u32> StageFilling for Scattering<S, PART, M> {
    const ROWS: u32 = M * ROWS;
    const UNIT_ROWS: u32 = ROWS;
    const TILES: u32 = S::CHUNKS;
    const WARPS: u32 = S::WARPS;
    const COLUMNS_PER_PREFETCH: u32 = PART;
    const AHEAD: usize = 1;
    const TILE_BY_TILE: bool = true;
}
