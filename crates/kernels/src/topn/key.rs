//! Keys: a value and its index in one number, whose order is that of the result.

/// The bits of a number, mapped so that integers compare as the numbers do. −0 counts as 0; NaN, of any sign and bits, is the
/// greatest.
#[inline(always)]
pub(super) fn ordered(x: f32) -> u32 {
    // −0 becomes +0, and every other number stays.
    let bits = (x + 0.0).to_bits();
    let turned = bits ^ ((bits as i32 >> 31) as u32 | 0x8000_0000);
    if x.is_nan() { u32::MAX } else { turned }
}

/// The number whose [`ordered`] bits these are.
#[inline(always)]
pub(super) fn from_ordered(ordered: u32) -> f32 {
    f32::from_bits(if ordered >> 31 == 1 { ordered ^ 0x8000_0000 } else { !ordered })
}

/// The key of a value: the greater comes first, and of equal values the one of smaller index. Never 0.
#[inline(always)]
pub(super) fn key(x: f32, index: u32) -> u64 {
    u64::from(ordered(x)) << 32 | u64::from(!index)
}

/// The value of a key.
#[inline(always)]
pub(super) fn value_of(key: u64) -> f32 {
    from_ordered((key >> 32) as u32)
}

/// The index of a key.
#[inline(always)]
pub(super) fn index_of(key: u64) -> u32 {
    !(key as u32)
}

/// The least threshold: every key reaches it.
pub(super) const LEAST: u64 = 0x007f_ffff << 32;

/// A threshold of keys, in a form that numbers and indices are compared with. Keys of all numbers in registers would take twice
/// their registers more.
#[derive(Clone, Copy)]
pub(super) struct Threshold {
    number: f32,
    /// What is greater than the number, or NaN, reaches the threshold below this index.
    greater: u32,
    /// What is equal to the number, below this one.
    equal: u32,
}

impl Threshold {
    /// The threshold at this key, or at what is between keys; not below [`LEAST`].
    #[inline(always)]
    pub(super) fn at(key: u64) -> Self {
        let (high, below) = ((key >> 32) as u32, (!(key as u32)).saturating_add(1));
        let infinity = ordered(f32::INFINITY);
        if high <= infinity {
            Self { number: from_ordered(high), greater: u32::MAX, equal: below }
        } else {
            // Only NaN reaches it.
            let below = if high == u32::MAX { below } else { u32::MAX };
            Self { number: f32::INFINITY, greater: below, equal: 0 }
        }
    }

    /// The same for indices from `first` on, as they are counted from there.
    #[inline(always)]
    pub(super) fn from(self, first: u32) -> Relative {
        let relative = |end: u32| {
            let relative = i64::from(end) - i64::from(first);
            relative.clamp(i32::MIN.into(), i32::MAX.into()) as i32
        };
        Relative { number: self.number, greater: relative(self.greater), equal: relative(self.equal) }
    }
}

/// A [`Threshold`] for indices that are counted from some place on.
#[derive(Clone, Copy)]
pub(super) struct Relative {
    number: f32,
    greater: i32,
    equal: i32,
}

impl Relative {
    /// Whether the number of this index reaches it.
    #[inline(always)]
    pub(super) fn is_reached(self, x: f32, index: i32) -> bool {
        let is_greater = x > self.number || x.is_nan();
        is_greater & (index < self.greater) | (x == self.number) & (index < self.equal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_the_result() {
        let inf = f32::INFINITY;
        let falling = [f32::NAN, inf, f32::MAX, 1.0, 1e-44, 0.0, -1e-44, -1.0, f32::MIN, -inf];
        for pair in falling.windows(2) {
            assert!(ordered(pair[0]) > ordered(pair[1]), "{pair:?}");
            assert!(key(pair[0], u32::MAX) > key(pair[1], 0), "{pair:?}");
        }
        assert_eq!(ordered(-f32::NAN), ordered(f32::NAN));
        assert_eq!(ordered(-0.0), ordered(0.0));
        assert!(key(2.0, 7) > key(2.0, 8));
        assert!(key(-inf, u32::MAX) > 0);
    }

    #[test]
    fn keys_give_back_what_they_are_made_of() {
        for x in [f32::INFINITY, 3.5, 1e-44, 0.0, -1e-44, -7.25, f32::NEG_INFINITY] {
            let key = key(x, 12_345);
            assert_eq!((value_of(key), index_of(key)), (x, 12_345));
        }
        assert!(value_of(key(-f32::NAN, 0)).is_nan());
    }

    #[test]
    fn a_threshold_is_reached_by_the_keys_that_reach_it() {
        let inf = f32::INFINITY;
        let numbers =
            [f32::NAN, -f32::NAN, inf, f32::MAX, 1.0, 1e-44, 0.0, -0.0, -1e-44, -1.0, f32::MIN, -inf];
        let keys = || numbers.iter().flat_map(|&x| [0, 1, 700, 701, u32::MAX - 1].map(|index| (x, index)));
        for threshold in
            keys().flat_map(|(x, index)| [0, 1].map(|off| key(x, index).saturating_add(off))).chain([LEAST])
        {
            for (x, index) in keys() {
                let first = index - index.min(5);
                let relative = Threshold::at(threshold).from(first);
                let is_reached = relative.is_reached(x, (index - first) as i32);
                assert_eq!(is_reached, key(x, index) >= threshold, "{x} at {index}, {threshold:x}");
            }
        }
    }
}
