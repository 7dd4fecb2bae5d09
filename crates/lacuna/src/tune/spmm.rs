//! Tuned plans of SpMM.
use lacuna_kernels::entries;

use super::format::Measured;
use super::rank::rank;
use super::{Autotuner, TuneWarning, key, stopwatch};
use crate::{
    Buffer, Choice, CsrMatrix, Device, Error, Problem, Result, Spmm, SpmmAlgorithm, SpmmOptions, Stream,
};

/// Kernels whose modelled cost is more than this many times the lowest are not measured. The model's own choice is
/// seldom a fifth slower than the best, and there are kernels that would take a hundred times as long.
const WORTH_MEASURING: f64 = 4.0;
/// Elements of B that are drawn; more repeat them.
const DRAWN: usize = 1 << 20;

impl Autotuner {
    /// As [`Spmm::plan_with`], with the kernel that was measured to be the fastest.
    ///
    /// For a problem without a known choice it times, on `stream` and with B and C of its own (K×N and M×N), each legal
    /// kernel whose modelled cost is at most four times the lowest: some tens of milliseconds, and longer where the
    /// driver has to compile kernels first. One measurement serves all alignments: where B's or C's address does not
    /// allow the fastest kernel, the fastest of those that it allows runs.
    ///
    /// The cost model alone chooses on the simulator, which has no time; for products without elements; and where the
    /// device has no room for B and C ([`TuneWarning::NoRoom`]). Then nothing is kept. An algorithm asked for in
    /// `options` is taken without measuring.
    ///
    /// The call waits for the stream when it measures, and must not be made while the stream is recorded.
    ///
    /// # Errors
    /// Those of [`Spmm::plan_with`]; [`Error::OtherDevice`] for a stream of another device; what running a kernel fails
    /// with.
    pub fn plan(&self, stream: &Stream, a: &CsrMatrix, n: usize, options: SpmmOptions) -> Result<Spmm> {
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
    fn plan_by(
        &self,
        a: &CsrMatrix,
        n: usize,
        options: SpmmOptions,
        time: impl FnMut(&Spmm) -> Result<f64>,
    ) -> Result<Spmm> {
        let plan = Spmm::plan_with(a, n, options)?;
        let candidates = plan.candidates(a);
        if options.algorithm != SpmmAlgorithm::Auto || plan.output_len() == 0 || candidates.len() < 2 {
            return Ok(plan);
        }
        let is_legal = |kernel: &Measured| candidates.iter().any(|choice| choice.entry == kernel.entry);
        let measure = || {
            let plans: Result<Vec<Spmm>> = worth_measuring(&candidates)
                .map(|choice| Spmm::plan_with(a, n, options.algorithm(choice.algorithm)))
                .collect();
            let plans = plans?;
            let ranking = rank(&plans, time)?.into_iter();
            Ok(best_of_vectors(ranking.map(|(index, us)| (plans[index].choice(), us))))
        };
        match self.ranking(&key_of(a, n), |ranking| ranking.iter().any(is_legal), measure) {
            Ok(ranking) => {
                let entries: Vec<&str> = ranking.iter().map(|kernel| kernel.entry.as_str()).collect();
                Ok(plan.preferring(a, &entries))
            }
            Err(error @ Error::OutOfMemory { .. }) => {
                self.state().warn(TuneWarning::NoRoom { why: error.to_string() });
                Ok(plan)
            }
            Err(error) => Err(error),
        }
    }
}

/// What a choice for this product belongs to.
fn key_of(a: &CsrMatrix, n: usize) -> String {
    let surroundings = key::surroundings(a.device().info(), entries::spmm());
    let Problem { rows, cols, nnz, n, vector, .. } = Problem::of(a, n, 4);
    let rows_class = key::row_class(a.stats());
    format!(
        "{surroundings}; spmm f32 u32 {rows}×{cols}, {nnz} nonzeros, {rows_class}; n {n}, vectors of {vector}"
    )
}

/// Those that may turn out to be the fastest, of kernels in the order of their costs.
fn worth_measuring(candidates: &[Choice]) -> impl Iterator<Item = &Choice> {
    let most = candidates.first().map_or(0.0, |choice| choice.cost * WORTH_MEASURING);
    candidates.iter().take_while(move |choice| choice.cost <= most)
}

/// Of a ranking, fastest first, those that any alignment of B and C can make the best. A kernel is legal wherever one with
/// wider vectors is, so behind a faster kernel only one with narrower vectors counts.
fn best_of_vectors<'c>(ranking: impl Iterator<Item = (&'c Choice, f64)>) -> Vec<Measured> {
    let mut narrowest = u32::MAX;
    let mut best = Vec::new();
    for (choice, us) in ranking {
        if choice.tile.vector < narrowest {
            narrowest = choice.tile.vector;
            best.push(Measured::new(choice.entry, us));
        }
    }
    best
}

/// B and C to measure with. B has values of both signs and all sizes below 1, since multiplying zeros takes less power
/// and so may take less time.
fn scratch(device: &Device, plan: &Spmm) -> Result<(Buffer<f32>, Buffer<f32>)> {
    let len = plan.input_len();
    let c = device.zeros(plan.output_len())?;
    let mut b = device.uninitialized(len)?;
    let mut state = 1_u32;
    let mut draw = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let drawn: Vec<f32> = (0..DRAWN.min(len)).map(|_| draw()).collect();
    for start in (0..len).step_by(DRAWN) {
        let end = len.min(start + DRAWN);
        b.slice_mut(start..end)?.upload(&drawn[..end - start])?;
    }
    Ok((b, c))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;

    use lacuna_matrix::{Csr, generate};

    use super::*;
    use crate::choose;

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
        let options = SpmmOptions::default();
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
        let plan = tuner.plan_by(&a, 8, SpmmOptions::default(), backwards(&RefCell::default())).unwrap();
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
        let algorithm = SpmmAlgorithm::RowSplit { vector: 4, lanes: 32, split: 1, warps: 32 };
        let options = SpmmOptions::default().algorithm(algorithm);
        let plan = tuner.plan_by(&a, 32, options, |_| unreachable!("nothing to choose")).unwrap();
        assert_eq!(plan.choice().algorithm, algorithm);
        let none = tuner.plan_by(&a, 0, SpmmOptions::default(), |_| unreachable!("nothing to do")).unwrap();
        assert_eq!((none.output_len(), tuner.problems()), (0, 0));
    }

    #[test]
    fn without_room_the_model_chooses_and_without_times_too() {
        let (tuner, a) = (Autotuner::in_memory(), matrix(&Device::simulator(), 1));
        let full = |_: &Spmm| Err(Error::OutOfMemory { device: "GPU".into(), asked: 9, free: 1, total: 8 });
        let model = Spmm::plan(&a, 32).unwrap().choice().entry;
        let plan = tuner.plan_by(&a, 32, SpmmOptions::default(), full).unwrap();
        assert_eq!((plan.choice().entry, tuner.problems()), (model, 0));
        assert!(matches!(&tuner.warnings()[..], [TuneWarning::NoRoom { why }] if why.contains("9 bytes")));
        let plan = tuner.plan_by(&a, 32, SpmmOptions::default(), |_| Ok(f64::NAN)).unwrap();
        assert_eq!((plan.choice().entry, tuner.problems()), (model, 0));
    }

    #[test]
    fn other_failures_are_errors() {
        let (tuner, a) = (Autotuner::in_memory(), matrix(&Device::simulator(), 1));
        let failing = |_: &Spmm| Err(Error::Cuda { call: "cuLaunchKernel", why: "lost".into() });
        let error = tuner.plan_by(&a, 32, SpmmOptions::default(), failing).unwrap_err();
        assert!(matches!(error, Error::Cuda { .. }), "{error}");
    }

    #[test]
    fn hopeless_kernels_are_not_measured() {
        let a = matrix(&Device::simulator(), 1);
        let small = Problem::of(&a, 128, 4);
        let large = Problem { rows: 8192, cols: 2048, nnz: 8192 * 512, longest_row: 600, ..small };
        let candidates = choose(&large);
        let worth = worth_measuring(&candidates).count();
        assert!(worth >= 2 && worth < candidates.len(), "{worth} of {}", candidates.len());
        assert_eq!(worth_measuring(&[]).count(), 0);
    }

    #[test]
    fn only_kernels_that_an_alignment_can_make_the_best_are_kept() {
        let a = matrix(&Device::simulator(), 1);
        let choices = choose(&Problem::of(&a, 32, 4));
        let with = |vector: u32, nth: usize| {
            choices.iter().filter(|choice| choice.tile.vector == vector).nth(nth).unwrap()
        };
        let ranking = [with(2, 0), with(4, 0), with(2, 1), with(1, 0), with(4, 1), with(1, 1)];
        let kept = best_of_vectors(ranking.into_iter().zip([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        let expected = [Measured::new(with(2, 0).entry, 1.0), Measured::new(with(1, 0).entry, 4.0)];
        assert_eq!(kept, expected);
    }

    #[test]
    fn scratch_repeats_what_was_drawn() {
        let device = Device::simulator();
        let stream = device.stream().unwrap();
        let pattern = generate::uniform(1, 300, 0.9, 1).unwrap();
        let a = Csr::with_values(Arc::new(pattern.clone()), vec![1.0; pattern.nnz()]).unwrap();
        let plan = Spmm::plan(&CsrMatrix::new(&device, &a).unwrap(), 4000).unwrap();
        let (b, c) = scratch(&device, &plan).unwrap();
        assert_eq!((b.len(), c.len()), (1_200_000, 4000));
        let b = b.download(&stream).unwrap();
        assert_eq!(b[..100], b[DRAWN..DRAWN + 100]);
        assert!(b.iter().all(|value| value.abs() <= 1.0));
        assert!(b.iter().any(|&value| value < -0.5) && b.iter().any(|&value| value > 0.5));
    }
}
