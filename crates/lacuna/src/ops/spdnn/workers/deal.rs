//! Which worker has which samples.
use std::ops::Range;

use lacuna_kernels::spdnn::TILE_ROWS;

/// Tiles of a block at most, and blocks of a worker at least.
const MOST_TILES: usize = 8;
const LEAST_BLOCKS: usize = 16;

/// The samples of a worker: blocks of neighbouring samples, ascending, and none of them empty.
pub(super) type Blocks = Vec<Range<usize>>;

/// Deals blocks of samples to workers of these shares, in turn: how many samples are left after a layer depends on what they are,
/// and neighbours are alike.
pub(super) fn deal(rows: usize, shares: &[f64]) -> Vec<Blocks> {
    let tiles = rows.div_ceil(TILE_ROWS as usize);
    let block = (tiles / (shares.len() * LEAST_BLOCKS)).clamp(1, MOST_TILES) * TILE_ROWS as usize;
    let mut dealt = vec![Blocks::new(); shares.len()];
    let mut counts = vec![0.0; shares.len()];
    for first in (0..rows).step_by(block) {
        // The worker that would be least ahead of its share.
        let after = |worker: usize| (counts[worker] + 1.0) / shares[worker];
        let next = (0..shares.len()).min_by(|&a, &b| after(a).total_cmp(&after(b)));
        let next = next.expect("there is a worker");
        counts[next] += 1.0;
        dealt[next].push(first..(first + block).min(rows));
    }
    dealt
}

/// The sample's number among all, of the one that is `row` among those of a worker.
pub(super) fn number(blocks: &Blocks, row: usize) -> usize {
    let block = blocks.first().map_or(1, Range::len);
    blocks[row / block].start + row % block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sample_is_dealt_once_and_is_found_again() {
        for (rows, workers) in [(0, 3), (1, 2), (33, 4), (1000, 3), (60_000, 2)] {
            let dealt = deal(rows, &vec![1.0; workers]);
            let mut numbers = Vec::new();
            for blocks in &dealt {
                let own: usize = blocks.iter().map(ExactSizeIterator::len).sum();
                numbers.extend((0..own).map(|row| number(blocks, row)));
            }
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..rows), "{rows} samples, {workers} workers");
        }
    }

    #[test]
    fn shares_are_kept_everywhere() {
        // 40 blocks.
        let dealt = deal(256 * 40, &[1.0, 3.0]);
        let samples = |blocks: &Blocks| blocks.iter().map(ExactSizeIterator::len).sum::<usize>();
        assert_eq!(dealt.iter().map(samples).collect::<Vec<_>>(), [2560, 7680]);
        let half: Vec<_> =
            dealt.iter().map(|blocks| blocks.iter().filter(|block| block.start < 5120).count()).collect();
        assert_eq!(half[0] * 3, half[1]);
    }
}
