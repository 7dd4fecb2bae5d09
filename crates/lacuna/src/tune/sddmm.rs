//! Tuned plans of SDDMM.
use lacuna_kernels::entries;

use super::kernels::{best_of_alignments, drawn, ranked, worth_measuring};
use super::{Autotuner, key, stopwatch};
use crate::{Buffer, CsrMatrix, Index, Result, Sddmm, Stream, Value, sddmm};

/// A, B and D to measure with.
struct Scratch<T: Value, I: Index> {
    a: Buffer<T>,
    b: Buffer<T>,
    d: CsrMatrix<T, I>,
}

impl Autotuner {
    /// As [`Sddmm::plan_with`], with the kernel that was measured to be the fastest: as [`plan`](Self::plan), on A, B and D of
    /// its own. What is measured is the product alone: the choice serves products that are scaled by C, too.
    ///
    /// # Errors
    /// Those of [`Sddmm::plan_with`]; [`Error::OtherDevice`](crate::Error::OtherDevice) for a stream of another device; what
    /// running a kernel fails with.
    pub fn sddmm<T: Value, I: Index>(
        &self,
        stream: &Stream,
        c: &CsrMatrix<T, I>,
        k: usize,
        options: sddmm::Options,
    ) -> Result<Sddmm<T, I>> {
        c.device().expect_same("tuning SDDMM", "the stream", stream.device())?;
        if c.device().is_simulator() {
            return Sddmm::plan_with(c, k, options);
        }
        let mut operands = None;
        self.sddmm_by(c, k, options, |plan| {
            let Scratch { a, b, d } = match &mut operands {
                Some(operands) => operands,
                none => none.insert(scratch(c, plan)?),
            };
            stopwatch::time(stream, |stream| plan.run(stream, a.as_slice(), b.as_slice(), d))
        })
    }

    /// The same, with `time` to tell the microseconds that a plan takes.
    fn sddmm_by<T: Value, I: Index>(
        &self,
        c: &CsrMatrix<T, I>,
        k: usize,
        options: sddmm::Options,
        mut time: impl FnMut(&Sddmm<T, I>) -> Result<f64>,
    ) -> Result<Sddmm<T, I>> {
        let plan = Sddmm::plan_with(c, k, options)?;
        let legal = plan.legal();
        let candidates = &legal[0];
        let has_work = c.nnz() > 0 && options.batch > 0;
        if options.algorithm != sddmm::Algorithm::Auto || !has_work || candidates.len() < 2 {
            return Ok(plan);
        }
        let names: Vec<Vec<&str>> =
            legal.iter().map(|legal| legal.iter().map(|choice| choice.entry).collect()).collect();
        let measure = || {
            let worth: Vec<_> = worth_measuring(candidates, |choice| choice.cost).collect();
            let ranking = ranked(
                &worth,
                |choice| choice.entry.into(),
                |choice| time(&Sddmm::plan_with(c, k, options.algorithm(choice.algorithm))?),
            )?;
            Ok(best_of_alignments(&ranking, &names))
        };
        match self.measured(&key_of(c, &plan, candidates), &names[0], measure)? {
            Some(ranking) => {
                let entries: Vec<&str> = ranking.iter().map(|kernel| kernel.entry.as_str()).collect();
                plan.preferring(&legal, &entries)
            }
            None => Ok(plan),
        }
    }
}

/// What a choice for this product, from these kernels, belongs to: as for SpMM. Whether B is turned first does not count: the
/// kernels read it as N×K all the same.
fn key_of<T: Value, I: Index>(
    c: &CsrMatrix<T, I>,
    plan: &Sddmm<T, I>,
    candidates: &[sddmm::Choice],
) -> String {
    let surroundings = key::surroundings(c.device().info(), entries::sddmm());
    let sddmm::Problem { rows, cols, nnz, k, vector, batch, value, index, precision, .. } =
        plan.aligned_problem();
    let rows_class = key::row_class(c.stats());
    let candidates = key::set(candidates.iter().map(|choice| choice.entry));
    let sddmm::Options { order, a_batch_stride, b_batch_stride, .. } = *plan.options();
    // All products may share one A or one B, which caches then hold.
    let is_shared = |stride: Option<usize>| batch > 1 && stride == Some(0);
    let one_a = if is_shared(a_batch_stride) { ", one A" } else { "" };
    let one_b = if is_shared(b_batch_stride) { ", one B" } else { "" };
    format!(
        "{surroundings}; sddmm {value} {index} {precision:?} {rows}×{cols}, {nnz} nonzeros, {rows_class}, tiles \
         {order:?}; k {k}, vectors of {vector}, batch {batch}{one_a}{one_b}; of {candidates}"
    )
}

fn scratch<T: Value, I: Index>(c: &CsrMatrix<T, I>, plan: &Sddmm<T, I>) -> Result<Scratch<T, I>> {
    let device = c.device();
    let (a, b) = (drawn(device, plan.a_len())?, drawn(device, plan.b_len())?);
    Ok(Scratch { a, b, d: c.with_zeros(plan.options().batch)? })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;

    use lacuna_matrix::{Csr, generate};

    use super::*;
    use crate::{Device, Precision, sddmm};

    fn matrix<T: Value>(device: &Device) -> CsrMatrix<T> {
        let pattern = generate::uniform(40, 60, 0.8, 1).unwrap();
        let ones = vec![T::from_f32(1.0); pattern.nnz()];
        CsrMatrix::with_index(device, &Csr::with_values(Arc::new(pattern), ones).unwrap()).unwrap()
    }

    #[test]
    fn the_fastest_is_taken_at_every_alignment_and_measured_once() {
        let device = Device::simulator();
        let (tuner, c) = (Autotuner::in_memory(), matrix::<f32>(&device));
        let timed = RefCell::new(Vec::new());
        let backwards = |plan: &Sddmm| {
            timed.borrow_mut().push(plan.choice().entry);
            Ok(1000.0 - timed.borrow().len() as f64)
        };
        let options = sddmm::Options::default();
        let plan = tuner.sddmm_by(&c, 32, options, backwards).unwrap();
        assert!(timed.borrow().len() >= 2, "{timed:?}");
        assert_eq!(plan.choice().entry, *timed.borrow().last().unwrap());
        assert_eq!(*plan.options(), options);
        let again = tuner.sddmm_by(&c, 32, options, |_| unreachable!("known")).unwrap();
        assert_eq!((again.choice().entry, tuner.problems()), (plan.choice().entry, 1));

        let stream = device.stream().unwrap();
        let mut d = c.with_zeros::<f32>(1).unwrap();
        let [a, b] = [plan.a_len(), plan.b_len()].map(|len| device.upload(&vec![1.0_f32; len + 4]).unwrap());
        for offset in 0..4 {
            let a = a.slice(offset..offset + plan.a_len()).unwrap();
            let b = b.slice(offset..offset + plan.b_len()).unwrap();
            plan.run(&stream, a, b, &mut d).unwrap();
            assert!(d.values().unwrap().download(&stream).unwrap().iter().all(|&value| value == 32.0));
        }
    }

    #[test]
    fn what_leaves_no_choice_is_not_measured() {
        let (tuner, c) = (Autotuner::in_memory(), matrix::<f32>(&Device::simulator()));
        let asked = sddmm::Options::default().algorithm(Sddmm::plan(&c, 32).unwrap().legal()[0][1].algorithm);
        let plan = tuner.sddmm_by(&c, 32, asked, |_| unreachable!("nothing to choose")).unwrap();
        assert_eq!(plan.choice().algorithm, asked.algorithm);
        let none = sddmm::Options::default().batch(0);
        tuner.sddmm_by(&c, 32, none, |_| unreachable!("nothing to do")).unwrap();
        assert_eq!(tuner.problems(), 0);
    }

    #[test]
    fn types_precisions_orders_and_strides_are_problems_of_their_own() {
        fn key<T: Value>(c: &CsrMatrix<T>, options: sddmm::Options) -> String {
            let plan = Sddmm::plan_with(c, 32, options).unwrap();
            key_of(c, &plan, &plan.legal()[0])
        }
        let device = Device::simulator();
        let (c, halves) = (matrix::<f32>(&device), matrix::<half::f16>(&device));
        let (one, batch) = (sddmm::Options::default(), sddmm::Options::default().batch(2));
        let keys = [
            key(&c, one),
            key(&halves, one),
            key(&c, one.precision(Precision::Tf32)),
            key(&c, one.order(sddmm::Schedule::ByColumn)),
            key(&c, batch),
            key(&c, batch.a_batch_stride(0)),
            key(&c, batch.b_batch_stride(0)),
            key(&c, one.a_stride(33)),
        ];
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key), "{key}");
        }
        assert_eq!(key(&c, one.b_transposed()), keys[0], "kernels read B the same way");
    }

    #[test]
    fn what_is_measured_on_can_be_run() {
        let device = Device::simulator();
        let c = matrix::<f32>(&device);
        let plan = Sddmm::plan_with(&c, 8, sddmm::Options::default().batch(2).b_transposed()).unwrap();
        let Scratch { a, b, mut d } = scratch(&c, &plan).unwrap();
        let stream = device.stream().unwrap();
        plan.run(&stream, a.as_slice(), b.as_slice(), &mut d).unwrap();
        assert!(d.batch_values(1).unwrap().download(&stream).unwrap().iter().any(|&value| value != 0.0));
    }
}
