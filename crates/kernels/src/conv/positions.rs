//! What a nonzero does at each position of a tile's input: code that the position alone determines, so that sums stay in registers.
use lacuna_gpu::{Gpu, Real, SharedPtr};

/// Sums of a thread: rows and columns of the tile, and filters.
pub(super) type Sums<const TH: usize, const TW: usize, const F: usize> = [[[f32; F]; TW]; TH];
/// Weights of a thread for a channel: taps, and filters.
pub(super) type Taps<const R: usize, const F: usize> = [[[f32; F]; R]; R];

/// Adds a nonzero at position `P`, counted in rows of the tile's input.
#[inline(always)]
fn add<
    G: Gpu,
    const P: usize,
    const R: usize,
    const STRIDE: usize,
    const TH: usize,
    const TW: usize,
    const F: usize,
>(
    gpu: G,
    x: f32,
    taps: &Taps<R, F>,
    sums: &mut Sums<TH, TW, F>,
) {
    let columns = (TW - 1) * STRIDE + R;
    let (row, column) = (P / columns, P % columns);
    for (r, taps) in taps.iter().enumerate() {
        for (s, tap) in taps.iter().enumerate() {
            let is_met = row >= r && column >= s && (row - r) % STRIDE == 0 && (column - s) % STRIDE == 0;
            if is_met {
                let (y, x_out) = ((row - r) / STRIDE, (column - s) / STRIDE);
                if y < TH && x_out < TW {
                    for (f, &tap) in tap.iter().enumerate() {
                        sums[y][x_out][f] = gpu.fma(x, tap, sums[y][x_out][f]);
                    }
                }
            }
        }
    }
}

macro_rules! positions {
    ($([$a:literal $b:literal $c:literal $d:literal])+) => {
        /// Adds a tile's input of one channel, whose positions lie in shared memory one after another. Where a zero is, its products
        /// are left out by a branch, which all lanes take alike.
        ///
        /// # Safety
        /// The tile is there, up to a multiple of four positions, and at a multiple of 16 bytes.
        #[inline(always)]
        pub(super) unsafe fn add_tile<
            G: Gpu,
            T: Real,
            const R: usize,
            const STRIDE: usize,
            const TH: usize,
            const TW: usize,
            const F: usize,
        >(
            gpu: G,
            tile: SharedPtr<T>,
            taps: &Taps<R, F>,
            sums: &mut Sums<TH, TW, F>,
        ) {
            let count = ((TH - 1) * STRIDE + R) * ((TW - 1) * STRIDE + R);
            $(if $a < count {
                // SAFETY: as promised by the caller.
                let four: [T; 4] = unsafe { gpu.shared_load(tile.add($a)) };
                let [a, b, c, d] = four.map(|x| x.to_f32(gpu));
                // Bits of -0 do no harm. NaN is not zero.
                if a.to_bits() | b.to_bits() | c.to_bits() | d.to_bits() != 0 {
                    if a != 0.0 {
                        add::<G, $a, R, STRIDE, TH, TW, F>(gpu, a, taps, sums);
                    }
                    if $b < count && b != 0.0 {
                        add::<G, $b, R, STRIDE, TH, TW, F>(gpu, b, taps, sums);
                    }
                    if $c < count && c != 0.0 {
                        add::<G, $c, R, STRIDE, TH, TW, F>(gpu, c, taps, sums);
                    }
                    if $d < count && d != 0.0 {
                        add::<G, $d, R, STRIDE, TH, TW, F>(gpu, d, taps, sums);
                    }
                }
            })+
        }
    };
}
positions! {
    [0 1 2 3] [4 5 6 7] [8 9 10 11] [12 13 14 15] [16 17 18 19] [20 21 22 23]
    [24 25 26 27] [28 29 30 31] [32 33 34 35] [36 37 38 39] [40 41 42 43] [44 45 46 47]
    [48 49 50 51] [52 53 54 55] [56 57 58 59] [60 61 62 63] [64 65 66 67] [68 69 70 71]
    [72 73 74 75] [76 77 78 79] [80 81 82 83] [84 85 86 87] [88 89 90 91] [92 93 94 95]
    [96 97 98 99] [100 101 102 103] [104 105 106 107] [108 109 110 111] [112 113 114 115] [116 117 118 119]
    [120 121 122 123] [124 125 126 127]
}
/// Positions that there is code for.
pub(super) const MAX_POSITIONS: usize = 128;
