//! Sets of keys as ranges: they ascend, are not empty, and have gaps between them.
use std::ops::Range;

/// Some ranges of keys.
pub(in super::super) type Ranges = Vec<Range<u32>>;

/// Adds columns, which ascend, to a list of ranges.
pub(in super::super) fn push_columns(columns: impl IntoIterator<Item = u32>, ranges: &mut Ranges) {
    let first = ranges.len();
    for column in columns {
        match ranges[first..].last_mut() {
            Some(last) if last.end == column => last.end += 1,
            _ => ranges.push(column..column + 1),
        }
    }
}

/// Puts the union of two sets, `ranges[first..second]` and `ranges[second..]`, in their place.
pub(super) fn unite(ranges: &mut Ranges, first: usize, second: usize) {
    let end = ranges.len();
    let (mut a, mut b) = (first, second);
    while a < second || b < end {
        let is_of_first = b == end || a < second && ranges[a].start <= ranges[b].start;
        let at = if is_of_first { &mut a } else { &mut b };
        let next = ranges[*at].clone();
        *at += 1;
        match ranges[end..].last_mut() {
            Some(last) if next.start <= last.end => last.end = last.end.max(next.end),
            _ => ranges.push(next),
        }
    }
    ranges.drain(first..end);
}

/// Puts the intersection of two sets, `ranges[first..second]` and `ranges[second..]`, in their place.
pub(super) fn intersect(ranges: &mut Ranges, first: usize, second: usize) {
    let end = ranges.len();
    let (mut a, mut b) = (first, second);
    while a < second && b < end {
        let (start, stop) = (ranges[a].start.max(ranges[b].start), ranges[a].end.min(ranges[b].end));
        if start < stop {
            ranges.push(start..stop);
        }
        if ranges[a].end == stop { a += 1 } else { b += 1 }
    }
    ranges.drain(first..end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(list: &[[u32; 2]]) -> Ranges {
        list.iter().map(|&[start, end]| start..end).collect()
    }

    #[test]
    fn neighbouring_columns_are_one_range() {
        let mut all = ranges(&[[0, 7]]);
        push_columns([7, 8, 10, 11, 12, 20], &mut all);
        assert_eq!(all, ranges(&[[0, 7], [7, 9], [10, 13], [20, 21]]));
    }

    #[test]
    fn sets_are_joined_and_what_was_there_before_stays() {
        let a = [[2, 5], [9, 12], [20, 30]];
        let b = [[0, 1], [5, 7], [11, 22], [29, 31]];
        for (a, b) in [(&a[..], &b[..]), (&b[..], &a[..])] {
            let both = [&[[90, 99]], a, b].concat();
            let (mut union, mut intersection) = (ranges(&both), ranges(&both));
            unite(&mut union, 1, 1 + a.len());
            assert_eq!(union, ranges(&[[90, 99], [0, 1], [2, 7], [9, 31]]));
            intersect(&mut intersection, 1, 1 + a.len());
            assert_eq!(intersection, ranges(&[[90, 99], [11, 12], [20, 22], [29, 30]]));
        }
        let (mut union, mut intersection) = (ranges(&a), ranges(&a));
        unite(&mut union, 0, 3);
        intersect(&mut intersection, 0, 3);
        assert_eq!((union, intersection), (ranges(&a), vec![]));
    }
}
