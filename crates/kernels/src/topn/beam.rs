//! A step of a beam search.
use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu};

use super::key::{index_of, key, value_of};
use super::sort::sort;
use super::{Method, Tile, block};
use crate::common::strided;
use crate::{Bounds, Kernel};

/// The next beams of each sentence, from the best continuations of each of its beams: `THREADS` threads have a sentence, and room
/// for `KEYS` continuations. The score of one is its beam's plus the logarithm of its token's probability. A finished beam has one:
/// the end of the sentence, at its own score.
#[derive(Debug)]
pub struct Beam<const THREADS: u32, const KEYS: u32>;

/// What [`Beam`] takes. The grid is a block for each sentence, along x.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BeamArgs {
    /// `n` logarithms of probabilities for each beam of each sentence.
    pub log_probabilities: GlobalPtr<f32>,
    /// The tokens that they belong to.
    pub continuations: GlobalPtr<u32>,
    /// Scores of the beams; replaced by those of the next ones.
    pub scores: GlobalMut<f32>,
    /// 1 for each beam that is finished, else 0; replaced likewise.
    pub finished: GlobalMut<u32>,
    /// Of which beam of the sentence each of the next ones is a continuation. Written.
    pub parents: GlobalMut<u32>,
    /// The number of that beam among those of all sentences. Written.
    pub rows: GlobalMut<u32>,
    /// Its last token. Written.
    pub tokens: GlobalMut<u32>,
    /// Beams of a sentence: not more than threads.
    pub beams: u32,
    /// Continuations of a beam, at least one; beams times these are at most as many as there is room for.
    pub n: u32,
    /// The token that ends a sentence.
    pub end: u32,
}

impl<const THREADS: u32, const KEYS: u32> Kernel for Beam<THREADS, KEYS> {
    type Args = BeamArgs;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(KEYS.is_power_of_two() && KEYS >= 32, "the keys fill runs of a warp, and pairs of runs");
        Tile { method: Method::Beam, value: None, capacity: KEYS, most: THREADS }
    };
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = block::shared_bytes(2 * KEYS);
    const BOUNDS: Bounds = Bounds { max_threads: THREADS, min_blocks: 1 };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: BeamArgs) {
        let thread = gpu.thread_idx_x();
        let first_row = gpu.block_idx_x() * args.beams;
        let first = first_row as usize;
        let continuations = args.continuations.add(first * args.n as usize);
        let log_probabilities = args.log_probabilities.add(first * args.n as usize);
        let (scores, finished) = (args.scores.add(first), args.finished.add(first));
        let count = args.beams * args.n;
        // SAFETY: the sentence's beams are this block's; all of it reads them before the last barrier, and writes after it.
        unsafe {
            strided(thread, count, THREADS, |at| {
                let parent = (at / args.n) as usize;
                let [is_finished] = gpu.load(finished.add(parent));
                let [score] = gpu.load(scores.add(parent));
                let candidate = if is_finished == 0 {
                    let [log_probability] = gpu.load_readonly(log_probabilities.add(at as usize));
                    key(score + log_probability, at)
                } else if at.is_multiple_of(args.n) {
                    key(score, at)
                } else {
                    // There is none: less than all, but for what the sort fills up with, and distinct.
                    u64::from(4 * KEYS + at)
                };
                gpu.shared_store(block::keys().add(at), [candidate]);
            });
            gpu.sync_threads();
            let keys = sort::<G, THREADS>(gpu, block::keys(), block::keys().add(KEYS), count);
            let is_beam = thread < args.beams;
            let (mut score, mut parent, mut token, mut ends) = (0.0, 0, 0, false);
            if is_beam {
                let [best] = gpu.shared_load(keys.add(thread));
                let at = index_of(best);
                (score, parent) = (value_of(best), at / args.n);
                let [was_finished] = gpu.load(finished.add(parent as usize));
                [token] = gpu.load_readonly(continuations.add(at as usize));
                token = if was_finished == 0 { token } else { args.end };
                ends = token == args.end;
            }
            gpu.sync_threads();
            if is_beam {
                let own = thread as usize;
                gpu.store(scores.add(own), [score]);
                gpu.store(finished.add(own), [u32::from(ends)]);
                gpu.store(args.parents.add(first + own), [parent]);
                gpu.store(args.rows.add(first + own), [first_row + parent]);
                gpu.store(args.tokens.add(first + own), [token]);
            }
        }
    }
}
