//! The normal distribution in `f64`.

/// Φ(-t) for t from 0 on, to about 2⁻⁴⁵ of it.
///
/// Below 2 it is 1/2 less the series φ(t) (t + t³/3 + t⁵/(3·5) + …), of positive terms; from there on φ(t) over the continued
/// fraction t + 1/(t + 2/(t + 3/(t + …))) (Abramowitz and Stegun, 26.2.11 and 26.2.14).
pub(super) fn tail(t: f64) -> f64 {
    let density =
        (-0.5 * t * t).exp() * (0.5 * std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2);
    if t < 2.0 {
        let (mut term, mut sum) = (t, t);
        for i in 1..60 {
            term *= t * t / f64::from(2 * i + 1);
            sum += term;
        }
        return 0.5 - density * sum;
    }
    density / (1..=120).rev().fold(t, |fraction, i| t + f64::from(i) / fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_tables() {
        // By mpmath, with 30 digits.
        let known = [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931_457_05),
            (1.999, 0.022_804_176_932_658_883),
            (2.0, 0.022_750_131_948_179_21),
            (3.0, 1.349_898_031_630_094_5e-3),
            (5.0, 2.866_515_718_791_939e-7),
            (14.0, 7.793_536_819_192_799e-45),
        ];
        for (t, expected) in known {
            assert!((tail(t) / expected - 1.0).abs() < 1e-12, "{t}: {}", tail(t));
        }
        assert_eq!(tail(f64::from(f32::MAX)), 0.0);
    }
}
