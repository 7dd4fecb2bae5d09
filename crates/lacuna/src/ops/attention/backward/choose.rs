//! Which kernels suit a backward pass: a pure function.
use lacuna_kernels::attention::{BLOCK, Scheme, Tile};
use lacuna_kernels::{Entry, ValueType, entries};

use super::super::choose::Problem;
use super::super::{BlockCounts, TilingCounts};
use crate::op::MAX_GRID_YZ;

/// The kernels that take so many rows of what they own, K and V or Q, that of least modelled time first. `blocks` are those of the mask, transposed
/// where keys are owned; `heads` are those of what is owned, and each entry is taken `times` times.
pub(super) fn choose(
    problem: &Problem,
    owns_keys: bool,
    (rows, heads, times): (usize, usize, usize),
    blocks: &BlockCounts,
) -> Vec<&'static Entry<Tile>> {
    let fits = |entry: &&'static Entry<Tile>| {
        let Tile { value, vector, dimension, block_rows, scheme, .. } = entry.tile;
        scheme == Scheme::BackwardTile { owns_keys }
            && (value, vector <= problem.vector) == (problem.value, true)
            && problem.dim.is_multiple_of(vector as usize)
            && problem.has_positive_scale
            && problem.dim <= dimension as usize
            && rows.div_ceil(block_rows as usize) <= MAX_GRID_YZ
            && entry.runs_on(problem.sm)
    };
    let cost = |entry: &&'static Entry<Tile>| {
        let groups = entry.tile.block_rows / BLOCK;
        let [shared, of_group] = if owns_keys { ENTRY_OF_KEYS } else { ENTRY_OF_QUERIES };
        let TilingCounts { tiles, entries, longest } = blocks.tilings[groups as usize - 1];
        // Rows of 128 elements have twice the products, and `f32` three times.
        let elements = f64::from(entry.tile.dimension) / 64.0
            * if entry.tile.value == ValueType::F32 { 3.0 } else { 1.0 };
        let entry = times as f64 * elements * (shared + of_group * f64::from(groups));
        let all = entries as f64 * entry + tiles as f64 * TILE;
        let longest = longest as f64 * entry + TILE;
        all.max(longest * f64::from(problem.multiprocessors) / heads.max(1) as f64)
    };
    let mut legal: Vec<_> = entries::attention().iter().filter(fits).collect();
    legal.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    legal
}

/// Cycles of a multiprocessor for an entry, and for each of its groups, of rows of 64 elements; and for a tile. They are from the times
/// of causal masks of 4,096 and 12,288 tokens, 8 heads, on an H100 at 1.755 GHz (docs/log/attention.md, "Backward by blocks").
const ENTRY_OF_QUERIES: [f64; 2] = [428.0, 575.0];
const ENTRY_OF_KEYS: [f64; 2] = [738.0, 630.0];
const TILE: f64 = 3000.0;

#[cfg(test)]
mod tests {
    use lacuna_kernels::{IndexType, ValueType};

    use super::*;

    /// A causal mask of so many tokens, 8 heads.
    fn chosen(tokens: usize, dim: usize, owns_keys: bool) -> Option<&'static str> {
        let strips = tokens / 64;
        let tiling = |groups: usize| {
            let tiles = strips.div_ceil(groups);
            let entries = (1..=tiles).map(|tile| (tile * groups).min(strips)).sum();
            TilingCounts { tiles, entries, longest: strips }
        };
        let blocks = BlockCounts { tilings: [1, 2, 3].map(tiling) };
        let problem =
            Problem::new([tokens, tokens], tokens * tokens / 2, dim, ValueType::F16, IndexType::U32);
        choose(&problem, owns_keys, (tokens, 8, 1), &blocks).first().map(|entry| entry.name)
    }

    #[test]
    fn many_tokens_take_large_tiles() {
        assert_eq!(chosen(4096, 64, false), Some("attention_f16_wgmma_dq_l32_g2"));
        assert_eq!(chosen(12_288, 64, false), Some("attention_f16_wgmma_dq_l32_g3"));
        assert_eq!(chosen(4096, 64, true), Some("attention_f16_wgmma_dkv_l32_g2"));
        assert_eq!(chosen(12_288, 64, true), Some("attention_f16_wgmma_dkv_l32_g3"));
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
}
