//! The bits of a partial block.
use lacuna_gpu::WARP;
use lacuna_kernels::attention::{BITMAP_WORDS, bits_of_pairs};

use super::SIDE;

/// Words of a bitmap.
pub(super) const WORDS: usize = BITMAP_WORDS as usize;

/// The bits where [`place_of_bit`](lacuna_kernels::attention::place_of_bit) has them.
pub(super) type Bitmap = [u32; WORDS];

/// The bitmap of a block whose queries see the keys of these bits. A word is made of two keys each of all eights of a query, so a query is four
/// times some steps, whatever it sees.
pub(super) fn bitmap(queries: &[u64; SIDE]) -> Bitmap {
    let mut words = [0; WORDS];
    for (query, &keys) in queries.iter().enumerate() {
        let first = query / 16 * WARP as usize + query % 8 * 4;
        let keys = [keys as u32, (keys >> 32) as u32];
        for lane in 0..4 {
            words[first + lane] |= bits_of_pairs(keys, lane as u32) << (query % 16 / 8 * 2);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use lacuna_kernels::attention::place_of_bit;

    use super::*;

    #[test]
    fn each_bit_is_in_its_place() {
        for (query, key) in (0..64).flat_map(|query| (0..64).map(move |key| (query, key))) {
            let mut queries = [0; SIDE];
            queries[query as usize] = 1 << key;
            let [word, bit] = place_of_bit(query, key);
            let mut expected = [0; WORDS];
            expected[word as usize] = 1 << bit;
            assert_eq!(bitmap(&queries), expected, "query {query}, key {key}");
        }
    }

    #[test]
    fn bits_of_all_queries_are_there_together() {
        let queries: [u64; SIDE] =
            std::array::from_fn(|query| 0x9e37_79b9_7f4a_7c15_u64.rotate_left(query as u32 * 7));
        let words = bitmap(&queries);
        for (query, key) in (0..64).flat_map(|query| (0..64).map(move |key| (query, key))) {
            let [word, bit] = place_of_bit(query, key);
            let is_seen = words[word as usize] >> bit & 1 != 0;
            assert_eq!(is_seen, queries[query as usize] >> key & 1 != 0, "query {query}, key {key}");
        }
    }
}
