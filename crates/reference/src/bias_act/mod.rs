//! Bias and activation of a dense matrix: act(x + bias + residual), elementwise.
//!
//! # How far a result may be off
//! With u = 2⁻²⁴ and γₙ = nu / (1 - nu). The sum s of at most three terms is computed in `f32`, in any order: of n terms each
//! passes through n - 1 roundings, so that ŝ is within δ = γₙ₋₁ Σ |terms| of s. Sums of subnormals are exact. A partial sum may
//! overflow only if Σ |terms| + δ exceeds the largest `f32`.
//!
//! The identity leaves ŝ. A clamp to lo…hi is exact, does not grow differences, and its results lie in lo…hi.
//!
//! GELU is x Φ(x), with Φ the distribution function of the normal distribution, or max(x, 0) - h with t = |x| and
//! h = t Φ(-t). Its slope is at most 1.13 in size, so that δ becomes at most that. It is computed as follows, or better:
//! 1. k = 1 / (1 + c t) within 4u: one rounding of a fused step, and a reciprocal within 1 ulp, 2u, with room for u more. A
//!    polynomial p of degree 8 in k, by fused steps, comes within 17.5u of Φ(-t) exp(t²/2): 3.2u by its own shape, and 14.3u by
//!    rounding of its coefficients, its steps and k, where these add up worst for t from 0 to 14;
//! 2. e = 2 to the power z within 2 ulp, 4u, with z = -t² log₂e / 2 computed with three roundings, which make up to
//!    1.5 t² u of e. A subnormal e may be 0 instead;
//! 3. h = e p t with at most two roundings: in all within (24 + 2 t²) u of it, and 2⁻¹²⁶ where e or a product is subnormal: p t
//!    is below 0.4;
//! 4. the difference is rounded once, or the last product with it.
//!
//! From t = 14 on h may be 0: it is below 2⁻¹³⁸. Where ŝ stands for s, all this changes by less than δ / 100.
mod normal;

use std::marker::PhantomData;

use self::normal::tail;
use crate::bound::{Legal, Verdict};
use crate::{ErrorReport, Mismatch, ReferenceError, Value, elements};

const U: f64 = f32::EPSILON as f64 / 2.0;
/// What the reference's own arithmetic may add, relatively.
const OWN: f64 = 1.0 / (1u64 << 40) as f64;

/// What is made of a sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activation {
    /// The sum itself.
    Identity,
    /// The sum, cut to `lo..=hi`.
    Clamp {
        /// The smallest result.
        lo: f32,
        /// The largest result, at least `lo`.
        hi: f32,
    },
    /// x Φ(x).
    Gelu,
}

/// What is added and activated, row by row without gaps.
#[derive(Debug, Clone, Copy)]
pub struct BiasActInputs<'i, T> {
    /// x, rows of `columns` elements.
    pub input: &'i [T],
    /// Elements of a row.
    pub columns: usize,
    /// The bias, if any.
    pub bias: Option<&'i [T]>,
    /// Whether row i has the element i of the bias, modulo its length; otherwise each column has one.
    pub bias_by_row: bool,
    /// The residual, as large as x, if any.
    pub residual: Option<&'i [T]>,
    /// What is made of sums.
    pub activation: Activation,
}

/// The results in `f64`, and what is needed to judge a result of type `T`.
#[derive(Debug, Clone)]
pub struct BiasActReference<T = f32> {
    columns: usize,
    terms: u32,
    legal: Vec<Legal>,
    activation: Activation,
    result: PhantomData<T>,
}

/// act(x + bias + residual).
///
/// # Errors
/// If x is not whole rows, the residual is not as large, the bias has not an element for each column, or none for rows; if
/// the ends of a clamp are not a range.
pub fn bias_act<T: Value>(inputs: &BiasActInputs<'_, T>) -> Result<BiasActReference<T>, ReferenceError> {
    let &BiasActInputs { input, columns, bias, bias_by_row, residual, activation } = inputs;
    let rows = input.len().checked_div(columns).unwrap_or(0);
    let expect = |what, (rows, cols), got| match rows * cols == got {
        true => Ok(()),
        false => Err(ReferenceError::FactorLength { what, rows, cols, got }),
    };
    expect("x", (rows, columns), input.len())?;
    if let Some(residual) = residual {
        expect("the residual", (rows, columns), residual.len())?;
    }
    match bias {
        Some(bias) if !bias_by_row => expect("the bias", (1, columns), bias.len())?,
        Some([]) if rows > 0 => expect("the bias", (rows, 1), 0)?,
        _ => {}
    }
    if let Activation::Clamp { lo, hi } = activation
        && (lo.is_nan() || hi.is_nan() || lo > hi)
    {
        return Err(ReferenceError::Clamp { lo, hi });
    }
    let element = |at: usize| {
        let bias = bias.map(|bias| bias[if bias_by_row { at / columns % bias.len() } else { at % columns }]);
        let terms = [Some(input[at]), bias, residual.map(|residual| residual[at])];
        legal(terms.map(|term| term.map(|term| f64::from(term.to_f32()))), activation)
    };
    let terms = 1 + u32::from(bias.is_some()) + u32::from(residual.is_some());
    let legal = (0..input.len()).map(element).collect();
    Ok(BiasActReference { columns, terms, legal, activation, result: PhantomData })
}

/// The right results of a sum of terms.
fn legal(terms: [Option<f64>; 3], activation: Activation) -> Legal {
    let terms = || terms.iter().flatten();
    let sum: f64 = terms().sum();
    let size: f64 = terms().filter(|term| term.is_finite()).map(|term| term.abs()).sum();
    let roundings = terms().count() as f64 - 1.0;
    let off = if roundings == 0.0 { 0.0 } else { (roundings * U / (1.0 - roundings * U) + OWN) * size };
    let overflows = size + off > f64::from(f32::MAX);
    let value = activation.of(sum);
    if !sum.is_finite() {
        // Finite terms may overflow to the other infinity before the infinite one comes.
        return if overflows && !sum.is_nan() {
            Legal::infinite_or_nan(value)
        } else {
            Legal::exactly(value)
        };
    }
    let bound = match activation {
        Activation::Gelu => {
            let t = sum.abs();
            let second = t * tail(t);
            let relative = (24.0 + 2.0 * t * t) * U + OWN;
            1.14 * off + 1.01 * (second * relative + U * value.abs()) + f64::from(f32::MIN_POSITIVE)
        }
        _ => off,
    };
    Legal::within(value, bound, overflows)
}

impl Activation {
    fn of(self, x: f64) -> f64 {
        match self {
            Self::Identity => x,
            Self::Clamp { lo, hi } => x.clamp(lo.into(), hi.into()),
            // Infinities take their limits.
            Self::Gelu if x.is_infinite() => x.max(0.0),
            Self::Gelu => x.max(0.0) - x.abs() * tail(x.abs()),
        }
    }

    /// Whether it can have this result.
    fn reaches<T: Value>(self, got: f64) -> bool {
        let Self::Clamp { lo, hi } = self else { return true };
        let (lo, hi) = T::rounded(lo.into(), hi.into());
        got.is_nan() || lo <= got && got <= hi
    }
}

impl<T: Value> BiasActReference<T> {
    /// Checks a result, row by row without gaps.
    ///
    /// # Errors
    /// If `got` has the wrong length, or an element is wrong.
    pub fn check(&self, got: &[T]) -> Result<ErrorReport, Mismatch> {
        let judge = |at: usize, got: T| match self.legal[at].judge(got) {
            Verdict::Pass(_) if !self.activation.reaches::<T>(got.to_f32().into()) => {
                Verdict::Fail(f64::INFINITY)
            }
            verdict => verdict,
        };
        elements::check(got, self.legal.len(), self.columns, judge, |at| (self.legal[at], self.terms))
    }

    /// The elements in `f64`, row by row.
    pub fn value(&self) -> Vec<f64> {
        self.legal.iter().map(|legal| legal.value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(x: f32, bias: Option<f32>, activation: Activation) -> BiasActReference {
        let bias = bias.map(|bias| [bias]);
        let bias = bias.as_ref().map(<[f32; 1]>::as_slice);
        let (input, residual) = (&[x], None);
        bias_act(&BiasActInputs { input, columns: 1, bias, bias_by_row: true, residual, activation }).unwrap()
    }

    #[test]
    fn gelu_is_that_of_tables() {
        // x Φ(x) by mpmath.
        for (x, gelu) in [
            (1.0, 0.841_344_746_068_542_9),
            (-1.0, -0.158_655_253_931_457_07),
            (-5.0, -1.433_257_859_395_966_5e-6),
        ] {
            let got = reference(x, None, Activation::Gelu).value()[0];
            assert!((got / gelu - 1.0).abs() < 1e-12, "{x}: {got}");
        }
    }

    #[test]
    fn what_is_not_finite_goes_where_the_formula_takes_it() {
        let accepts = |x, bias, activation, got| reference(x, bias, activation).check(&[got]).is_ok();
        let relu = Activation::Clamp { lo: 0.0, hi: f32::INFINITY };
        for activation in [Activation::Identity, relu, Activation::Gelu] {
            assert!(accepts(f32::NAN, None, activation, f32::NAN));
            assert!(!accepts(f32::NAN, None, activation, 0.0));
            assert!(accepts(f32::INFINITY, Some(1.0), activation, f32::INFINITY));
            assert!(accepts(f32::INFINITY, Some(f32::NEG_INFINITY), activation, f32::NAN));
            assert!(accepts(f32::MAX, Some(f32::MAX), activation, f32::INFINITY));
        }
        assert!(
            accepts(f32::NEG_INFINITY, None, relu, 0.0)
                && accepts(f32::NEG_INFINITY, None, Activation::Gelu, 0.0)
        );
    }

    #[test]
    fn results_that_are_off_are_refused() {
        let accepts = |x, bias, activation, got| reference(x, bias, activation).check(&[got]).is_ok();
        assert!(
            accepts(1.0, None, Activation::Identity, 1.0)
                && !accepts(1.0, None, Activation::Identity, 1.0000001)
        );
        let sum = 0.1_f32 + 0.7;
        assert!(accepts(0.1, Some(0.7), Activation::Identity, sum));
        assert!(!accepts(0.1, Some(0.7), Activation::Identity, sum + 3e-7));
        // Near 0 the sum may be on either side, the result not.
        let relu = Activation::Clamp { lo: 0.0, hi: 6.0 };
        assert!(accepts(1.0, Some(-1.0 + 6e-8), relu, 0.0) && !accepts(1.0, Some(-1.0), relu, -1e-9));
        assert!(
            !accepts(1.0, None, Activation::Gelu, 0.841_347)
                && accepts(1.0, None, Activation::Gelu, 0.841_344_7)
        );
        // The tanh form.
        assert!(!accepts(1.0, None, Activation::Gelu, 0.841_192));
    }

    #[test]
    fn operands_must_fit() {
        let inputs = BiasActInputs {
            input: &[1.0_f32; 6],
            columns: 3,
            bias: None,
            bias_by_row: false,
            residual: None,
            activation: Activation::Identity,
        };
        assert!(bias_act(&inputs).is_ok());
        assert!(bias_act(&BiasActInputs { columns: 4, ..inputs }).is_err());
        assert!(bias_act(&BiasActInputs { bias: Some(&[1.0; 2]), ..inputs }).is_err());
        assert!(bias_act(&BiasActInputs { bias: Some(&[]), bias_by_row: true, ..inputs }).is_err());
        assert!(bias_act(&BiasActInputs { residual: Some(&[1.0; 5]), ..inputs }).is_err());
        let activation = Activation::Clamp { lo: 1.0, hi: f32::NAN };
        assert!(bias_act(&BiasActInputs { activation, ..inputs }).is_err());
    }
}
