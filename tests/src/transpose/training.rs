//! Values that change while patterns and plans stay.
use anyhow::{Context as _, Result, ensure};
use lacuna::matrix::{Csr, generate};
use lacuna::{CsrMatrix, Spmm};

use super::conform::{multiply, values};
use super::shapes::with_values;
use crate::expect::same_bits;
use crate::spmm::product;
use crate::{Case, Context};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("transpose/training/steps", "a layer learns: forward, backward, new values", steps),
        Case::new(
            "transpose/training/shared",
            "matrices of one pattern share its transpose and plans",
            shared,
        ),
        Case::new("transpose/training/threads", "several threads transpose one matrix first", threads),
    ]
}

/// Outputs, inputs, and samples of the layer that learns.
const M: usize = 24;
const K: usize = 40;
const N: usize = 12;
const STEPS: usize = 4;
/// How far each step goes along the gradient.
const RATE: f32 = 0.01;

/// A layer of sparse weights A learns C = A·B. Each step's products are checked, forward and backward; the weights'
/// gradient is worked out on the host, in the order of A's nonzeros, and the error must fall.
fn steps(cx: &Context<'_>) -> Result<f64> {
    let mut host = with_values(generate::uniform(M, K, 0.7, cx.seed)?, cx.seed)?;
    let b = generate::random_values(K * N, cx.seed ^ 2);
    let wanted = generate::random_values(M * N, cx.seed ^ 3);
    let mut a = CsrMatrix::new(cx.device, &host)?;
    let mut t = a.transposed(cx.stream)?;
    let (forward, backward) = (Spmm::plan(&a, N)?, Spmm::plan(&t, N)?);
    let (mut worst, mut losses) = (0.0_f64, Vec::new());
    for step in 0..STEPS {
        let at = || format!("step {step}");
        let (error, c) = product(cx, &forward, &a, &host, &b, N).with_context(at)?;
        let gradient: Vec<f32> = c.iter().zip(&wanted).map(|(c, wanted)| c - wanted).collect();
        losses.push(gradient.iter().map(|error| error * error).sum::<f32>());
        let transposed = host.transpose();
        same_bits("values of Aᵀ", transposed.values(), &values(cx, &t)?, 0).with_context(at)?;
        let (back, _) = product(cx, &backward, &t, &transposed, &gradient, N)
            .with_context(|| format!("step {step}, backward"))?;
        worst = worst.max(error).max(back);

        let gradient = weight_gradient(&host, &gradient, &b);
        host.values_mut().iter_mut().zip(&gradient).for_each(|(value, gradient)| *value -= RATE * gradient);
        a.values_mut()?.upload(host.values())?;
        t.update_from(cx.stream, &a).with_context(at)?;
    }
    ensure!(losses.windows(2).all(|pair| pair[1] < pair[0]), "the error does not fall: {losses:?}");
    Ok(worst)
}

/// The gradient of half the squared error along each nonzero of A: the product of its row of the error and its row of B.
fn weight_gradient(a: &Csr<f32>, error: &[f32], b: &[f32]) -> Vec<f32> {
    let dot = |row: usize, column: u32| {
        let b = &b[column as usize * N..][..N];
        error[row * N..][..N].iter().zip(b).map(|(error, b)| error * b).sum()
    };
    (0..a.rows()).flat_map(|row| a.row(row).0.iter().map(move |&column| dot(row, column))).collect()
}

fn shared(cx: &Context<'_>) -> Result<f64> {
    let host = with_values(generate::uniform(33, 21, 0.6, cx.seed)?, cx.seed)?;
    let other = with_values(host.pattern().as_ref().clone(), cx.seed ^ 9)?;
    let a = CsrMatrix::new(cx.device, &host)?;
    let sibling = a.with_values(other.values())?;
    let mut t = a.transposed(cx.stream)?;
    let plan = Spmm::plan(&t, N)?;
    let theirs = sibling.transposed(cx.stream)?;
    let first = a.transposed_pattern(cx.stream)?.permutation().address();
    let second = sibling.transposed_pattern(cx.stream)?.permutation().address();
    ensure!(first == second, "the transpose of one pattern was worked out twice");

    let b = generate::random_values(plan.input_len(), cx.seed ^ 2);
    let (error, _) = product(cx, &plan, &theirs, &other.transpose(), &b, N)
        .context("the plan of one, with the transpose of the other")?;
    t.update_from(cx.stream, &sibling)?;
    same_bits("values of the other", other.transpose().values(), &values(cx, &t)?, 0)?;
    // Aᵀ stays good when all matrices of A's pattern are gone.
    drop((a, sibling));
    Ok(error.max(multiply(cx, &t, &other.transpose())?))
}

fn threads(cx: &Context<'_>) -> Result<f64> {
    let host = with_values(generate::uniform(40, 30, 0.7, cx.seed)?, cx.seed)?;
    let a = CsrMatrix::new(cx.device, &host)?;
    let transpose = || -> Result<CsrMatrix> {
        let stream = cx.device.stream()?;
        let t = a.transposed(&stream)?;
        stream.synchronize()?;
        Ok(t)
    };
    let results: Vec<Result<CsrMatrix>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(transpose)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread returns its errors")).collect()
    });
    let mut worst = 0.0_f64;
    for t in results {
        let mut t = t?;
        // All have the pattern that stayed.
        t.update_from(cx.stream, &a)?;
        worst = worst.max(multiply(cx, &t, &host.transpose())?);
    }
    Ok(worst)
}
