//! The blocks of 64 queries × 64 keys of a mask: made once for a mask. The host lists them; what a CSR pattern sees, the device finds.
mod bitmap;
mod pattern;
mod strips;
mod tiles;
mod transposed;
mod windows;

use std::sync::Arc;

use lacuna_gpu::GlobalPtr;
use lacuna_kernels::Entry;
use lacuna_kernels::attention::{BLOCK, BlockArgs, Tile};

use self::strips::Strips;
pub use self::tiles::TilingCounts;
use self::tiles::{MAX_GROUPS, Tiles};
use super::Mask;
use super::mask::SIDE;
use crate::op::launch;
use crate::pattern::Derived;
use crate::{Buffer, Device, Result, Stream};

/// How many blocks of 64 queries × 64 keys a mask has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts {
    /// By tiles of one, two and three groups of 64 queries.
    pub tilings: [TilingCounts; MAX_GROUPS],
}

/// A mask on a device, as the blocks of 64 queries × 64 keys in which a query sees a key. Clones share the memory, and all plans
/// that are made for it do.
///
/// An entry of 16 bytes names a block of keys that one, two or three groups of 64 queries see, once each; a block that is not seen whole has
/// 512 bytes of bits, and blocks with equal bits share them.
///
/// ```
/// use lacuna::{Device, attention};
///
/// # fn main() -> lacuna::Result<()> {
/// let causal = attention::Mask::causal(256)?;
/// let blocks = attention::MaskBlocks::new(&Device::simulator(), &causal)?;
/// let [by_one_group, ..] = blocks.counts().tilings;
/// assert_eq!((by_one_group.entries, blocks.bitmaps()), (4 + 3 + 2 + 1, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MaskBlocks {
    queries: usize,
    keys: usize,
    elements: u64,
    counts: BlockCounts,
    lists: Arc<Lists>,
}

/// What kernels read.
#[derive(Debug)]
struct Lists {
    device: Device,
    /// Of partial blocks, as many words each as a [`Bitmap`](bitmap::Bitmap) has.
    bitmaps: Buffer<u32>,
    /// For each number of groups the records of its tiles, the longest first, and their entries.
    tilings: [[Buffer<u32>; 2]; MAX_GROUPS],
    /// The transposed mask, where it was asked for.
    derived: Derived,
}

impl MaskBlocks {
    /// Lists the blocks of a mask, and uploads them. The time is that of the blocks between the first and the last that each 64 queries see, and of
    /// asking the rules for each query.
    ///
    /// # Errors
    /// [`Error::TooLarge`](crate::Error::TooLarge) from 2³² blocks on; [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn new(device: &Device, mask: &Mask) -> Result<Self> {
        Self::upload(device, &Strips::list([mask.queries(), mask.keys()], |queries| mask.strip(queries))?)
    }

    /// With the bitmaps of the strips.
    fn upload(device: &Device, strips: &Strips) -> Result<Self> {
        Self::with_bitmaps(strips, device.upload(strips.bitmaps.as_flattened())?)
    }

    /// With bitmaps that are on the device already.
    fn with_bitmaps(strips: &Strips, bitmaps: Buffer<u32>) -> Result<Self> {
        let device = bitmaps.device();
        let tilings = [1, 2, 3].map(|groups| strips.tiles(groups));
        let counts = BlockCounts { tilings: tilings.each_ref().map(|tiles| tiles.counts) };
        let upload = |Tiles { records, entries, .. }: Tiles| -> Result<_> {
            Ok([device.upload(records.as_flattened())?, device.upload(entries.as_flattened())?])
        };
        let [one, two, three] = tilings.map(upload);
        let lists = Lists {
            device: device.clone(),
            tilings: [one?, two?, three?],
            bitmaps,
            derived: Derived::default(),
        };
        let Strips { queries, keys, elements, .. } = *strips;
        Ok(Self { queries, keys, elements, counts, lists: Arc::new(lists) })
    }

    /// Queries of the mask.
    pub fn queries(&self) -> usize {
        self.queries
    }
    /// Keys of the mask.
    pub fn keys(&self) -> usize {
        self.keys
    }
    /// Pairs of a query and a key that it sees.
    pub fn elements(&self) -> u64 {
        self.elements
    }
    /// How many blocks it has.
    pub fn counts(&self) -> &BlockCounts {
        &self.counts
    }
    /// Bitmaps of blocks that are not seen whole: those that differ.
    pub fn bitmaps(&self) -> usize {
        self.lists.bitmaps.len() / bitmap::WORDS
    }
    /// Bytes of device memory, with those of the transposed mask, once a gradient has asked for it.
    pub fn bytes(&self) -> usize {
        let transposed = self.lists.derived.get::<Self>().map_or(0, Self::own_bytes);
        self.own_bytes() + transposed
    }
    fn own_bytes(&self) -> usize {
        let Lists { bitmaps, tilings, .. } = &*self.lists;
        tilings.as_flattened().iter().chain([bitmaps]).map(|buffer| buffer.len() * size_of::<u32>()).sum()
    }
    /// The device that holds them.
    pub fn device(&self) -> &Device {
        &self.lists.device
    }

    /// Whether these are the same blocks: clones are.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.lists, &other.lists)
    }

    /// Gives the work of so many heads to the stream, by a kernel that takes tiles of mask blocks.
    pub(super) fn launch<O: Copy + Send + Sync + 'static>(
        &self,
        stream: &Stream,
        entry: &Entry<Tile>,
        heads: u32,
        operands: O,
    ) -> Result<()> {
        let tiles = self.queries.div_ceil(entry.tile.block_rows as usize) as u32;
        if tiles == 0 || heads == 0 {
            return Ok(());
        }
        let [table, entries] = &self.lists.tilings[(entry.tile.block_rows / BLOCK) as usize - 1];
        let pointer = |buffer: &Buffer<u32>| -> GlobalPtr<u32> { buffer.as_slice().pointer() };
        let args = BlockArgs {
            tile_table: pointer(table),
            entries: pointer(entries),
            bitmaps: pointer(&self.lists.bitmaps),
            reversed: reversed(entry.bounds.min_blocks, self.device().info().multiprocessors, [heads, tiles]),
            operands,
        };
        launch(stream, entry, [heads, tiles, 1], &args)
    }
}

/// Which tiles are taken in reverse order, as [`BlockArgs::reversed`] has them. Where a multiprocessor has two thread blocks at once,
/// each gets one of the longest tiles first, and then a second one. Of these second ones the shortest is to come beside the longest
/// first one, so that all multiprocessors have about as much to do. Later tiles go where a thread block has ended.
fn reversed(at_once: u32, multiprocessors: u32, [heads, tiles]: [u32; 2]) -> [u32; 2] {
    let first = if at_once == 2 { multiprocessors / heads } else { 0 };
    [first, first.min(tiles.saturating_sub(first))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_tiles_come_beside_long_ones() {
        // 16 tiles of 8 heads are on 128 of 132 multiprocessors.
        assert_eq!(reversed(2, 132, [8, 64]), [16, 16]);
        assert_eq!(reversed(2, 132, [8, 20]), [16, 4]);
        for [at_once, heads, tiles] in [[2, 8, 16], [2, 8, 3], [1, 8, 64], [0, 8, 64], [2, 133, 64]] {
            assert_eq!(
                reversed(at_once, 132, [heads, tiles])[1],
                0,
                "{at_once}, {heads} heads, {tiles} tiles"
            );
        }
    }

    /// Records of tiles, and entries.
    type TileLists = (Vec<u32>, Vec<Vec<u32>>);

    /// For each number of groups the records of its tiles and their entries, with the bits of partial blocks in place of their numbers,
    /// which may be others.
    pub(super) fn lists(mask: &MaskBlocks) -> Result<Vec<TileLists>> {
        let stream = mask.device().stream()?;
        let bitmaps = mask.lists.bitmaps.download(&stream)?;
        let bitmaps = bitmaps.as_chunks::<{ bitmap::WORDS }>().0;
        let bits = |&word: &u32| bitmaps.get(word as usize).map_or(vec![word], |bits| bits.to_vec());
        let of_tiling = |[records, entries]: &[Buffer<u32>; 2]| {
            let entries = entries.download(&stream)?;
            let entries = entries
                .chunks(4)
                .map(|entry| [vec![entry[0]], entry[1..].iter().flat_map(bits).collect()].concat());
            Ok((records.download(&stream)?, entries.collect()))
        };
        mask.lists.tilings.iter().map(of_tiling).collect()
    }
}
