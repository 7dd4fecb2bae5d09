//! Tiles of `f32`.
//!
//! A stage holds BM rows of A ([`rows`](super::rows)), each WK chunks of 32 values, and 32·WK rows of BN values of B. Both
//! are swizzled: the 16-byte vector that a lane reads first is another from row to row of A, and after each four rows of B,
//! so that the lanes of an access lie in different banks. A consumer takes K in the order in which its registers come: of 16
//! columns, lane `t` of four has the columns 4t to 4t+3. mma sums over K, so any order will do if A and B agree.
use lacuna_gpu::{Gpu, SharedPtr};

use super::TileArgs;
use super::operand::{Consumer, Stage, TileOperand};
use super::reduction::Accumulators;
use crate::common::{pack, pack_lo};
use crate::{Products, Single};

/// A consumer lane's places in a stage, in elements: in its first row of A, for either half of a chunk; in its first row of
/// B, for even and odd 16 columns.
struct Lane {
    a: [u32; 2],
    b: [u32; 2],
}

impl<P: Products> TileOperand for Single<P> {
    const B_PADDING: u32 = 0;
    const LOADS_TWO_AHEAD: bool = true;

    #[inline(always)]
    fn b_column(k: u32, column: u32) -> u32 {
        column ^ (k / 4 % 4 * 8)
    }

    /// What a step needs first is loaded before the last products of the step before.
    #[inline(always)]
    unsafe fn consume<G: Gpu, S: Stage, const RT: usize, const NT: usize>(
        gpu: G,
        cols: u32,
        at: Consumer,
        accumulators: &mut Accumulators<RT, NT>,
    ) {
        let (g, t) = (gpu.lane_id() / 4, gpu.lane_id() % 4);
        let a = (at.m * RT as u32 * 8 + g) * S::SLICES * S::CHUNK + at.k * S::CHUNK;
        let b = (at.k * S::CHUNK + 4 * t) * S::B_ROW;
        let column = at.n * NT as u32 * 16 + 2 * g;
        let lane = Lane {
            a: [a + ((4 * t) ^ (g % 2 * 16)), a + ((4 * t + 16) ^ (g % 2 * 16))],
            b: [b + (column ^ (t * 8)), b + ((column + 16) ^ (t * 8))],
        };
        let mut pipeline = S::pipeline(cols);
        if pipeline.is_done() {
            return;
        }
        pipeline.wait_full(gpu);
        // SAFETY: a stage is read while it is full.
        unsafe {
            let mut x = load_a::<_, S, RT>(gpu, &lane, pipeline.stage, 0);
            let mut w = load_b::<_, S, NT>(gpu, &lane, pipeline.stage, 0);
            loop {
                let stage = pipeline.stage;
                let w1 = load_b::<_, S, NT>(gpu, &lane, stage, 1);
                multiply(gpu, &x, &w, 0, accumulators);
                let x1 = load_a::<_, S, RT>(gpu, &lane, stage, 1);
                let w2 = load_b::<_, S, NT>(gpu, &lane, stage, 2);
                multiply(gpu, &x, &w1, 1, accumulators);
                correct::<_, P, RT, NT>(gpu, &x, [&w, &w1], accumulators);
                let w3 = load_b::<_, S, NT>(gpu, &lane, stage, 3);
                multiply(gpu, &x1, &w2, 0, accumulators);
                multiply(gpu, &x1, &w3, 1, accumulators);
                pipeline.next_or_first(gpu);
                x = load_a::<_, S, RT>(gpu, &lane, pipeline.stage, 0);
                w = load_b::<_, S, NT>(gpu, &lane, pipeline.stage, 0);
                pipeline.release(gpu, stage);
                correct::<_, P, RT, NT>(gpu, &x1, [&w2, &w3], accumulators);
                if pipeline.is_done() {
                    return;
                }
            }
        }
    }

    /// A lane has, of each 8 rows, two, and of each 16 columns two neighbours.
    #[inline(always)]
    unsafe fn store<G: Gpu, const RT: usize, const NT: usize>(
        gpu: G,
        args: &TileArgs<f32>,
        batch: u32,
        [row, column]: [u32; 2],
        accumulators: &Accumulators<RT, NT>,
    ) {
        let (g, t) = (gpu.lane_id() / 4, gpu.lane_id() % 4);
        for (r, accumulators) in accumulators.iter().enumerate() {
            for odd in 0..2 {
                let row = row + r as u32 * 8 + 2 * t + odd as u32;
                for (n, sum) in accumulators.iter().enumerate() {
                    let column = column + n as u32 * 16 + 2 * g;
                    if row < args.rows && column < args.n {
                        // SAFETY: as promised by the caller.
                        unsafe { args.output.store(gpu, row, column, batch, [sum[odd], sum[odd + 2]]) };
                    }
                }
            }
        }
    }
}

/// A lane's part of 16 columns of A, `half` of a chunk: of each row, the columns 4t to 4t+3.
///
/// # Safety
/// The stage is full.
#[inline(always)]
unsafe fn load_a<G: Gpu, S: Stage, const RT: usize>(
    gpu: G,
    lane: &Lane,
    stage: u32,
    half: usize,
) -> [[f32; 4]; RT] {
    let a = SharedPtr::<f32>::from_offset(stage * S::BYTES).add(lane.a[half]);
    let mut x = [[0.0; 4]; RT];
    for (r, x) in x.iter_mut().enumerate() {
        // SAFETY: the rows lie in the stage.
        *x = unsafe { gpu.shared_load(a.add(r as u32 * 8 * S::SLICES * S::CHUNK)) };
    }
    x
}

/// A lane's part of 8 rows of B, `quarter` of a chunk: two neighbouring rows, and of each 16 columns two neighbours.
///
/// # Safety
/// The stage is full.
#[inline(always)]
unsafe fn load_b<G: Gpu, S: Stage, const NT: usize>(
    gpu: G,
    lane: &Lane,
    stage: u32,
    quarter: u32,
) -> [[f32; 4]; NT] {
    let b = SharedPtr::<f32>::from_offset(stage * S::BYTES + S::A_BYTES)
        .add((quarter / 2 * 16 + quarter % 2 * 2) * S::B_ROW);
    let mut w = [[0.0; 4]; NT];
    for (n, w) in w.iter_mut().enumerate() {
        let from = b.add(lane.b[n % 2] + n as u32 / 2 * 32);
        // SAFETY: the rows lie in the stage.
        unsafe {
            let [u0, u1] = gpu.shared_load(from);
            let [v0, v1] = gpu.shared_load(from.add(S::B_ROW));
            *w = [u0, u1, v0, v1];
        }
    }
    w
}

/// Adds the products in TF32 of 8 columns of A, `half` of those in `x`.
#[inline(always)]
fn multiply<G: Gpu, const RT: usize, const NT: usize>(
    gpu: G,
    x: &[[f32; 4]; RT],
    w: &[[f32; 4]; NT],
    half: usize,
    accumulators: &mut Accumulators<RT, NT>,
) {
    for n in 0..NT {
        for r in 0..RT {
            accumulators[r][n] = gpu.mma_tf32(w[n], [x[r][2 * half], x[r][2 * half + 1]], accumulators[r][n]);
        }
    }
}

/// Adds what the products in TF32 of 16 columns left out.
#[inline(always)]
fn correct<G: Gpu, P: Products, const RT: usize, const NT: usize>(
    gpu: G,
    x: &[[f32; 4]; RT],
    w: [&[[f32; 4]; NT]; 2],
    accumulators: &mut Accumulators<RT, NT>,
) {
    if !P::SPLIT {
        return;
    }
    let mut whole = [[0; 2]; RT];
    let mut left = [[0; 2]; RT];
    for (r, x) in x.iter().enumerate() {
        whole[r] = [pack(gpu, x[0], x[1]), pack(gpu, x[2], x[3])];
        left[r] = [pack_lo(gpu, x[0], x[1]), pack_lo(gpu, x[2], x[3])];
    }
    for n in 0..NT {
        let (p, q) = (&w[0][n], &w[1][n]);
        let lo = [
            pack_lo(gpu, p[0], p[2]),
            pack_lo(gpu, p[1], p[3]),
            pack_lo(gpu, q[0], q[2]),
            pack_lo(gpu, q[1], q[3]),
        ];
        for r in 0..RT {
            accumulators[r][n] = gpu.mma_bf16(lo, whole[r], accumulators[r][n]);
        }
        let hi = [pack(gpu, p[0], p[2]), pack(gpu, p[1], p[3]), pack(gpu, q[0], q[2]), pack(gpu, q[1], q[3])];
        for r in 0..RT {
            accumulators[r][n] = gpu.mma_bf16(hi, left[r], accumulators[r][n]);
        }
    }
}
