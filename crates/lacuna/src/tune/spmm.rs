//! Tuned plans of SpMM.
use lacuna_kernels::entries;

use super::kernels::{best_of_alignments, drawn, ranked, worth_measuring};
use super::{Autotuner, key, stopwatch};
use crate::{Buffer, CsrMatrix, Device, Index, Result, Spmm, Stream, Value, spmm};

/// B and C to measure with.
type Scratch<T> = (Buffer<T>, Buffer<T>);

impl Autotuner {
    /// As [`Spmm::plan_with`], with the kernel that was measured to be the fastest.
    ///
    /// For a problem without a known choice it times, on `stream` and with B and C of its own (as large as the plan's, with
    /// their strides and batch), each kernel that is legal for whole buffers and whose modelled cost is at most four times
    /// the lowest: some tens of milliseconds, and longer where the driver has to compile kernels first. One measurement
    /// serves all alignments: where B's or C's address does not allow the fastest kernel, the fastest of those that it
    /// allows runs, or else the cost model's choice. What is measured is the plain product: the choice serves every alpha,
    /// beta, bias and clamp.
    ///
    /// The cost model alone chooses on the simulator, which has no time; for products without elements; and where the
    /// device has no room for B and C ([`TuneWarning::NoRoom`](crate::TuneWarning::NoRoom)). Then nothing is kept. An algorithm asked for in
    /// `options` is taken without measuring.
    ///
    /// The call waits for the stream when it measures, and must not be made while the stream is recorded.
    ///
    /// # Errors
    /// Those of [`Spmm::plan_with`]; [`Error::OtherDevice`](crate::Error::OtherDevice) for a stream of another device; what running a kernel fails
    /// with.
    pub fn plan<T: Value, I: Index>(
        &self,
        stream: &Stream,
        a: &CsrMatrix<T, I>,
        n: usize,
        options: spmm::Options,
    ) -> Result<Spmm<T, I>> {
        a.device().expect_same("tuning SpMM", "the stream", stream.device())?;
        if a.device().is_simulator() {
            return Spmm::plan_with(a, n, options);
        }
        let mut operands = None;
        self.plan_by(a, n, options, |plan| {
            let (b, c) = match &mut operands {
                Some(operands) => operands,
                none => none.insert(scratch(a.device(), plan)?),
            };
            stopwatch::time(stream, |stream| plan.run(stream, a, b.as_slice(), c.as_slice_mut()))
        })
    }

    /// The same, with `time` to tell the microseconds that a plan takes.
    fn plan_by<T: Value, I: Index>(
        &self,
        a: &CsrMatrix<T, I>,
        n: usize,
        options: spmm::Options,
        mut time: impl FnMut(&Spmm<T, I>) -> Result<f64>,
    ) -> Result<Spmm<T, I>> {
        let plan = Spmm::plan_with(a, n, options)?;
        let legal = plan.legal(a);
        let candidates = &legal[0];
        if options.algorithm != spmm::Algorithm::Auto || plan.output_len() == 0 || candidates.len() < 2 {
            return Ok(plan);
        }
        let names: Vec<Vec<&str>> =
            legal.iter().map(|legal| legal.iter().map(|choice| choice.entry).collect()).collect();
        let measure = || {
            let worth: Vec<_> = worth_measuring(candidates, |choice| choice.cost).collect();
            let ranking = ranked(
                &worth,
                |choice| choice.entry.into(),
                |choice| time(&Spmm::plan_with(a, n, plain(options).algorithm(choice.algorithm))?),
            )?;
            Ok(best_of_alignments(&ranking, &names))
        };
        match self.measured(&key_of(a, &plan, candidates), &names[0], measure)? {
            Some(ranking) => {
                let entries: Vec<&str> = ranking.iter().map(|kernel| kernel.entry.as_str()).collect();
                plan.preferring(a, &legal, &entries)
            }
            None => Ok(plan),
        }
    }
}

/// These options without an epilogue: what is measured, so that choices do not depend on it, and repeated products do not
/// grow in C.
fn plain(options: spmm::Options) -> spmm::Options {
    options.alpha(1.0).beta(0.0).clamp(f32::NEG_INFINITY, f32::INFINITY)
}

/// What a choice for this product, from these kernels, belongs to. The kernels say by which rules they are legal: products
/// that may choose from others have choices of their own.
fn key_of<T: Value, I: Index>(a: &CsrMatrix<T, I>, plan: &Spmm<T, I>, candidates: &[spmm::Choice]) -> String {
    let surroundings = key::surroundings(a.device().info(), entries::spmm());
    let spmm::Problem { rows, cols, nnz, n, vector, batch, value, index, precision, .. } =
        plan.aligned_problem(a);
    let rows_class = key::row_class(a.stats());
    let order = a.pattern().row_order;
    let candidates = key::set(candidates.iter().map(|choice| choice.entry));
    let matrices = a.batch();
    // All products may share one B, which caches then hold.
    let shared = if batch > 1 && plan.options().b_batch_stride == Some(0) { ", one B" } else { "" };
    format!(
        "{surroundings}; spmm {value} {index} {precision:?} {rows}×{cols}, {nnz} nonzeros, {rows_class}, {order:?}; \
         n {n}, vectors of {vector}, batch {batch} of {matrices} A{shared}; of {candidates}"
    )
}

/// B and C to measure with.
fn scratch<T: Value, I: Index>(device: &Device, plan: &Spmm<T, I>) -> Result<Scratch<T>> {
    Ok((drawn(device, plan.input_len())?, device.zeros(plan.output_len())?))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;

    use lacuna_matrix::{Csr, generate};

    use super::*;
    use crate::{Error, RowOrder, TuneWarning, spmm};

    fn matrix(device: &Device, seed: u64) -> CsrMatrix {
        let pattern = generate::uniform(40, 60, 0.8, seed).unwrap();
        let values = generate::random_values(pattern.nnz(), seed);
        CsrMatrix::new(device, &Csr::with_values(Arc::new(pattern), values).unwrap()).unwrap()
    }

    /// A time for each plan: the later in the model's order the shorter, so that the model is wrong as can be.
    fn backwards(timed: &RefCell<Vec<&'static str>>) -> impl FnMut(&Spmm) -> Result<f64> {
        move |plan| {
            timed.borrow_mut().push(plan.choice().entry);
            Ok(1000.0 - timed.borrow().len() as f64)
        }
    }

    #[test]
    fn the_fastest_is_taken_and_measured_once() {
        let (tuner, a) = (Autotuner::in_memory(), matrix(&Device::simulator(), 1));
        let timed = RefCell::default();
        let options = spmm::Options::default();
        let plan = tuner.plan_by(&a, 32, options, backwards(&timed)).unwrap();
        let count = timed.borrow().len();
        assert!(count >= 2 && plan.choice().entry == timed.borrow()[count - 1], "{:?}", timed.borrow());
        assert_ne!(plan.choice().entry, Spmm::plan(&a, 32).unwrap().choice().entry);
        // Another matrix of the same kind has the same choice; another N is another problem.
        let again = tuner.plan_by(&matrix(a.device(), 1), 32, options, backwards(&timed)).unwrap();
        assert_eq!((again.choice().entry, timed.borrow().len()), (plan.choice().entry, count));
        tuner.plan_by(&a, 64, options, backwards(&timed)).unwrap();
        assert!(timed.borrow().len() > count && tuner.problems() == 2);
    }

    #[test]
    fn tuned_plans_run_at_every_alignment() {
        let device = Device::simulator();
        let (tuner, a, stream) = (Autotuner::in_memory(), matrix(&device, 1), device.stream().unwrap());
        let plan = tuner.plan_by(&a, 8, spmm::Options::default(), backwards(&RefCell::default())).unwrap();
        let ones = device.upload(&vec![1.0_f32; plan.input_len() + 4]).unwrap();
        let mut results = Vec::new();
        for offset in 0..4 {
            let mut c = device.zeros(plan.output_len() + 4).unwrap();
            let b = ones.slice(offset..offset + plan.input_len()).unwrap();
            plan.run(&stream, &a, b, c.slice_mut(offset..offset + plan.output_len()).unwrap()).unwrap();
            results.push(c.slice(offset..offset + plan.output_len()).unwrap().download(&stream).unwrap());
        }
        for result in &results {
            for (got, expected) in result.iter().zip(&results[0]) {
                assert!((got - expected).abs() < 1e-4, "{got} {expected}");
            }
        }
    }

    #[test]
    fn an_algorithm_asked_for_is_not_measured() {
        let (tuner, a) = (Autotuner::in_memory(), matrix(&Device::simulator(), 1));
        let algorithm = spmm::Algorithm::RowSplit { vector: 4, lanes: 32, split: 1, warps: 32 };
        let options = spmm::Options::default().algorithm(algorithm);
        let plan = tuner.plan_by(&a, 32, options, |_| unreachable!("nothing to choose")).unwrap();
        assert_eq!(plan.choice().algorithm, algorithm);
        let none = tuner.plan_by(&a, 0, spmm::Options::default(), |_| unreachable!("nothing to do")).unwrap();
        assert_eq!((none.output_len(), tuner.problems()), (0, 0));
    }

    #[test]
    fn without_room_the_model_chooses_and_without_times_too() {
        let (tuner, a) = (Autotuner::in_memory(), matrix(&Device::simulator(), 1));
        let full = |_: &Spmm| Err(Error::OutOfMemory { device: "GPU".into(), asked: 9, free: 1, total: 8 });
        let model = Spmm::plan(&a, 32).unwrap().choice().entry;
        let plan = tuner.plan_by(&a, 32, spmm::Options::default(), full).unwrap();
        assert_eq!((plan.choice().entry, tuner.problems()), (model, 0));
        assert!(matches!(&tuner.warnings()[..], [TuneWarning::NoRoom { why }] if why.contains("9 bytes")));
        let plan = tuner.plan_by(&a, 32, spmm::Options::default(), |_| Ok(f64::NAN)).unwrap();
        assert_eq!((plan.choice().entry, tuner.problems()), (model, 0));
    }

    #[test]
    fn other_failures_are_errors() {
        let (tuner, a) = (Autotuner::in_memory(), matrix(&Device::simulator(), 1));
        let failing = |_: &Spmm| Err(Error::Cuda { call: "cuLaunchKernel", why: "lost".into() });
        let error = tuner.plan_by(&a, 32, spmm::Options::default(), failing).unwrap_err();
        assert!(matches!(error, Error::Cuda { .. }), "{error}");
    }

    #[test]
    fn hopeless_kernels_are_not_measured() {
        let a = matrix(&Device::simulator(), 1);
        let small = spmm::Problem::of(&a, 128, 8);
        let large = spmm::Problem { rows: 8192, cols: 2048, nnz: 8192 * 512, longest_row: 600, ..small };
        let candidates = spmm::choose(&large);
        let worth = worth_measuring(&candidates, |choice| choice.cost).count();
        assert!(worth >= 2 && worth < candidates.len(), "{worth} of {}", candidates.len());
    }

    fn key<T: Value, I: Index>(a: &CsrMatrix<T, I>, options: spmm::Options) -> String {
        let plan = Spmm::plan_with(a, 32, options).unwrap();
        key_of(a, &plan, &plan.legal(a)[0])
    }

    #[test]
    fn orders_of_rows_and_kernels_to_choose_from_are_problems_of_their_own() {
        let (device, options) = (Device::simulator(), spmm::Options::default());
        let pattern = Arc::new(generate::uniform(40, 60, 0.8, 1).unwrap());
        let host = Csr::with_values(Arc::clone(&pattern), vec![1.0; pattern.nnz()]).unwrap();
        let of_order = |order| CsrMatrix::<f32>::with_row_order(&device, &host, order).unwrap();
        let a = of_order(RowOrder::LongestFirst);
        assert_ne!(key(&a, options), key(&of_order(RowOrder::Unsorted), options));
        // Rules that make other kernels legal, such as from which length of rows on tiles are, lead to other keys; costs, by
        // which kernels are sorted, do not.
        let plan = Spmm::plan(&a, 32).unwrap();
        let mut legal = plan.legal(&a)[0].clone();
        let known = key_of(&a, &plan, &legal);
        legal.reverse();
        assert_eq!(key_of(&a, &plan, &legal), known);
        legal.pop();
        assert_ne!(key_of(&a, &plan, &legal), known);
    }

    #[test]
    fn types_batches_and_strides_are_problems_of_their_own() {
        let device = Device::simulator();
        let pattern = Arc::new(generate::uniform(40, 60, 0.8, 1).unwrap());
        let values = vec![half::f16::ONE; pattern.nnz()];
        let host = Csr::with_values(pattern, values.clone()).unwrap();
        let halves = CsrMatrix::<half::f16, u16>::with_index(&device, &host).unwrap();
        let wide = CsrMatrix::new(&device, &host).unwrap();
        let two = halves.with_value_batch(2, &[values.clone(), values].concat()).unwrap();
        let (one, batch) = (spmm::Options::default(), spmm::Options::default().batch(2));
        let keys = [
            key(&matrix(&device, 1), one),
            key(&halves, one),
            key(&wide, one),
            key(&halves, batch),
            key(&two, batch),
            key(&halves, batch.b_batch_stride(0)),
            key(&halves, one.b_stride(36)),
            key(&halves, one.c_stride(33)),
        ];
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key), "{key}");
        }
        assert_eq!(key(&halves, one.alpha(3.0).beta(1.0).relu()), keys[1], "epilogues share a choice");
        assert_eq!(key(&halves, one.b_stride(40)), keys[1], "strides that allow the same share a choice");
    }

    #[test]
    fn halves_are_tuned_without_their_epilogue() {
        let device = Device::simulator();
        let pattern = Arc::new(generate::uniform(40, 60, 0.8, 1).unwrap());
        let host = Csr::with_values(Arc::clone(&pattern), vec![half::f16::ONE; pattern.nnz()]).unwrap();
        let a = CsrMatrix::<half::f16, u16>::with_index(&device, &host).unwrap();
        let options = spmm::Options::default().beta(1.0).relu().b_stride(36);
        let (tuner, mut timed) = (Autotuner::in_memory(), Vec::new());
        let plan = tuner
            .plan_by(&a, 32, options, |plan| {
                let spmm::Options { beta, lo, b_stride, .. } = *plan.options();
                assert_eq!((beta, lo, b_stride), (0.0, f32::NEG_INFINITY, Some(36)));
                timed.push(plan.choice().entry);
                Ok(1000.0 - timed.len() as f64)
            })
            .unwrap();
        assert!(timed.len() >= 2 && plan.choice().entry == *timed.last().unwrap(), "{timed:?}");
        assert!(timed.iter().all(|entry| entry.starts_with("spmm_f16_u16_")), "{timed:?}");
        assert_eq!(*plan.options(), options);
    }
}
