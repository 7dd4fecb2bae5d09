//! Division by numbers that the host knows: a product and a shift in place of some twenty instructions.

/// A divisor, and the multiplier in its place.
///
/// With l the least number for which divisor ≤ 2ˡ, and m = ⌈2³¹⁺ˡ / divisor⌉, the quotient is ⌊n·m / 2³¹⁺ˡ⌋ for all n below
/// 2³¹: what m has too much, less than 1, adds less than n / 2³¹⁺ˡ, which is less than 1 / divisor.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    divisor: u32,
    multiplier: u32,
    shift: u32,
}

impl Divisor {
    /// A divisor up to 2³¹; in place of 0, 1.
    pub const fn new(divisor: u32) -> Self {
        let divisor = if divisor == 0 { 1 } else { divisor };
        let shift = 31 + divisor.next_power_of_two().trailing_zeros();
        Self { divisor, multiplier: (1_u64 << shift).div_ceil(divisor as u64) as u32, shift }
    }

    /// Quotient and remainder of a number below 2³¹.
    #[inline(always)]
    pub fn divide(&self, number: u32) -> [u32; 2] {
        let quotient = ((u64::from(number) * u64::from(self.multiplier)) >> self.shift) as u32;
        [quotient, number - quotient * self.divisor]
    }
}

#[cfg(test)]
mod tests {
    use super::Divisor;

    #[test]
    fn quotients_are_exact_up_to_the_limit() {
        let most = (1 << 31) - 1;
        for divisor in [1, 2, 3, 5, 7, 11, 14, 28, 49, 641, 65_537, (1 << 30) + 1, most, 1 << 31] {
            let by = Divisor::new(divisor);
            let multiple = most / divisor * divisor;
            for number in
                [0, 1, 6, 7, divisor - 1, divisor.min(most), multiple.saturating_sub(1), multiple, most]
            {
                assert_eq!(by.divide(number), [number / divisor, number % divisor], "{number} by {divisor}");
            }
        }
    }
}
