//! What the device finds of patterns, beside what the host lists of them.
use std::sync::Arc;

use lacuna_kernels::attention::WINDOW_BLOCKS;
use lacuna_matrix::{Pattern, generate};

use super::super::tests::lists;
use super::*;
use crate::Device;
use crate::ops::attention::mask::{Mask, tests::examples};
use crate::pattern::RowOrder;

fn pattern<I: Index>(device: &Device, host: &Arc<Pattern>) -> DevicePattern<I> {
    DevicePattern::new(device, host, RowOrder::default()).unwrap()
}

/// Holds what the device finds against the host's blocks of the same pattern.
fn check<I: Index>(device: &Device, name: &str, host: Pattern) {
    let host = Arc::new(host);
    let expected = MaskBlocks::new(device, &Mask::from_pattern(Arc::clone(&host))).unwrap();
    let pattern = pattern::<I>(device, &host);
    let entries = pattern.windows().unwrap().map(|windows| windows.query_tile_entries());
    assert_eq!(entries, Some(pattern.query_tiles().unwrap().entries()), "{name}");
    let found = pattern.mask_blocks().unwrap();
    let sizes = |blocks: &MaskBlocks| (blocks.queries(), blocks.keys(), blocks.elements(), *blocks.counts());
    assert_eq!(sizes(found), sizes(&expected), "{name}");
    assert_eq!(lists(found).unwrap(), lists(&expected).unwrap(), "{name}");
    let blocks = expected.counts().tilings[0].entries;
    assert_eq!(pattern.has_dense_blocks().unwrap(), host.nnz() >= FEWEST * blocks, "{name}");
}

/// Keys of two windows, and some more.
const KEYS: usize = 2 * WINDOW_BLOCKS as usize * SIDE + 100;

#[test]
fn blocks_of_patterns_are_those_that_the_host_lists() {
    let device = Device::simulator();
    for (name, mask, _) in examples() {
        check::<u32>(&device, name, mask.to_pattern().unwrap());
    }
    // Rows of all lengths, the last strip of six queries; keys at the ends of windows.
    let sparse = generate::uniform(70, KEYS, 0.97, 3).unwrap();
    check::<u16>(&device, "sparse", sparse);
    let ends = |row: u32| vec![row, 2047, 2048, 4095, KEYS as u32 - 1];
    let rows: Vec<Vec<u32>> = (0..66).map(|row| if row == 5 { vec![] } else { ends(row) }).collect();
    check::<u32>(&device, "ends of windows", of_rows(&rows));
    // Whole blocks, of which one row lacks the last key of the second.
    let whole = |row: u32| (1984..2112).filter(|&key| (row, key) != (40, 2111)).collect();
    check::<u32>(&device, "whole", of_rows(&(0..130).map(whole).collect::<Vec<_>>()));
    check::<u32>(&device, "no keys seen", of_rows(&vec![vec![]; 65]));
    check::<u32>(&device, "no queries", of_rows(&[]));
    check::<u32>(&device, "no keys", Pattern::new(3, 0, vec![0; 4], vec![]).unwrap());
}

fn of_rows(rows: &[Vec<u32>]) -> Pattern {
    Pattern::of_rows(KEYS, rows).unwrap()
}

#[test]
fn the_host_lists_patterns_whose_windows_would_be_too_many() {
    let device = Device::simulator();
    // A nonzero each for 20,000 strips of 1,000 windows.
    let (rows, cols) = (20_000 * SIDE, 1000 * 2048);
    let offsets = (0..=rows as u32).map(|row| row.div_ceil(SIDE as u32)).collect();
    let host = Arc::new(Pattern::new(rows, cols, offsets, vec![7; 20_000]).unwrap());
    let pattern = pattern::<u32>(&device, &host);
    assert!(pattern.windows().unwrap().is_none());
    assert!(!pattern.has_dense_blocks().unwrap());
    assert_eq!(pattern.mask_blocks().unwrap().counts().tilings[0].entries, 20_000);
}
