//! Blocks and tiles of small masks.
use lacuna_kernels::attention::{BITMAP_WORDS, place_of_bit};

use super::super::tiles::{Tiles, TilingCounts};
use super::*;
use crate::ops::attention::mask::{Mask, SIDE, tests::examples};

const EMPTY: u32 = BlockMask::Empty.to_word();
const FULL: u32 = BlockMask::Full.to_word();

/// The blocks of rows of ascending columns.
fn strips(rows: &[Vec<u32>], keys: usize) -> Strips {
    let rows: Vec<&[u32]> = rows.iter().map(|row| &row[..]).collect();
    Strips::list([rows.len(), keys], |queries| Strip::of_columns(&rows[queries])).unwrap()
}

#[test]
fn blocks_are_empty_full_or_partial() {
    // 70 queries, 130 keys: all see the first 64; of the others the first query sees the last.
    let mut rows = vec![(0..64).collect::<Vec<u32>>(); 70];
    rows[0].push(129);
    let strips = strips(&rows, 130);
    assert_eq!(strips.strips, [vec![[0, FULL], [2, 0]], vec![[0, FULL]]]);
    let [word, bit] = place_of_bit(0, 1);
    let mut bitmap = [0; BITMAP_WORDS as usize];
    bitmap[word as usize] = 1 << bit;
    assert_eq!(strips.bitmaps, [bitmap]);
    let Tiles { records, entries, counts } = strips.tiles(1);
    assert_eq!(entries, [[0, FULL, EMPTY, EMPTY], [2, 0, EMPTY, EMPTY], [0, FULL, EMPTY, EMPTY]]);
    assert_eq!(records, [[0, 0, 2, 0], [64, 2, 3, 0]]);
    assert_eq!(counts, TilingCounts { tiles: 2, entries: 3, longest: 2 });
    let Tiles { records, entries, counts } = strips.tiles(3);
    assert_eq!(entries, [[0, FULL, FULL, EMPTY], [2, 0, EMPTY, EMPTY]]);
    assert_eq!(records, [[0, 0, 2, 0]]);
    assert_eq!(counts, TilingCounts { tiles: 1, entries: 2, longest: 2 });
}

#[test]
fn the_last_keys_are_never_a_full_block() {
    let strips = strips(&vec![(0..100).collect::<Vec<u32>>(); 3], 100);
    assert_eq!(strips.strips, [[[0, FULL], [1, 0]]]);
    let seen: u32 = strips.bitmaps.as_flattened().iter().map(|word| word.count_ones()).sum();
    assert_eq!(seen, 3 * 36);
}

#[test]
fn long_tiles_come_first() {
    // Strip 2 sees three blocks, the others one.
    let rows: Vec<Vec<u32>> =
        (0..192).map(|row| if row < 128 { vec![5] } else { vec![5, 70, 150] }).collect();
    let Tiles { records, .. } = strips(&rows, 192).tiles(1);
    assert_eq!(records.iter().map(|record| record[0]).collect::<Vec<_>>(), [128, 0, 64]);
}

#[test]
fn equal_bitmaps_are_one() {
    let causal = strips(&(0..200).map(|query| (0..=query).collect()).collect::<Vec<Vec<u32>>>(), 200);
    assert_eq!(causal.elements, 200 * 201 / 2);
    let last: Vec<_> = causal.strips.iter().map(|strip| *strip.last().unwrap()).collect();
    // The last strip has eight queries.
    assert_eq!(last, [[0, 0], [1, 0], [2, 0], [3, 1]]);
    assert_eq!(causal.bitmaps.len(), 2);
}

#[test]
fn rules_and_their_patterns_have_the_same_blocks() {
    for (name, mask, _) in examples() {
        let of = |mask: &Mask| Strips::list([mask.queries(), mask.keys()], |queries| mask.strip(queries));
        let pattern = mask.to_pattern().unwrap();
        let elements = pattern.nnz() as u64;
        let (by_rule, by_pattern) = (of(&mask).unwrap(), of(&Mask::from_pattern(pattern)).unwrap());
        assert_eq!(by_rule.elements, elements, "{name}");
        assert_eq!(by_rule.strips, by_pattern.strips, "{name}");
        assert_eq!(by_rule.bitmaps, by_pattern.bitmaps, "{name}");
        // And each bit is there: of partial blocks, and of full ones those of queries that are there.
        let bits = by_rule.strips.iter().zip((0..mask.queries()).step_by(SIDE)).flat_map(|(strip, first)| {
            let full = SIDE * SIDE.min(mask.queries() - first);
            let bitmaps = &by_rule.bitmaps;
            strip.iter().map(move |&[_, mask]| match bitmaps.get(mask as usize) {
                Some(bitmap) => bitmap.iter().map(|word| word.count_ones() as usize).sum(),
                None => full,
            })
        });
        assert_eq!(bits.sum::<usize>() as u64, elements, "{name}");
    }
}
