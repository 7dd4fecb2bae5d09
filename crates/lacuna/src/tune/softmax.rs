//! Tuned plans of the sparse softmax.
use lacuna_kernels::entries;

use super::kernels::{draw_into, ranked};
use super::{Autotuner, key, stopwatch};
use crate::{CsrMatrix, Index, Result, SparseSoftmax, Stream, Value, softmax};

impl Autotuner {
    /// As [`SparseSoftmax::plan_with`], with the kernels that were measured to be the fastest: those that the model takes, each
    /// for rows of some length, or one of them for all rows. As [`plan`](Self::plan), on matrices of its own. What is measured
    /// is the softmax: the choice serves its gradient, too.
    ///
    /// # Errors
    /// Those of [`SparseSoftmax::plan_with`]; [`Error::OtherDevice`](crate::Error::OtherDevice) for a stream of another
    /// device; what running a kernel fails with.
    pub fn softmax<T: Value, I: Index>(
        &self,
        stream: &Stream,
        a: &CsrMatrix<T, I>,
        options: softmax::Options,
    ) -> Result<SparseSoftmax<T, I>> {
        a.device().expect_same("tuning the softmax", "the stream", stream.device())?;
        if a.device().is_simulator() {
            return SparseSoftmax::plan_with(a, options);
        }
        let mut operands = None;
        self.softmax_by(a, options, |plan| {
            let (x, y) = match &mut operands {
                Some(operands) => operands,
                none => none.insert(scratch(a, options.batch)?),
            };
            stopwatch::time(stream, |stream| plan.run(stream, x, y))
        })
    }

    /// The same, with `time` to tell the microseconds that a plan takes.
    fn softmax_by<T: Value, I: Index>(
        &self,
        a: &CsrMatrix<T, I>,
        options: softmax::Options,
        time: impl FnMut(&SparseSoftmax<T, I>) -> Result<f64>,
    ) -> Result<SparseSoftmax<T, I>> {
        let plan = SparseSoftmax::plan_with(a, options)?;
        if options.algorithm != softmax::Algorithm::Auto || plan.parts().is_empty() || options.batch == 0 {
            return Ok(plan);
        }
        let mut plans = vec![plan.clone()];
        for algorithm in plan.legal() {
            let other = SparseSoftmax::plan_with(a, options.algorithm(algorithm))?;
            if plans.iter().all(|known| name(known) != name(&other)) {
                plans.push(other);
            }
        }
        let names: Vec<String> = plans.iter().map(name).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let ranking = self.measured(&key_of(a, &plan, &names), &names, || ranked(&plans, name, time))?;
        let fastest =
            ranking.iter().flatten().find_map(|kernels| names.iter().position(|&name| name == kernels.entry));
        Ok(fastest.map_or(plan.clone(), |index| plan.with_parts_of(&plans[index])))
    }
}

/// The kernels of a plan, longest rows first.
fn name<T: Value, I: Index>(plan: &SparseSoftmax<T, I>) -> String {
    let entries: Vec<&str> = plan.parts().iter().map(|part| part.forward).collect();
    entries.join(" + ")
}

/// What a choice for this softmax, from these kernels, belongs to.
fn key_of<T: Value, I: Index>(
    a: &CsrMatrix<T, I>,
    plan: &SparseSoftmax<T, I>,
    candidates: &[&str],
) -> String {
    let surroundings = key::surroundings(a.device().info(), entries::softmax());
    let (value, batch) = (T::TYPE, plan.options().batch);
    let (rows, nnz, order) = (a.rows(), a.nnz(), a.pattern().row_order);
    let rows_class = key::row_class(a.stats());
    let candidates = key::set(candidates.iter().copied());
    format!(
        "{surroundings}; softmax {value} {rows} rows, {nnz} nonzeros, {rows_class}, {order:?}; batch {batch}; of \
         {candidates}"
    )
}

/// x and y to measure with.
fn scratch<T: Value, I: Index>(
    a: &CsrMatrix<T, I>,
    batch: usize,
) -> Result<(CsrMatrix<T, I>, CsrMatrix<T, I>)> {
    let (mut x, y) = (a.with_zeros(batch)?, a.with_zeros(batch)?);
    for matrix in 0..batch {
        draw_into(x.batch_values_mut(matrix)?)?;
    }
    Ok((x, y))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;

    use lacuna_matrix::{Csr, generate};

    use super::*;
    use crate::{Device, RowOrder, Value};

    /// A matrix with rows of very different lengths, so that the model takes several kernels.
    fn matrix<T: Value>(device: &Device, order: RowOrder) -> CsrMatrix<T> {
        let pattern = generate::power_law(3000, 3000, 20.0, 1.6, 1).unwrap();
        let ones = vec![T::from_f32(1.0); pattern.nnz()];
        CsrMatrix::with_row_order(device, &Csr::with_values(Arc::new(pattern), ones).unwrap(), order).unwrap()
    }

    #[test]
    fn one_kernel_may_win_over_several_and_is_kept() {
        let (tuner, a) =
            (Autotuner::in_memory(), matrix::<f32>(&Device::simulator(), RowOrder::LongestFirst));
        let options = softmax::Options::default().scale(0.5);
        let timed = RefCell::new(Vec::new());
        let backwards = |plan: &SparseSoftmax| {
            timed.borrow_mut().push(name(plan));
            Ok(1000.0 - timed.borrow().len() as f64)
        };
        let model = SparseSoftmax::plan_with(&a, options).unwrap();
        assert!(model.parts().len() > 1, "{:?}", model.parts());
        let plan = tuner.softmax_by(&a, options, backwards).unwrap();
        assert_eq!(timed.borrow().len(), 1 + model.legal().len());
        assert_eq!(timed.borrow()[0], name(&model));
        assert_eq!((name(&plan), *plan.options()), (timed.borrow().last().unwrap().clone(), options));
        assert_eq!(plan.parts()[0].rows, a.row_lengths().nonempty());
        let again = tuner.softmax_by(&a, options.scale(2.0), |_| unreachable!("known")).unwrap();
        assert_eq!((name(&again), tuner.problems()), (name(&plan), 1));
    }

    #[test]
    fn several_kernels_may_win_and_an_algorithm_asked_for_is_not_measured() {
        let (tuner, a) =
            (Autotuner::in_memory(), matrix::<f32>(&Device::simulator(), RowOrder::LongestFirst));
        let model = SparseSoftmax::plan(&a).unwrap();
        let several = |plan: &SparseSoftmax| Ok(if plan.parts().len() > 1 { 1.0 } else { 2.0 });
        let plan = tuner.softmax_by(&a, softmax::Options::default(), several).unwrap();
        assert_eq!(plan.parts(), model.parts());
        let asked = softmax::Options::default().algorithm(model.legal()[1]);
        let plan = tuner.softmax_by(&a, asked, |_| unreachable!("nothing to choose")).unwrap();
        assert_eq!((plan.parts().len(), tuner.problems()), (1, 1));
    }

    #[test]
    fn types_batches_and_orders_of_rows_are_problems_of_their_own() {
        fn key<T: Value>(a: &CsrMatrix<T>, batch: usize) -> String {
            let plan = SparseSoftmax::plan_with(a, softmax::Options::default().batch(batch)).unwrap();
            key_of(a, &plan, &[])
        }
        let device = Device::simulator();
        let sorted = matrix::<f32>(&device, RowOrder::LongestFirst);
        let keys = [
            key(&sorted, 1),
            key(&sorted, 2),
            key(&matrix::<f32>(&device, RowOrder::Unsorted), 1),
            key(&matrix::<half::f16>(&device, RowOrder::LongestFirst), 1),
        ];
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key), "{key}");
        }
    }

    #[test]
    fn what_is_measured_on_can_be_run() {
        let device = Device::simulator();
        let pattern = generate::uniform(5, 9, 0.5, 1).unwrap();
        let ones = vec![1.0; pattern.nnz()];
        let a = CsrMatrix::<f32>::new(&device, &Csr::with_values(Arc::new(pattern), ones).unwrap()).unwrap();
        let (x, mut y) = scratch(&a, 2).unwrap();
        let plan = SparseSoftmax::plan_with(&a, softmax::Options::default().batch(2)).unwrap();
        let stream = device.stream().unwrap();
        plan.run(&stream, &x, &mut y).unwrap();
        let y = y.batch_values(1).unwrap().download(&stream).unwrap();
        assert!(y.iter().all(|&value| value > 0.0 && value <= 1.0), "{y:?}");
    }
}
