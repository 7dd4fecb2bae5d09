//! Measuring bias and activation: a bias per column, a residual, and GELU, the dearest activation. It is a matter of bytes: it is
//! set against a copy.
use anyhow::Result;
use lacuna::BiasAct;
use lacuna::bias_act::{Activation, Operands, Options};
use lacuna_cases::Number;
use lacuna_reference::{Activation as ReferenceActivation, BiasActInputs, bias_act};

use crate::checked::rows_of;
use crate::copies::{self, PLAIN_COPY};
use crate::measure::{Work, by_value, judged};
use crate::operation::{Columns, Operation, Rate, Takes, Task};
use crate::record::Record;
use crate::session::{Session, others};

/// Bias and activation, as it is measured.
pub(crate) static OPERATION: Operation = Operation {
    name: "bias-act",
    title: "Bias, residual and GELU",
    about: "GELU of a dense matrix, M × N, with a bias per column and a residual",
    values: None,
    columns: Columns::N,
    width: None,
    takes: Takes { indices: &[], ..Takes::INDICES },
    rate: Rate::Bytes,
    is_by_sparsity: false,
    peers: &[PLAIN_COPY],
    // Two sums, a polynomial of 8 coefficients, an exponential, a reciprocal, and what joins them.
    flops: |size| 29.0 * size.elements,
    // x, the residual and the result, and the bias.
    bytes: |size, value, _| value * (3.0 * size.elements + size.cols),
    footprint: |size| 12.0 * size.elements,
    simulated: |size| 16.0 * size.elements,
    measure: |session, task| by_value!(session, measure::<_>(session, task)),
};

fn measure<T: Number>(session: &mut Session, task: &Task<'_>) -> Result<Vec<Record>> {
    let problem = task.problem;
    let device = &session.device;
    let (rows, columns) = (problem.rows(), problem.cols());
    let options = Options::default().activation(Activation::Gelu);
    let plan = |algorithm| BiasAct::<T>::plan_with(device, rows, columns, options.algorithm(algorithm));
    let plans = session.plans(plan, |chosen| others(chosen.choice(), &chosen.legal()[0]))?;

    // Numbers from -4 to 4: both sides of GELU, and its tail.
    let draw =
        |name, rows, salt| problem.drawn_as(name, [rows, columns], salt, |drawn| T::from_f32(4.0 * drawn));
    let (input, bias, residual) =
        (draw("x", rows, 0xa)?, draw("the bias", 1, 0xb)?, draw("the residual", rows, 0xc)?);
    let checked: Vec<usize> = problem.checked_rows().collect();
    let reference = bias_act(&BiasActInputs {
        input: &rows_of(&input, columns, &checked),
        columns,
        bias: Some(&bias),
        bias_by_row: false,
        residual: Some(&rows_of(&residual, columns, &checked)),
        activation: ReferenceActivation::Gelu,
    })?;
    let (input, bias, residual) = (device.upload(&input)?, device.upload(&bias)?, device.upload(&residual)?);
    let mut out = device.zeros::<T>(rows * columns)?;
    let work = Work {
        plans: &plans,
        algorithm: &|plan| plan.choice().entry.name.into(),
        operands: &mut out,
        clear: &|out| Ok(out.upload(&problem.unwritten("the result", out.len())?)?),
        run: &|plan, out, stream| {
            let (bias, residual) = (Some(bias.as_slice()), Some(residual.as_slice()));
            let (input, out) = (input.as_slice(), out.as_slice_mut());
            plan.run(stream, Operands { input, bias, residual, out })
        },
        check: &|_, out, stream| {
            let got = rows_of(&out.download(stream)?, columns, &checked);
            Ok(judged(reference.check(&got)))
        },
    };
    work.measure(session, task, |peers, context, _| copies::measure(peers, context, None))
}
