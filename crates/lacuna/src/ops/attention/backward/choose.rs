//! Which kernels suit a backward pass: a pure function.
use lacuna_kernels::attention::{BLOCK, Scheme, Tile};
use lacuna_kernels::{Entry, ValueType, entries};

use super::super::choose::Problem;
use super::super::{BlockCounts, TilingCounts};
use crate::op::MAX_GRID_YZ;

/// Whether a kernel works out gradients of K and V, or if not `owns_keys`, of Q.
fn is_of(scheme: Scheme, owns_keys: bool) -> bool {
    scheme == Scheme::BackwardTile { owns_keys } || scheme == Scheme::BackwardMmaTile { owns_keys }
}

/// The kernels that take so many rows of what they own, K and V or Q, that of least modelled time first; but if `by_warps`, those by warps come before
/// those by warpgroups. `blocks` are those of the mask, transposed where keys are owned; `heads` are those of what is owned, and each entry is
/// taken `times` times.
pub(super) fn choose(
    problem: &Problem,
    (owns_keys, by_warps): (bool, bool),
    (rows, heads, times): (usize, usize, usize),
    blocks: &BlockCounts,
) -> Vec<&'static Entry<Tile>> {
    let fits = |entry: &&'static Entry<Tile>| {
        let Tile { value, vector, dimension, block_rows, scheme, .. } = entry.tile;
        is_of(scheme, owns_keys)
            && (value, vector <= problem.vector) == (problem.value, true)
            && problem.dim.is_multiple_of(vector as usize)
            && problem.has_positive_scale
            && problem.dim <= dimension as usize
            && rows.div_ceil(block_rows as usize) <= MAX_GRID_YZ
            && entry.runs_on(problem.sm)
    };
    let cost = |entry: &&'static Entry<Tile>| {
        let groups = entry.tile.block_rows / BLOCK;
        let at_once = entry.bounds.min_blocks.max(1);
        let ([shared, of_group], of_longest) = match (is_by_warps(entry), owns_keys, at_once) {
            (false, false, 2) => (ENTRY_OF_QUERIES_BY_TWO, LONGEST_BY_TWO),
            (false, true, 2) => (ENTRY_OF_KEYS_BY_TWO, LONGEST_BY_TWO),
            (false, false, _) => (ENTRY_OF_QUERIES, 1.0),
            (false, true, _) => (ENTRY_OF_KEYS, 1.0),
            (true, false, _) => (MMA_ENTRY_OF_QUERIES, MMA_LONGEST_OF_QUERIES[groups as usize - 1]),
            (true, true, _) => (MMA_ENTRY_OF_KEYS, MMA_LONGEST_OF_KEYS),
        };
        let TilingCounts { tiles, entries, longest } = blocks.tilings[groups as usize - 1];
        // Rows of 128 elements have twice the products, and `f32` three times.
        let elements = f64::from(entry.tile.dimension) / 64.0
            * if entry.tile.value == ValueType::F32 { 3.0 } else { 1.0 };
        let entry = times as f64 * elements * (shared + of_group * f64::from(groups));
        let all = entries as f64 * entry + tiles as f64 * TILE;
        let longest = longest as f64 * entry + TILE;
        // As forward: the last wave of tiles that are alike is waited for; where they differ, short ones fill it.
        let (heads, multiprocessors) = (heads.max(1) as f64, f64::from(problem.multiprocessors));
        let at_once = f64::from(at_once);
        let waves = (tiles as f64 * heads / (multiprocessors * at_once)).ceil();
        let alike = 2.0 * all / (tiles as f64).max(1.0) - longest;
        all.max((of_longest * longest).max(waves * at_once * alike) * multiprocessors / heads)
    };
    let mut legal: Vec<_> = entries::attention().iter().filter(fits).collect();
    legal.sort_by(|a, b| {
        let is_later = |entry| by_warps && !is_by_warps(entry);
        is_later(a).cmp(&is_later(b)).then(cost(a).total_cmp(&cost(b)))
    });
    legal
}

fn is_by_warps(entry: &Entry<Tile>) -> bool {
    matches!(entry.tile.scheme, Scheme::BackwardMmaTile { .. })
}

/// Cycles of a multiprocessor for an entry, and for each of its groups, of rows of 64 elements; and for a tile. They are from the times
/// of causal masks of 4,096 and 12,288 tokens, 8 heads, on an H100 at 1.755 GHz (docs/log/attention.md, "Backward by blocks").
const ENTRY_OF_QUERIES: [f64; 2] = [428.0, 575.0];
const ENTRY_OF_KEYS: [f64; 2] = [738.0, 630.0];
const TILE: f64 = 3000.0;
/// The same where a multiprocessor has two thread blocks. An entry of the longest tile takes `LONGEST_BY_TWO` times as long: in the end the tile
/// has the multiprocessor to itself, but one warpgroup alone does not fill it. Set by hand, so that the fastest is chosen of what was measured on an
/// H200 (there, "Tiles of 64 rows, by twos").
const ENTRY_OF_QUERIES_BY_TWO: [f64; 2] = [0.0, 800.0];
const ENTRY_OF_KEYS_BY_TWO: [f64; 2] = [0.0, 1080.0];
const LONGEST_BY_TWO: f64 = 1.3;
/// The same of entries by warps, on an H200 (there, "Gradients by warps"): two groups wait for each other, and take more than twice as long as one.
const MMA_ENTRY_OF_QUERIES: [f64; 2] = [-30.0, 1500.0];
const MMA_ENTRY_OF_KEYS: [f64; 2] = [0.0, 2000.0];
/// How many times as long an entry of the longest tile takes, for Q by tiles of one group and of two: thread blocks of one group share a
/// multiprocessor, by twos or threes (there, "Two tiles a multiprocessor, and gradients of few tiles").
const MMA_LONGEST_OF_QUERIES: [f64; 2] = [2.6, 1.15];
const MMA_LONGEST_OF_KEYS: f64 = 2.0;

#[cfg(test)]
mod tests {
    use lacuna_kernels::{IndexType, ValueType};

    use super::*;

    /// The first choice for a causal mask of so many tokens, 8 heads, on an H200.
    fn chosen(tokens: usize, dim: usize, owns_keys: bool) -> Option<&'static str> {
        legal((tokens, dim), owns_keys, 90, false).first().copied()
    }

    fn legal(shape: (usize, usize), owns_keys: bool, sm: u32, by_warps: bool) -> Vec<&'static str> {
        legal_of(ValueType::F16, shape, (owns_keys, sm, by_warps))
    }

    fn legal_of(
        value: ValueType,
        (tokens, dim): (usize, usize),
        (owns_keys, sm, by_warps): (bool, u32, bool),
    ) -> Vec<&'static str> {
        let strips = tokens / 64;
        let tiling = |groups: usize| {
            let tiles = strips.div_ceil(groups);
            let entries = (1..=tiles).map(|tile| (tile * groups).min(strips)).sum();
            TilingCounts { tiles, entries, longest: strips }
        };
        let blocks = BlockCounts { tilings: [1, 2, 3].map(tiling) };
        let problem = Problem::new([tokens, tokens], tokens * tokens / 2, dim, value, IndexType::U32);
        let problem = Problem { sm, ..problem };
        let legal = choose(&problem, (owns_keys, by_warps), (tokens, 8, 1), &blocks);
        legal.into_iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn many_tokens_take_large_tiles() {
        assert_eq!(chosen(4096, 64, false), Some("attention_f16_wgmma_dq_l32_g2"));
        assert_eq!(chosen(12_288, 64, false), Some("attention_f16_wgmma_dq_l32_g3"));
        assert_eq!(chosen(4096, 64, true), Some("attention_f16_wgmma_dkv_l32_g2"));
        assert_eq!(chosen(12_288, 64, true), Some("attention_f16_wgmma_dkv_l32_g3"));
    }

    #[test]
    fn tiles_that_are_alike_are_to_fill_their_waves() {
        // A band of 256 keys in 4,096 tokens: 22 tiles of 192 queries are 176 of 8 heads, 1.3 waves; 32 tiles of 128 are 1.9.
        let tiling = |groups: usize| {
            let (tiles, longest) = (64_usize.div_ceil(groups), groups + 4);
            TilingCounts { tiles, entries: tiles * longest, longest }
        };
        let blocks = BlockCounts { tilings: [1, 2, 3].map(tiling) };
        let problem = Problem::new([4096; 2], 4096 * 256, 64, ValueType::F16, IndexType::U32);
        for owns_keys in [false, true] {
            let first = choose(&problem, (owns_keys, false), (4096, 8, 1), &blocks)[0];
            assert_eq!(first.tile.block_rows, 128, "{}", first.name);
        }
    }

    #[test]
    fn rows_of_up_to_256_elements_have_kernels() {
        assert_eq!(chosen(4096, 72, false), Some("attention_f16_wgmma_dq_l64_g2"));
        assert_eq!(chosen(4096, 128, true), Some("attention_f16_wgmma_dkv_l64_g1"));
        assert_eq!(chosen(4096, 136, false), Some("attention_f16_wgmma_dq_l128_g1"));
        assert_eq!(chosen(4096, 256, true), Some("attention_f16_wgmma_dkv_l128_g1"));
        assert_eq!(chosen(4096, 264, true), None);
        // More tiles of 64 keys than a grid has rows.
        assert_eq!(chosen(64 * 65_536, 128, true), None);
    }

    #[test]
    fn few_tokens_have_small_tiles() {
        for value in [ValueType::F16, ValueType::F32] {
            for (tokens, groups) in [(1024, 1), (2048, 1), (4096, 2)] {
                let chosen = |owns_keys| legal_of(value, (tokens, 64), (owns_keys, 90, false))[0];
                assert_eq!(
                    chosen(false),
                    format!("attention_{value}_wgmma_dq_l32_g{groups}"),
                    "{tokens} tokens"
                );
                assert_eq!(
                    chosen(true),
                    format!("attention_{value}_wgmma_dkv_l32_g{groups}"),
                    "{tokens} tokens"
                );
            }
        }
        assert_eq!(
            legal_of(ValueType::F32, (12_288, 64), (false, 90, false))[0],
            "attention_f32_wgmma_dq_l32_g2"
        );
    }

    #[test]
    fn blocks_that_neighbours_do_not_share_have_small_tiles() {
        // Of 192 key blocks a strip of 64 queries sees 20, each strip others: larger tiles would work on what is not seen.
        let tiling = |groups: usize| {
            let tiles = 192_usize.div_ceil(groups);
            TilingCounts { tiles, entries: 192 * 20, longest: 20 * groups }
        };
        let blocks = BlockCounts { tilings: [1, 2, 3].map(tiling) };
        let problem = Problem::new([12_288; 2], 192 * 20 * 4096, 64, ValueType::F16, IndexType::U32);
        for owns_keys in [false, true] {
            let first = choose(&problem, (owns_keys, false), (12_288, 8, 1), &blocks)[0];
            assert_eq!(first.tile.block_rows, 64, "{}", first.name);
        }
    }

    #[test]
    fn gpus_without_warpgroups_have_kernels_by_warps() {
        let of_queries = legal((4096, 64), false, 80, false);
        assert_eq!(of_queries[..2], ["attention_f16_mma_dq_l32_g2", "attention_f16_mma_dq_l32_g1"]);
        assert_eq!(legal((12_288, 64), false, 86, false)[0], "attention_f16_mma_dq_l32_g1");
        assert_eq!(legal((4096, 128), true, 120, false)[0], "attention_f16_mma_dkv_l64_g1");
        assert_eq!(legal((4096, 136), true, 80, false), ["attention_f16_mma_dkv_l128_g1"]);
        assert!(legal((4096, 264), true, 80, false).is_empty());
        assert!(legal((4096, 64), true, 75, false).is_empty());
        let of_f32 = |dim, owns_keys| legal_of(ValueType::F32, (4096, dim), (owns_keys, 86, false));
        assert_eq!(of_f32(64, false), ["attention_f32_mma_dq_l32_g1", "attention_f32_mma_dq_l64_g1"]);
        assert_eq!(of_f32(100, true), ["attention_f32_mma_dkv_l64_g1"]);
        assert!(of_f32(132, true).is_empty());
    }

    #[test]
    fn kernels_by_warps_come_first_where_they_are_asked_for() {
        let is_by_warps = |name: &&str| name.contains("_mma_d");
        let of_keys = legal((4096, 64), true, 90, true);
        assert!(is_by_warps(&of_keys[0]), "{of_keys:?}");
        let by_warps = of_keys.iter().filter(|name| is_by_warps(name)).count();
        assert!(of_keys[by_warps..].iter().all(|name| !is_by_warps(name)), "{of_keys:?}");
        assert!(!is_by_warps(&legal((4096, 64), true, 90, false)[0]));
    }
}
