//! What options make of a product: alpha, beta, bias and limits; gaps between rows; batches.
//!
//! What is expected is computed here in f64. With n terms in a sum, and S = |alpha|·Σ|a·b| + |beta·c| + |bias|, no more
//! than n + 3 roundings touch a result, and no limit makes an error larger: |got - expected| ≤ γ(n + 3)·S, with
//! γ(m) = m·u / (1 - m·u), and for results below f32's normal numbers m times the least of them.
use anyhow::{Context as _, Result, ensure};
use lacuna::matrix::{Csr, generate};
use lacuna::{CsrMatrix, Spmm, SpmmAlgorithm, SpmmOperands, SpmmOptions};

use super::guarded::{Guarded, Placement};
use crate::{Case, Context};

const M: usize = 29;
const K: usize = 45;

/// What fills C where nothing may be written.
const GAP: f32 = 12345.0;

/// An option, what it is, and whether there is a bias.
type Options = (&'static str, &'static str, bool, fn(SpmmOptions) -> SpmmOptions);

const EPILOGUES: [Options; 8] = [
    ("alpha", "C = -0.75·A·B", false, |usual| usual.alpha(-0.75)),
    ("beta", "C = A·B + 0.5·C", false, |usual| usual.beta(0.5)),
    ("bias", "C = A·B + bias", true, |usual| usual),
    ("relu", "C = max(A·B, 0)", false, SpmmOptions::relu),
    ("clamp", "C = A·B between -0.25 and 0.5", false, |usual| usual.clamp(-0.25, 0.5)),
    ("linear", "C = max(A·B + bias, 0)", true, SpmmOptions::relu),
    ("all", "C = 1.5·A·B - 2·C + bias between -1 and 3", true, |usual| {
        usual.alpha(1.5).beta(-2.0).clamp(-1.0, 3.0)
    }),
    ("nothing", "alpha = 0 and beta = 1 leave C as it is", false, |usual| usual.alpha(0.0).beta(1.0)),
];

/// Strides beyond N of B and C, and batches: how many, and whether they lie side by side.
const LAYOUTS: [(&str, [usize; 2], usize, bool); 7] = [
    ("strides", [40, 48], 1, false),
    ("odd_strides", [7, 1], 1, false),
    ("stride_of_b", [3, 0], 1, false),
    ("batch", [0, 0], 3, false),
    ("batch_of_strides", [4, 8], 3, false),
    ("batch_of_odd_strides", [5, 9], 2, false),
    ("side_by_side", [12, 8], 4, true),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, about, bias, options) in EPILOGUES {
        cases.push(Case::new(format!("spmm/epilogue/{name}"), about, move |cx| {
            epilogue(cx, options(SpmmOptions::default()), bias)
        }));
    }
    for (name, gaps, batch, beside) in LAYOUTS {
        let about = format!("gaps of {} in B and {} in C, {batch} products", gaps[0], gaps[1]);
        cases
            .push(Case::new(format!("spmm/layout/{name}"), about, move |cx| layout(cx, gaps, batch, beside)));
    }
    cases.push(Case::new("spmm/layout/values", "a batch of A with one pattern and one B", values));
    cases.push(Case::new("spmm/epilogue/special", "NaN, infinities and zeros in an epilogue", special));
    cases
}

/// Matrices of one pattern, and what is asked for.
struct Subject {
    a: Vec<Csr<f32>>,
    n: usize,
    options: SpmmOptions,
    bias: Option<Vec<f32>>,
    seed: u64,
}

impl Subject {
    fn new(n: usize, options: SpmmOptions, seed: u64) -> Result<Self> {
        let pattern = generate::uniform(M, K, 0.7, seed)?;
        let values = generate::random_values(pattern.nnz(), seed ^ 1);
        Ok(Self { a: vec![Csr::with_values(pattern, values)?], n, options, bias: None, seed })
    }

    /// Elements from row to row and from matrix to matrix, of B and of C.
    fn strides(&self) -> [[usize; 2]; 2] {
        let SpmmOptions { b_stride, c_stride, b_batch_stride, c_batch_stride, .. } = self.options;
        [(K, b_stride, b_batch_stride), (M, c_stride, c_batch_stride)].map(|(rows, stride, batch)| {
            let stride = stride.unwrap_or(self.n);
            [stride, batch.unwrap_or(rows * stride)]
        })
    }

    /// Runs at a placement; gives the largest error over its bound.
    fn check(&self, cx: &Context<'_>, at: Placement) -> Result<f64> {
        let a = CsrMatrix::new(cx.device, &self.a[0])?;
        let values: Vec<f32> = self.a.iter().flat_map(|a| a.values()).copied().collect();
        let a = a.with_value_batch(self.a.len(), &values)?;
        let plan = Spmm::plan_with(&a, self.n, self.options)?;
        let [b_strides, c_strides] = self.strides();

        // Gaps of B are NaN: what reads them shows. Without beta, so is C.
        let mut b = vec![f32::NAN; plan.input_len()];
        let mut before = vec![GAP; plan.output_len()];
        for product in 0..self.options.batch {
            let seed = self.seed ^ (product as u64 * 16);
            let fill = |to: &mut [f32], values: &[f32], [stride, batch]: [usize; 2]| {
                for (row, values) in values.chunks(self.n).enumerate() {
                    to[product * batch + row * stride..][..self.n].copy_from_slice(values);
                }
            };
            fill(&mut b, &generate::random_values(K * self.n, seed ^ 2), b_strides);
            let mut c = generate::random_values(M * self.n, seed ^ 3);
            if self.options.beta == 0.0 {
                c.fill(f32::NAN);
            }
            fill(&mut before, &c, c_strides);
        }

        let b_buffer = Guarded::new(cx.device, &b, at.b)?;
        let mut c_buffer = Guarded::new(cx.device, &before, at.c)?;
        let bias = self.bias.as_ref().map(|bias| cx.device.upload(bias)).transpose()?;
        let bias = bias.as_ref().map(lacuna::Buffer::as_slice);
        let operands = SpmmOperands { a: &a, b: b_buffer.slice()?, c: c_buffer.slice_mut()?, bias };
        plan.run_with(cx.stream, operands)?;
        let after = c_buffer.read("C", cx.stream)?;
        self.compare(&b, &before, &after).with_context(|| format!("{}, {at:?}", plan.choice().entry))
    }

    fn compare(&self, b: &[f32], before: &[f32], after: &[f32]) -> Result<f64> {
        let [[b_stride, b_batch], [c_stride, c_batch]] = self.strides();
        let mut worst = 0.0_f64;
        let mut owned = vec![false; after.len()];
        for product in 0..self.options.batch {
            let a = &self.a[product % self.a.len()];
            for row in 0..M {
                for column in 0..self.n {
                    let at = product * c_batch + row * c_stride + column;
                    let (columns, values) = a.row(row);
                    let terms = columns.iter().zip(values).map(|(&k, &value)| {
                        let at = product * b_batch + k as usize * b_stride + column;
                        f64::from(value) * f64::from(b[at])
                    });
                    let (expected, bound) = self.expected(terms, before[at], row);
                    let error = (f64::from(after[at]) - expected).abs();
                    ensure!(
                        error <= bound,
                        "product {product}, row {row}, column {column}: {:e}, but {expected:e} ± {bound:e}",
                        after[at]
                    );
                    worst = worst.max(if error > 0.0 { error / bound } else { 0.0 });
                    owned[at] = true;
                }
            }
        }
        let written = (0..after.len()).find(|&at| !owned[at] && after[at].to_bits() != GAP.to_bits());
        ensure!(written.is_none(), "C: its gap was written at element {}", written.unwrap_or_default());
        Ok(worst)
    }

    /// An element, and the error that it may have.
    fn expected(&self, terms: impl Iterator<Item = f64>, old: f32, row: usize) -> (f64, f64) {
        let SpmmOptions { alpha, beta, lo, hi, .. } = self.options;
        let mut sums = [0.0; 2];
        let mut roundings = 3.0;
        for term in terms {
            sums = [sums[0] + term, sums[1] + term.abs()];
            roundings += 1.0;
        }
        let old = if beta == 0.0 { 0.0 } else { f64::from(beta) * f64::from(old) };
        let bias = self.bias.as_ref().map_or(0.0, |bias| f64::from(bias[row]));
        let expected = (f64::from(alpha) * sums[0] + old + bias).clamp(lo.into(), hi.into());
        let magnitude = f64::from(alpha).abs() * sums[1] + old.abs() + bias.abs();
        let unit = f64::from(f32::EPSILON) / 2.0;
        let gamma = roundings * unit / (1.0 - roundings * unit);
        // The sums here are rounded, too: 2⁻⁴⁰ is far more than f64 loses.
        let least = f64::from(f32::from_bits(1));
        (expected, magnitude * (gamma + 2.0_f64.powi(-40)) + roundings * least)
    }
}

fn epilogue(cx: &Context<'_>, options: SpmmOptions, bias: bool) -> Result<f64> {
    let mut worst = 0.0_f64;
    for n in [1, 6, 24, 33, 130] {
        let mut subject = Subject::new(n, options, cx.seed)?;
        subject.bias = bias.then(|| generate::random_values(M, cx.seed ^ 4));
        for at in [Placement::WHOLE, Placement::slices(2, 1)] {
            worst = worst.max(subject.check(cx, at)?);
        }
        if n == 24 {
            for algorithm in algorithms(cx, &subject)? {
                let options = options.algorithm(algorithm);
                let subject =
                    Subject { options, a: subject.a.clone(), bias: subject.bias.clone(), ..subject };
                worst = worst.max(subject.check(cx, Placement::WHOLE)?);
            }
        }
    }
    Ok(worst)
}

/// Every algorithm that is legal for the subject's N.
fn algorithms(cx: &Context<'_>, subject: &Subject) -> Result<Vec<SpmmAlgorithm>> {
    let a = CsrMatrix::new(cx.device, &subject.a[0])?;
    let choices = lacuna::choose(&lacuna::Problem::of(&a, subject.n, 8));
    Ok(choices.into_iter().map(|choice| choice.algorithm).collect())
}

fn layout(cx: &Context<'_>, gaps: [usize; 2], batch: usize, beside: bool) -> Result<f64> {
    let mut worst = 0.0_f64;
    for n in [1, 20, 36] {
        let [b_stride, c_stride] = gaps.map(|gap| gap + if beside { batch * n } else { n });
        let mut options = SpmmOptions::default().b_stride(b_stride).c_stride(c_stride).batch(batch);
        if beside {
            options = options.b_batch_stride(n).c_batch_stride(n);
        }
        for options in [options, options.beta(1.0).relu()] {
            for at in [Placement::WHOLE, Placement::slices(4, 8), Placement::slices(3, 2)] {
                worst = worst.max(Subject::new(n, options, cx.seed)?.check(cx, at)?);
            }
        }
    }
    Ok(worst)
}

fn values(cx: &Context<'_>) -> Result<f64> {
    let mut subject = Subject::new(20, SpmmOptions::default().batch(3).b_batch_stride(0), cx.seed)?;
    for seed in [5, 6] {
        let pattern = subject.a[0].pattern().clone();
        let values = generate::random_values(pattern.nnz(), cx.seed ^ seed);
        subject.a.push(Csr::with_values(pattern, values)?);
    }
    subject.check(cx, Placement::WHOLE)
}

/// Rows 0 to 3 of A are NaN, +∞, 1 and empty; B is 0 beside NaN for the rest.
fn special(cx: &Context<'_>) -> Result<f64> {
    let values = vec![f32::NAN, f32::INFINITY, 1.0];
    let a = Csr::new(4, 2, vec![0, 1, 2, 3, 3], vec![0, 0, 0], values)?;
    let a = CsrMatrix::new(cx.device, &a)?;
    let bits = |values: [f32; 4]| values.map(|value| if value.is_nan() { u32::MAX } else { value.to_bits() });
    let run = |options: SpmmOptions, b: f32, c: f32, expected: [f32; 4]| -> Result<()> {
        let plan = Spmm::plan_with(&a, 1, options)?;
        let b = cx.device.upload(&[b, f32::NAN])?;
        let mut buffer = cx.device.upload(&[c; 4])?;
        plan.run(cx.stream, &a, b.as_slice(), buffer.as_slice_mut())?;
        let got: Vec<f32> = buffer.download(cx.stream)?;
        let got = [got[0], got[1], got[2], got[3]];
        ensure!(bits(got) == bits(expected), "{options:?}: {got:?}, but {expected:?} is expected");
        Ok(())
    };
    let (nan, infinite) = (f32::NAN, f32::INFINITY);
    let usual = SpmmOptions::default();
    run(usual, 2.0, nan, [nan, infinite, 2.0, 0.0])?;
    run(usual.clamp(-1.0, 1.5), 2.0, nan, [nan, 1.5, 1.5, 0.0])?;
    run(usual.relu(), -2.0, nan, [nan, 0.0, 0.0, 0.0])?;
    run(usual.alpha(2.0).beta(1.0), 2.0, nan, [nan; 4])?;
    run(usual.beta(1.0), 2.0, -infinite, [nan, nan, -infinite, -infinite])?;
    run(usual.alpha(0.0), 2.0, nan, [nan, nan, 0.0, 0.0])?;
    run(usual.alpha(-1.0).relu(), 2.0, nan, [nan, 0.0, 0.0, -0.0])?;
    Ok(0.0)
}
