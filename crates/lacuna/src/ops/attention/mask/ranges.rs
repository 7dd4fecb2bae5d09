//! Sets of keys as ranges: they ascend, are not empty, and have gaps between them.
use std::ops::Range;

/// Some ranges of keys.
pub(super) type Ranges = Vec<Range<u32>>;

/// Adds columns, which ascend, to a list of ranges.
pub(super) fn push_columns(columns: impl IntoIterator<Item = u32>, ranges: &mut Ranges) {
    let first = ranges.len();
    for column in columns {
        match ranges[first..].last_mut() {
            Some(last) if last.end == column => last.end += 1,
            _ => ranges.push(column..column + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_columns_are_one_range() {
        let mut all = vec![0..2, 3..7];
        push_columns([7, 8, 10, 11, 12, 20], &mut all);
        assert_eq!(all, [0..2, 3..7, 7..9, 10..13, 20..21]);
    }
}
