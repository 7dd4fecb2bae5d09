//! How nonzeros lie in packs, and how they come into a stage.
//!
//! A *unit* is a part of A: some rows by some columns. Its nonzeros lie together, each a value and its *place*, where in the unit it
//! goes, in packs of a few for each lane of a warp, which one or two loads bring. So no lane is without a value, but at a unit's
//! end, and nothing is looked up row by row. Of a pack, 32 values at a time are stored together, as far as possible to different
//! banks: the host orders them for that.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, SharedPtr, WARP};

use super::{CHUNK_BYTES, ROWS};
use crate::Products;
use crate::common::{nearest_tf32, tf32_rest};
use crate::spmm::mma::TILE_ROW;

/// Packs of a kind of values.
pub trait PackShape: Send + Sync + 'static {
    /// Rows of a unit.
    const ROWS: usize;
    /// Columns of a unit.
    const COLUMNS: usize;
    /// Nonzeros of a pack.
    const VALUES: usize;
    /// Words of a pack.
    const WORDS: usize;
    /// Bytes of an element in a unit.
    const ELEMENT: usize;
    /// Bytes of a unit in a stage.
    const UNIT_BYTES: u32;

    /// The place of an element of a unit: a byte of its values in a stage.
    fn place(row: u32, column: u32) -> u16;

    /// Writes nonzero `index` of a pack: its place, and the bits of its value. Those after each other are stored together.
    fn write(pack: &mut [u32], index: usize, place: u16, bits: u32);

    /// Nonzero `index` of a pack, as [`write`](Self::write) wrote it.
    fn read(pack: &[u32], index: usize) -> (u16, u32);

    /// A lane's part of a pack.
    ///
    /// # Safety
    /// The pack is live.
    unsafe fn load<G: Gpu>(gpu: G, pack: GlobalPtr<u32>) -> [u32; 4];

    /// Puts a lane's part of a pack into a unit of a stage.
    ///
    /// # Safety
    /// Nobody else uses these places now.
    unsafe fn put<G: Gpu>(gpu: G, unit: u32, loaded: [u32; 4]);

    /// Puts zeros there.
    ///
    /// # Safety
    /// As for [`put`](Self::put).
    unsafe fn clear<G: Gpu>(gpu: G, unit: u32, loaded: [u32; 4]);
}

/// The lane and turn of nonzero `index`.
const fn lane_and_turn(index: usize) -> [usize; 2] {
    [index % WARP as usize, index / WARP as usize]
}

/// Writes a half of a word.
fn write_half(words: &mut [u32], half: usize, bits: u16) {
    let shift = half % 2 * 16;
    words[half / 2] = words[half / 2] & !(0xffff << shift) | u32::from(bits) << shift;
}

/// A half of a word.
fn half(words: &[u32], half: usize) -> u16 {
    (words[half / 2] >> (half % 2 * 16)) as u16
}

/// Packs of 16-bit values: of units of 64 rows by 128 columns, 128 nonzeros each, four for a lane. Of four words for each lane, two
/// hold values and two their places, the first in the lower half.
#[derive(Clone, Copy, Debug)]
pub struct Pack;

impl PackShape for Pack {
    const ROWS: usize = ROWS as usize;
    const COLUMNS: usize = 128;
    const VALUES: usize = 128;
    const WORDS: usize = 128;
    const ELEMENT: usize = 2;
    const UNIT_BYTES: u32 = 2 * CHUNK_BYTES;

    #[inline(always)]
    fn place(row: u32, column: u32) -> u16 {
        let (chunk, column) = (column / 64, column % 64);
        (chunk * CHUNK_BYTES + row * TILE_ROW + ((column * 2) ^ (row % 8 * 16))) as u16
    }

    fn write(pack: &mut [u32], index: usize, place: u16, bits: u32) {
        let [lane, turn] = lane_and_turn(index);
        write_half(pack, lane * 8 + turn, bits as u16);
        write_half(pack, lane * 8 + 4 + turn, place);
    }

    fn read(pack: &[u32], index: usize) -> (u16, u32) {
        let [lane, turn] = lane_and_turn(index);
        (half(pack, lane * 8 + 4 + turn), half(pack, lane * 8 + turn).into())
    }

    #[inline(always)]
    unsafe fn load<G: Gpu>(gpu: G, pack: GlobalPtr<u32>) -> [u32; 4] {
        // SAFETY: as promised by the caller.
        unsafe { gpu.load_readonly(pack.add(gpu.lane_id() as usize * 4)) }
    }

    #[inline(always)]
    unsafe fn put<G: Gpu>(gpu: G, unit: u32, loaded: [u32; 4]) {
        for i in 0..2 {
            let (values, places) = (loaded[i], loaded[2 + i]);
            let to = |place: u32| SharedPtr::from_offset(unit + place);
            // SAFETY: as promised by the caller.
            unsafe {
                gpu.shared_store(to(places & 0xffff), [values as u16]);
                gpu.shared_store(to(places >> 16), [(values >> 16) as u16]);
            }
        }
    }

    #[inline(always)]
    unsafe fn clear<G: Gpu>(gpu: G, unit: u32, loaded: [u32; 4]) {
        // SAFETY: as promised by the caller.
        unsafe { Self::put(gpu, unit, [0, 0, loaded[2], loaded[3]]) };
    }
}

/// Packs of `f32`: of units of 128 rows by 32 columns, 64 nonzeros each, two for a lane: two words with values, and behind all of
/// them a word with both places. Where `P` multiplies what TF32 leaves out of a value, too, that lies in a stage behind the unit's
/// values, at the same places.
#[derive(Clone, Copy, Debug)]
pub struct WidePack<P>(PhantomData<P>);

impl<P> WidePack<P> {
    /// Bytes of a unit's values.
    pub(super) const PART_BYTES: u32 = 2 * ROWS * TILE_ROW;
}

impl<P: Products> PackShape for WidePack<P> {
    const ROWS: usize = 2 * ROWS as usize;
    const COLUMNS: usize = 32;
    const VALUES: usize = 64;
    const WORDS: usize = 96;
    const ELEMENT: usize = 4;
    const UNIT_BYTES: u32 = if P::SPLIT { 2 } else { 1 } * Self::PART_BYTES;

    #[inline(always)]
    fn place(row: u32, column: u32) -> u16 {
        (row * TILE_ROW + ((column * 4) ^ (row % 8 * 16))) as u16
    }

    fn write(pack: &mut [u32], index: usize, place: u16, bits: u32) {
        let [lane, turn] = lane_and_turn(index);
        pack[lane * 2 + turn] = bits;
        write_half(pack, 2 * Self::VALUES + lane * 2 + turn, place);
    }

    fn read(pack: &[u32], index: usize) -> (u16, u32) {
        let [lane, turn] = lane_and_turn(index);
        (half(pack, 2 * Self::VALUES + lane * 2 + turn), pack[lane * 2 + turn])
    }

    #[inline(always)]
    unsafe fn load<G: Gpu>(gpu: G, pack: GlobalPtr<u32>) -> [u32; 4] {
        let lane = gpu.lane_id() as usize;
        // SAFETY: as promised by the caller.
        unsafe {
            let [first, second] = gpu.load_readonly(pack.add(lane * 2));
            let [places] = gpu.load_readonly(pack.add(Self::VALUES + lane));
            [first, second, places, 0]
        }
    }

    #[inline(always)]
    unsafe fn put<G: Gpu>(gpu: G, unit: u32, loaded: [u32; 4]) {
        let places = [loaded[2] & 0xffff, loaded[2] >> 16];
        for i in 0..2 {
            let value = f32::from_bits(loaded[i]);
            let to = SharedPtr::from_offset(unit + places[i]);
            // SAFETY: as promised by the caller.
            unsafe {
                if P::SPLIT {
                    gpu.shared_store(to, [nearest_tf32(value)]);
                    gpu.shared_store(to.add(Self::PART_BYTES / 4), [tf32_rest(value)]);
                } else {
                    gpu.shared_store(to, [value]);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn clear<G: Gpu>(gpu: G, unit: u32, loaded: [u32; 4]) {
        // SAFETY: as promised by the caller. Both parts of zero are zero.
        unsafe { Self::put(gpu, unit, [0, 0, loaded[2], 0]) };
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec;

    use super::*;
    use crate::Tf32;

    fn elements_have_places_of_their_own<P: PackShape>() {
        let mut seen = vec![false; P::ROWS * P::COLUMNS];
        for row in 0..P::ROWS as u32 {
            for column in 0..P::COLUMNS as u32 {
                let place = usize::from(P::place(row, column));
                assert!(place.is_multiple_of(P::ELEMENT) && !seen[place / P::ELEMENT]);
                seen[place / P::ELEMENT] = true;
            }
        }
    }

    fn nonzeros_have_room_of_their_own<P: PackShape>() {
        let mut pack = vec![0; P::WORDS];
        let bits =
            |index: usize| 0x1357_9bdf_u32.rotate_left(index as u32) & (u32::MAX >> (32 - 8 * P::ELEMENT));
        for index in 0..P::VALUES {
            P::write(&mut pack, index, 3 * index as u16, bits(index));
        }
        for index in 0..P::VALUES {
            assert_eq!(P::read(&pack, index), (3 * index as u16, bits(index)), "{index}");
        }
    }

    #[test]
    fn elements_of_a_unit_have_places_of_their_own() {
        elements_have_places_of_their_own::<Pack>();
        elements_have_places_of_their_own::<WidePack<Tf32>>();
    }

    #[test]
    fn nonzeros_of_a_pack_have_room_of_their_own() {
        nonzeros_have_room_of_their_own::<Pack>();
        nonzeros_have_room_of_their_own::<WidePack<Tf32>>();
    }
}
