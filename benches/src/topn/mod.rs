//! Measuring the largest probabilities of rows of logits. No vendor's library has them: they are set against copies.
use anyhow::Result;
use half::{bf16, f16};
use lacuna::{Buffer, Stream, TopN, topn};
use lacuna_reference::{TopNForm, TopNReference, topn};

use crate::checked::Checked;
use crate::exit::Usage;
use crate::measure::{Measured, Work, of_one_problem, record};
use crate::peers::{Context, Peered};
use crate::problem::Problem;
use crate::record::Record;
use crate::session::Session;
use crate::types::{Dtype, Index};

/// What logits are divided by.
const TEMPERATURE: f32 = 1.0;

/// Measures a top-N, with the type that the session has.
pub(crate) fn measure(session: &mut Session, suite: &str, problem: &Problem) -> Result<Vec<Record>> {
    if session.types.index != Index::default() {
        return Err(Usage("`topn` has no column indices; leave --index out".into()).into());
    }
    match session.types.dtype {
        Dtype::F32 => measure_as::<f32>(session, suite, problem),
        Dtype::F16 => measure_as::<f16>(session, suite, problem),
        Dtype::Bf16 => measure_as::<bf16>(session, suite, problem),
    }
}

fn measure_as<T: Measured>(session: &mut Session, suite: &str, problem: &Problem) -> Result<Vec<Record>> {
    let device = &session.device;
    let stream = device.stream()?;
    let (rows, columns, n) = (problem.a.rows(), problem.a.cols(), problem.width);
    let mut plans = vec![TopN::<T>::plan(device, rows, columns, n)?];
    if session.all_algorithms {
        let mut shape = topn::Problem::new(rows, columns, n);
        (shape.value, shape.sm) = (T::TYPE, device.info().sm);
        shape.multiprocessors = device.info().multiprocessors;
        let chosen = plans[0].choice().algorithm;
        for choice in topn::choose(&shape).into_iter().filter(|choice| choice.algorithm != chosen) {
            let options = topn::Options::default().algorithm(choice.algorithm);
            plans.push(TopN::plan_with(device, rows, columns, n, options)?);
        }
    }

    let host = problem.drawn_as("the logits", [rows, columns], 0xa, |drawn| T::from_f32(logistic(drawn)))?;
    let checked = Checked::of(problem)?;
    let reference = topn(&checked.dense(&host, columns), columns, n, TEMPERATURE, TopNForm::Probability)?;
    let logits = device.upload(&host)?;
    let (values, places) = (device.zeros::<f32>(rows * n)?, device.zeros::<u32>(rows * n)?);
    let mut results = Results { values, places };
    let mut records = Vec::new();
    for plan in &plans {
        let (checked, reference, logits, results) = (&checked, &reference, &logits, &mut results);
        let mut work = Planned { problem, checked, reference, plan, logits, results };
        records.push(record(session, suite, problem, &stream, &mut work)?);
    }
    let mut peered = Peered::default();
    if let Some(peers) = &mut session.peers {
        let device = &session.device;
        let context = Context { device, stream: &stream, problem, samples: session.samples };
        peered = peers.copies(&context, records[0].bytes, Some(size_of_val(&*host)));
    }
    Ok(of_one_problem(records, &peered))
}

/// The value of a logistic distribution of scale 1 that stands where `uniform` stands in [-1, 1).
fn logistic(uniform: f32) -> f32 {
    ((1.0 + uniform).max(f32::EPSILON) / (1.0 - uniform)).ln()
}

/// Values and places of each row, on a device.
struct Results {
    values: Buffer<f32>,
    places: Buffer<u32>,
}

/// A plan with its operands.
struct Planned<'a, T: Measured> {
    problem: &'a Problem,
    checked: &'a Checked,
    reference: &'a TopNReference,
    plan: &'a TopN<T>,
    logits: &'a Buffer<T>,
    results: &'a mut Results,
}

impl<T: Measured> Work for Planned<'_, T> {
    /// The kernel; into how many chunks a row is cut, where it is, and what makes results of theirs.
    fn algorithm(&self) -> String {
        let choice = self.plan.choice();
        match self.plan.finalize() {
            Some(finalize) => {
                format!("{} in {} + {}", choice.entry.name, choice.algorithm.chunks(), finalize.name)
            }
            None => choice.entry.name.into(),
        }
    }

    fn clear(&mut self) -> Result<()> {
        let Results { values, places } = &mut *self.results;
        values.upload(&self.problem.unwritten("the values", values.len())?)?;
        Ok(places.upload(&vec![u32::MAX; places.len()])?)
    }

    fn run(&mut self, stream: &Stream) -> lacuna::Result<()> {
        let Results { values, places } = &mut *self.results;
        self.plan.run(stream, self.logits.as_slice(), values.as_slice_mut(), places.as_slice_mut())
    }

    fn check(&self, stream: &Stream) -> Result<Result<f64, String>> {
        let (checked, n) = (self.checked, self.problem.width);
        let values = checked.dense(&self.results.values.download(stream)?, n);
        let places = checked.dense(&self.results.places.download(stream)?, n);
        let checked = self.reference.check(&values, &places);
        Ok(checked.map(|report| report.worst_over_bound).map_err(|mismatch| mismatch.to_string()))
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
