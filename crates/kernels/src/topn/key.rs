//! Keys: a value and its index in one number, whose order is that of the result.

/// The bits of a number, so turned that integers compare as the numbers do. −0 counts as 0; NaN, of any sign and bits, is the
/// greatest.
#[inline(always)]
pub(super) fn ordered(x: f32) -> u32 {
    // −0 becomes +0, and every other number stays.
    let bits = (x + 0.0).to_bits();
    let turned = bits ^ ((bits as i32 >> 31) as u32 | 0x8000_0000);
    if x.is_nan() { u32::MAX } else { turned }
}

/// The number of these bits.
#[inline(always)]
pub(super) fn number(ordered: u32) -> f32 {
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
    number((key >> 32) as u32)
}

/// The index of a key.
#[inline(always)]
pub(super) fn index_of(key: u64) -> u32 {
    !(key as u32)
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
}
