//! Searches for a threshold that enough values reach, and not many more.

/// A threshold from `low` on, up to `high`, that at least `n` reach, as `low` is known to be. It is found by halving, with
/// `first` as the first to try, and taken as soon as at most `enough` reach it; otherwise it is the highest. `count` says how
/// many reach a threshold, and is told the step.
#[inline(always)]
pub(super) fn between(
    mut low: u32,
    mut high: u32,
    first: u32,
    n: u32,
    enough: u32,
    mut count: impl FnMut(u32, u32) -> u32,
) -> u32 {
    let (mut middle, mut step) = (first, 0);
    while low < high {
        let reach = count(middle, step);
        if reach < n {
            high = middle - 1;
        } else {
            low = middle;
            if reach <= enough {
                break;
            }
        }
        middle = high - high.saturating_sub(low) / 2;
        step += 1;
    }
    low
}

/// A threshold from `low` on that at least `n` keys reach, as `low` is known to be, and at most `enough`, found by halving
/// all thresholds. No two keys are equal, so that there is such a threshold for every `enough` from `n` on.
#[inline(always)]
pub(super) fn of_keys(mut low: u64, n: u32, enough: u32, mut count: impl FnMut(u64, u32) -> u32) -> u64 {
    // Thresholds from `low` on, `more` of them beyond it: fewer registers than the two ends.
    let (mut more, mut step) = (u64::MAX - low, 0);
    while more > 0 {
        let half = more - more / 2;
        let reach = count(low + half, step);
        if reach < n {
            more = half - 1;
        } else {
            low += half;
            more -= half;
            if reach <= enough {
                break;
            }
        }
        step ^= 1;
    }
    low
}

#[cfg(test)]
mod tests {
    use super::super::key::LEAST;
    use super::*;

    #[test]
    fn thresholds_are_reached_by_as_many_as_asked_for() {
        let values: [u32; 1000] = core::array::from_fn(|i| (i as u32).wrapping_mul(2_654_435_761));
        let reach = |threshold: u32| values.iter().filter(|&&value| value >= threshold).count() as u32;
        let (low, high) = (*values.iter().min().unwrap(), *values.iter().max().unwrap());
        for (n, enough) in [(1, 1), (10, 10), (10, 20), (100, 150), (1000, 1000)] {
            for first in [high, low + (high - low) / 2, low + 1] {
                let threshold = between(low, high, first, n, enough, |threshold, _| reach(threshold));
                assert!((n..=enough).contains(&reach(threshold)), "{n}: {}", reach(threshold));
            }
        }
    }

    #[test]
    fn of_equal_values_all_reach_or_none() {
        assert_eq!(
            between(0, u32::MAX, 1 << 31, 3, 5, |threshold, _| if threshold <= 77 { 100 } else { 0 }),
            77
        );
        assert_eq!(between(77, 77, 77, 3, 5, |_, _| unreachable!("there is nothing to find out")), 77);
        const EQUAL: u64 = LEAST + (7 << 32);
        let keys = |threshold: u64| (0..100).filter(|i| EQUAL + i >= threshold).count() as u32;
        assert_eq!(of_keys(LEAST, 3, 3, |threshold, _| keys(threshold)), EQUAL + 97);
        assert!((3..=40).contains(&keys(of_keys(LEAST, 3, 40, |threshold, _| keys(threshold)))));
    }
}
