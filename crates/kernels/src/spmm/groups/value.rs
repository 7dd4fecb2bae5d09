//! What differs between the types of values: how A and B lie in a stage, and what is multiplied with what.
use lacuna_gpu::{Bf16, F16, GlobalPtr, Gpu, SharedPtr};

use super::TILE_ROW;
use crate::DeviceValue;
use crate::spmm::Arithmetic;

/// A value that warpgroups multiply.
pub trait GroupValue: DeviceValue {
    /// What a product is.
    const ARITHMETIC: Arithmetic;
    /// Parts of a value of B.
    const PLANES: u32;
    /// Elements of B that a thread brings at once.
    const ITEM: u32;
    /// Whether they are loaded ahead and stored; otherwise copied.
    const IS_LOADED: bool;
    /// They, on their way.
    type Item: Copy + Default;
    /// Parts of a tile along K whose products start together.
    const PARTS: u32;
    /// A lane's part of 16 rows of A in a part of a tile.
    type Fragments: Copy;

    /// Value `index` of 16 bytes of them.
    fn of_piece(piece: &[u32; 4], index: u32) -> Self;

    /// In which bits of its address an element of A's row `row` lies elsewhere in the tile, so that lanes find theirs in
    /// different banks.
    fn swizzle(row: u32) -> u32;

    /// Row and column at which an item begins, in a tile's part of B that is 2·L columns wide.
    fn item<const L: usize>(item: u32) -> [u32; 2];

    /// Begins to load an item that begins at `from`; `rows` rows are left there, and zeros follow.
    ///
    /// # Safety
    /// B is live as far as that.
    unsafe fn load<G: Gpu>(gpu: G, from: GlobalPtr<Self>, stride_bytes: u32, rows: u32) -> Self::Item;

    /// Puts an item into a stage, or starts to; the tile's part of B is at `b`.
    ///
    /// # Safety
    /// The item is this thread's in an empty stage.
    unsafe fn put<G: Gpu, const L: usize>(gpu: G, b: u32, number: u32, item: &Self::Item);

    /// A lane's part of the 16 rows of a tile at `rows`, `stride` bytes from one to the next, in its part `part`. The whole
    /// warp comes here.
    ///
    /// # Safety
    /// The stage is full.
    unsafe fn fragments<G: Gpu>(gpu: G, rows: u32, stride: u32, part: u32) -> Self::Fragments;

    /// Starts the products of a part of a tile, whose part of B is at `b`.
    ///
    /// # Safety
    /// The stage is full; the whole warpgroup is here.
    unsafe fn multiply<G: Gpu, const L: usize>(
        gpu: G,
        a: &Self::Fragments,
        b: u32,
        part: u32,
        sums: &mut [f32; L],
    );
}

/// What TF32 leaves out of a number: hi is x with the lower 13 bits of its mantissa cleared, which is what the hardware
/// takes of it, and this is the rest, exactly; less than 2⁻¹⁰·|x|.
#[inline(always)]
fn lo(x: f32) -> f32 {
    x - f32::from_bits(x.to_bits() & !0x1fff)
}

/// Which 16 bytes of which rows of Bᵀ an item fills: the piece, and the first row. Eight neighbouring threads store into
/// different banks, and eight load 128 neighbouring bytes.
#[inline(always)]
const fn place_of_item<const L: usize>(item: u32) -> (u32, u32) {
    let columns = 2 * L as u32;
    (item / columns * 4 + item % 4, item % columns / 4 * 4)
}

/// Products of TF32, three for one: hi·hi + hi·lo + lo·hi. The hardware takes hi of lo, too: so a product is within
/// 2⁻²⁰ + 2⁻²¹ + 2⁻²¹ of itself.
///
/// wgmma wants Bᵀ in TF32. Which columns of A it takes together is free: of the 32 of a tile, lane `t` of four has the columns
/// 16q + 4t + i. They are for the tensor cores columns `t` and `t` + 4 of steps 2q and 2q + 1; so Bᵀ's columns lie in the
/// order 16q + 4i + t.
impl GroupValue for f32 {
    const ARITHMETIC: Arithmetic = Arithmetic::Tf32x3;
    const PLANES: u32 = 2;
    /// Four rows of B, four apart, and four columns: in the stage, of four rows 16 bytes each.
    const ITEM: u32 = 16;
    const IS_LOADED: bool = true;
    type Item = [[f32; 4]; 4];
    const PARTS: u32 = 2;
    /// By steps of eight columns: hi, lo.
    type Fragments = [[[u32; 4]; 2]; 2];

    #[inline(always)]
    fn of_piece(piece: &[u32; 4], index: u32) -> Self {
        Self::from_bits(piece[index as usize])
    }

    #[inline(always)]
    fn swizzle(row: u32) -> u32 {
        row % 2 * 64
    }

    #[inline(always)]
    fn item<const L: usize>(item: u32) -> [u32; 2] {
        let (piece, column) = place_of_item::<L>(item);
        [piece / 4 * 16 + piece % 4, column]
    }

    #[inline(always)]
    unsafe fn load<G: Gpu>(gpu: G, from: GlobalPtr<f32>, stride_bytes: u32, rows: u32) -> [[f32; 4]; 4] {
        let mut item = [[0.0; 4]; 4];
        for (i, row) in item.iter_mut().enumerate() {
            if 4 * (i as u32) < rows {
                // SAFETY: as promised by the caller.
                *row = unsafe { gpu.load_readonly(from.add_rows(4 * i as u32, stride_bytes)) };
            }
        }
        item
    }

    #[inline(always)]
    unsafe fn put<G: Gpu, const L: usize>(gpu: G, b: u32, number: u32, item: &[[f32; 4]; 4]) {
        let (piece, column) = place_of_item::<L>(number);
        for i in 0..4 {
            let row = column + i;
            let to = SharedPtr::<f32>::from_offset(b + row * TILE_ROW + (piece ^ row % 8) * 16);
            let hi = item.map(|x| x[i as usize]);
            // SAFETY: as promised by the caller.
            unsafe {
                gpu.shared_store(to, hi);
                gpu.shared_store(to.add(2 * L as u32 * TILE_ROW / 4), hi.map(lo));
            }
        }
    }

    #[inline(always)]
    unsafe fn fragments<G: Gpu>(gpu: G, rows: u32, stride: u32, part: u32) -> Self::Fragments {
        let (g, t) = (gpu.lane_id() / 4, gpu.lane_id() % 4);
        let from = rows + g * stride + ((4 * part + t) * 16 ^ Self::swizzle(g));
        // SAFETY: as promised by the caller.
        let [upper, lower]: [[f32; 4]; 2] =
            unsafe { [from, from + 8 * stride].map(|from| gpu.shared_load(SharedPtr::from_offset(from))) };
        let mut steps = [[[0; 4]; 2]; 2];
        for (i, step) in steps.iter_mut().enumerate() {
            let x = [upper[2 * i], lower[2 * i], upper[2 * i + 1], lower[2 * i + 1]];
            *step = [x.map(f32::to_bits), x.map(|x| lo(x).to_bits())];
        }
        steps
    }

    #[inline(always)]
    unsafe fn multiply<G: Gpu, const L: usize>(
        gpu: G,
        a: &Self::Fragments,
        b: u32,
        part: u32,
        sums: &mut [f32; L],
    ) {
        for (step, [hi, lo]) in a.iter().enumerate() {
            let of_hi = SharedPtr::from_offset(b + 32 * (2 * part + step as u32));
            let of_lo = of_hi.add(2 * L as u32 * TILE_ROW / 4);
            // SAFETY: as promised by the caller.
            unsafe {
                gpu.warpgroup_mma_tf32::<L>(sums, *lo, of_hi);
                gpu.warpgroup_mma_tf32::<L>(sums, *hi, of_lo);
                gpu.warpgroup_mma_tf32::<L>(sums, *hi, of_hi);
            }
        }
    }
}

/// Columns of a panel of B, which is 2·L columns wide.
const fn panel(l: usize) -> u32 {
    if l < 32 { 32 } else { 64 }
}

/// Bytes from a panel's first to the next's.
const PANEL: u32 = 64 * 128;

/// Writes the implementation for a 16-bit type: its product.
macro_rules! half {
    ($type:ty, $mma:ident) => {
        impl GroupValue for $type {
            const ARITHMETIC: Arithmetic = Arithmetic::Half;
            const PLANES: u32 = 1;
            /// Eight columns of a row.
            const ITEM: u32 = 8;
            const IS_LOADED: bool = false;
            /// Where it is, and whether it is there.
            type Item = (u64, bool);
            const PARTS: u32 = 1;
            /// By steps of 16 columns.
            type Fragments = [[u32; 4]; 4];

            #[inline(always)]
            fn of_piece(piece: &[u32; 4], index: u32) -> Self {
                Self((piece[index as usize / 2] >> (index % 2 * 16)) as u16)
            }

            #[inline(always)]
            fn swizzle(row: u32) -> u32 {
                row % 8 * 16
            }

            #[inline(always)]
            fn item<const L: usize>(item: u32) -> [u32; 2] {
                [item / (L as u32 / 4), item % (L as u32 / 4) * 8]
            }

            #[inline(always)]
            unsafe fn load<G: Gpu>(_: G, from: GlobalPtr<Self>, _: u32, rows: u32) -> (u64, bool) {
                (from.address(), rows > 0)
            }

            #[inline(always)]
            unsafe fn put<G: Gpu, const L: usize>(gpu: G, b: u32, number: u32, item: &(u64, bool)) {
                let [row, column] = Self::item::<L>(number);
                let (first, column) = (column / panel(L) * PANEL, column % panel(L));
                let swizzle = if panel(L) == 64 { row % 8 } else { row / 2 % 4 };
                let to = b + first + row * 2 * panel(L) + (column / 8 ^ swizzle) * 16;
                let (from, is_there) = *item;
                // SAFETY: as promised by the caller, here and to `load`.
                unsafe {
                    let from = GlobalPtr::from_address(from);
                    gpu.copy_async_or_zero::<u16, 8>(SharedPtr::from_offset(to), from, is_there);
                }
            }

            #[inline(always)]
            unsafe fn fragments<G: Gpu>(gpu: G, rows: u32, stride: u32, _part: u32) -> Self::Fragments {
                let lane = gpu.lane_id();
                let row = rows + lane % 16 * stride;
                let mut steps = [[0; 4]; 4];
                for (step, words) in steps.iter_mut().enumerate() {
                    let from = row + ((2 * step as u32 + lane / 16) * 16 ^ Self::swizzle(lane % 8));
                    // SAFETY: as promised by the caller.
                    *words = unsafe { gpu.shared_load_matrices::<false>(SharedPtr::from_offset(from)) };
                }
                steps
            }

            #[inline(always)]
            unsafe fn multiply<G: Gpu, const L: usize>(
                gpu: G,
                a: &Self::Fragments,
                b: u32,
                _part: u32,
                sums: &mut [f32; L],
            ) {
                for (step, a) in a.iter().enumerate() {
                    let b = SharedPtr::from_offset(b + step as u32 * 16 * 2 * panel(L));
                    // SAFETY: as promised by the caller.
                    unsafe { gpu.$mma::<L, PANEL>(sums, *a, b) };
                }
            }
        }
    };
}
half!(F16, warpgroup_mma_f16);
half!(Bf16, warpgroup_mma_bf16);
