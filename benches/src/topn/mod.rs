//! Measuring the largest probabilities of rows of logits. No vendor's library has them: they are set against copies.
use anyhow::Result;
use lacuna::{TopN, topn};
use lacuna_cases::Number;
use lacuna_reference::{TopNForm, topn};

use crate::checked::rows_of;
use crate::copies::{self, COPY_OF_LOGITS, PLAIN_COPY};
use crate::measure::{Work, by_value, judged};
use crate::operation::{Columns, Operation, Rate, Takes, Task, Width};
use crate::record::Record;
use crate::session::{Session, others};

/// What logits are divided by.
const TEMPERATURE: f32 = 1.0;

/// Top-N, as it is measured.
pub(crate) static OPERATION: Operation = Operation {
    name: "topn",
    title: "Softmax and top-N",
    about: "The largest probabilities of each row of dense logits, M × N, and where they stand",
    values: None,
    columns: Columns::N,
    width: Some(Width { title: "top", flag: "--n", about: "how many to take of a row", is_cut: false }),
    takes: Takes { indices: &[], ..Takes::INDICES },
    rate: Rate::Bytes,
    is_by_sparsity: false,
    // No vendor's library has it.
    peers: &[PLAIN_COPY, (COPY_OF_LOGITS, "copy of the logits")],
    // A difference, an exponential, a sum and a comparison for each logit.
    flops: |size| 4.0 * size.elements,
    // The logits; and of each row so many probabilities, in f32, and places.
    bytes: |size, value, _| value * size.elements + 8.0 * size.rows * size.width,
    // The logits, and a copy from and to another place.
    footprint: |size| 12.0 * size.elements + 8.0 * size.rows * size.width,
    simulated: |size| 16.0 * size.elements,
    measure: |session, task| by_value!(session, measure::<_>(session, task)),
};

fn measure<T: Number>(session: &mut Session, task: &Task<'_>) -> Result<Vec<Record>> {
    let problem = task.problem;
    let device = &session.device;
    let (rows, columns, n) = (problem.rows(), problem.cols(), problem.width);
    let options = topn::Options::default();
    let plan = |algorithm| TopN::<T>::plan_with(device, rows, columns, n, options.algorithm(algorithm));
    let plans = session.plans(plan, |chosen| {
        let mut shape = topn::Problem::new(rows, columns, n);
        (shape.value, shape.sm) = (T::TYPE, device.info().sm);
        shape.multiprocessors = device.info().multiprocessors;
        others(chosen.choice(), &topn::choose(&shape))
    })?;

    let host = problem.drawn_as("the logits", [rows, columns], 0xa, |drawn| T::from_f32(logistic(drawn)))?;
    let rows_checked: Vec<usize> = problem.checked_rows().collect();
    let reference =
        topn(&rows_of(&host, columns, &rows_checked), columns, n, TEMPERATURE, TopNForm::Probability)?;
    let logits = device.upload(&host)?;
    // Values and places of each row.
    let mut results = (device.zeros::<f32>(rows * n)?, device.zeros::<u32>(rows * n)?);
    let work = Work {
        plans: &plans,
        algorithm: &name,
        operands: &mut results,
        clear: &|(values, places)| {
            values.upload(&problem.unwritten("the values", values.len())?)?;
            Ok(places.upload(&vec![u32::MAX; places.len()])?)
        },
        run: &|plan, (values, places), stream| {
            plan.run(stream, logits.as_slice(), values.as_slice_mut(), places.as_slice_mut())
        },
        check: &|_, (values, places), stream| {
            let values = rows_of(&values.download(stream)?, n, &rows_checked);
            let places = rows_of(&places.download(stream)?, n, &rows_checked);
            Ok(judged(reference.check(&values, &places)))
        },
    };
    work.measure(session, task, |peers, context, _| {
        copies::measure(peers, context, Some(size_of_val(&*host)))
    })
}

/// The value of a logistic distribution of scale 1 that stands where `uniform` stands in [-1, 1).
fn logistic(uniform: f32) -> f32 {
    ((1.0 + uniform).max(f32::EPSILON) / (1.0 - uniform)).ln()
}

/// The kernel; into how many chunks a row is cut, where it is, and what makes results of theirs.
fn name<T: Number>(plan: &TopN<T>) -> String {
    let choice = plan.choice();
    match plan.finalize() {
        Some(finalize) => {
            format!("{} in {} + {}", choice.entry.name, choice.algorithm.chunks(), finalize.name)
        }
        None => choice.entry.name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logits_rise_with_what_was_drawn_and_are_finite() {
        let drawn: Vec<f32> = (-8..8).map(|eighth| logistic(eighth as f32 / 8.0)).collect();
        assert!(drawn.is_sorted() && drawn.iter().all(|logit| logit.is_finite()), "{drawn:?}");
        assert_eq!(logistic(0.0), 0.0);
        assert!((logistic(0.5) - 3.0_f32.ln()).abs() < 1e-6);
        assert!(logistic(1.0 - f32::EPSILON) < 20.0);
    }
}
