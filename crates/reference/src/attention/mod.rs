//! Attention under a sparse mask: O = softmax(scale · Q Kᵀ ⊙ mask) V, one head at a time. Scores may be capped, and lessened by
//! distance ([`ScoreMod`]).
//!
//! # How far a right result may be off
//! Let a query have n keys with scores sⱼ = scale · Σᵢ qᵢkⱼᵢ, let Mⱼ = |scale| Σᵢ |qᵢkⱼᵢ|, wⱼ = e^sⱼ / Σ e^s, u = 2⁻²⁴,
//! η = 2⁻¹⁵⁰, and γₙ = nu / (1 - nu) as in [`bound`](crate::bound). Exponentials are taken as powers of two: t = s log₂ e.
//!
//! - *Scores.* d products, a scale that was rounded once (times log₂ e), and its product: tⱼ is computed to within
//!   Eⱼ = log₂ e (γ_{d+2} Mⱼ + what underflow takes).
//! - *Cap and bias.* A soft cap c makes c·tanh(s/c) of a score, whose slope is 1 at most, so that Eⱼ does not grow. The tangent comes of an
//!   exponential E, as 1 − 2/(1 + E): E is off by 4u and the rounding of its exponent, which counts among those of the score; 1 + E by
//!   u, the reciprocal by 2u, and the difference by u, 10u in all, of a tangent of 0.244 at least: 41u of it. Below, four terms of its
//!   series leave 6u, and take 4u. The product with c takes 3u. A bias is made of a slope, rounded
//!   twice, a distance, rounded, and a sum: at most 8u of both addends.
//! - *Weights.* The largest score m is subtracted, whichever it was when the key came. It is one number for all of them,
//!   whatever its own error: numerator and denominator share it. The difference is rounded, an error of u times itself in
//!   the exponent. Then a power of two is taken, to 2 units in the last place, 4u. Where m grows later, the weight is
//!   multiplied by a power of two again, at most once every 32 keys. These exponents add up to tⱼ - m without turning back,
//!   so that their roundings add up to u (m - tⱼ). With c such factors a weight is e^±δⱼ times what it should be, where
//!
//!   δⱼ = ln 2 (Eⱼ + u (max t - tⱼ + 2 max E)) + 5u (c + 1).
//!
//! - *Sums.* The sum of weights is off by a factor e^±L, L = max(ln Σ w e^δ, -ln Σ w e^-δ): keys of little weight count for
//!   little. Adding them up costs γₙ, adding up their products with V γₙ again, the reciprocal 2u and its product u. So a
//!   weight is off by a factor e^±(δⱼ + L + κ) in all, κ = 2γₙ + 3u, and
//!
//!   |ô - o| ≤ Σ wⱼ |vⱼ| (e^(δⱼ + L + κ) - 1).
//!
//! - *Underflow.* A weight below the smallest normal number is off by 2 units of 2⁻¹⁴⁹, at each factor; the sum of weights is
//!   1 at least. A product or a rescaled sum is off by η.
//! - *Steps.* Where scores and weights are written between three operations ([`Arithmetic::Steps`]), each is rounded to
//!   the type that holds it, by u' of itself and η' where it is subnormal, and the product with V has the arithmetic of SpMM.
//! - *Tiles.* On tensor cores ([`Arithmetic::Tiles`]) the sum of a score, and that of the products with V, are off as
//!   [`bound`](crate::bound) says of 16 bits, in place of γ; of `f32`, of products of bfloat16 parts, where parts that are too small for tensor cores count as lost. Weights are rounded, by u' and η', but not for their own sum.
//!
//! The logarithm of the sum of exponentials has no weights: it is off by L + γₙ, by 2⁻²² of `log2_approx`, absolute and
//! relative, and by three roundings of itself.
//!
//! # What is not finite
//! A query without keys has O = 0 and the logarithm -∞. A score that is NaN or +∞ makes the row NaN, and so do scores that are
//! all -∞, whose logarithm is -∞. A key of score -∞ among others has weight 0, and 0 · ∞ = NaN.

mod backward;
mod check;
mod error;
mod forward;

pub use backward::{AttentionGradients, attention_backward, attention_backward_by_tiles};
pub use error::Arithmetic;
pub use forward::{AttentionReference, Heads, ScoreMod, attention};
