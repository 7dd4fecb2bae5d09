//! Tuned plans of sparse attention.
use lacuna_kernels::entries;

use super::kernels::{best_of_alignments, drawn, ranked, worth_measuring};
use super::{Autotuner, key, stopwatch};
use crate::{Buffer, CsrMatrix, Device, Index, Result, SparseAttention, Stream, Value, attention};

/// Q, K, V and O to measure with.
struct Scratch<T: Value> {
    q: Buffer<T>,
    k: Buffer<T>,
    v: Buffer<T>,
    o: Buffer<T>,
}

impl Autotuner {
    /// As [`SparseAttention::plan_with`], with the fused kernel that was measured to be the fastest: as [`plan`](Self::plan), on
    /// Q, K, V and O of its own. Three steps are taken where nothing else can be, and not measured: they have no logarithms,
    /// and hold room for all scores.
    ///
    /// # Errors
    /// Those of [`SparseAttention::plan_with`]; [`Error::OtherDevice`](crate::Error::OtherDevice) for a stream of another
    /// device; what running a kernel fails with.
    pub fn attention<T: Value, I: Index>(
        &self,
        stream: &Stream,
        mask: &CsrMatrix<T, I>,
        dim: usize,
        options: attention::Options,
    ) -> Result<SparseAttention<T, I>> {
        mask.device().expect_same("tuning attention", "the stream", stream.device())?;
        if mask.device().is_simulator() {
            return SparseAttention::plan_with(mask, dim, options);
        }
        let mut operands = None;
        self.attention_by(mask, dim, options, |plan| {
            let Scratch { q, k, v, o } = match &mut operands {
                Some(operands) => operands,
                none => none.insert(scratch(mask.device(), plan)?),
            };
            stopwatch::time(stream, |stream| {
                plan.run(stream, q.as_slice(), k.as_slice(), v.as_slice(), o.as_slice_mut())
            })
        })
    }

    /// The same, with `time` to tell the microseconds that a plan takes.
    fn attention_by<T: Value, I: Index>(
        &self,
        mask: &CsrMatrix<T, I>,
        dim: usize,
        options: attention::Options,
        mut time: impl FnMut(&SparseAttention<T, I>) -> Result<f64>,
    ) -> Result<SparseAttention<T, I>> {
        let plan = SparseAttention::plan_with(mask, dim, options)?;
        if options.algorithm != attention::Algorithm::Auto || plan.query_len() == 0 || mask.nnz() == 0 {
            return Ok(plan);
        }
        let legal = plan.legal()?;
        let candidates = &legal[0];
        if candidates.len() < 2 {
            return Ok(plan);
        }
        let names: Vec<Vec<&str>> =
            legal.iter().map(|legal| legal.iter().map(|choice| choice.entry).collect()).collect();
        let measure = || {
            let worth: Vec<_> = worth_measuring(candidates, |choice| choice.cost).collect();
            let ranking = ranked(
                &worth,
                |choice| choice.entry.into(),
                |choice| time(&SparseAttention::plan_with(mask, dim, options.algorithm(choice.algorithm))?),
            )?;
            Ok(best_of_alignments(&ranking, &names))
        };
        let ranking = self.measured(&key_of(mask, dim, &plan, candidates), &names[0], measure)?;
        Ok(match ranking {
            Some(ranking) => {
                let entries: Vec<&str> = ranking.iter().map(|kernel| kernel.entry.as_str()).collect();
                plan.preferring(&legal, &entries)
            }
            None => plan,
        })
    }
}

/// What a choice for this mask and dimension, from these kernels, belongs to. Masks in which four neighbours share other parts
/// of what they see are others, by tenths.
fn key_of<T: Value, I: Index>(
    mask: &CsrMatrix<T, I>,
    dim: usize,
    plan: &SparseAttention<T, I>,
    candidates: &[attention::Choice],
) -> String {
    let surroundings = key::surroundings(mask.device().info(), entries::attention());
    let (rows, cols, nnz, batch) = (mask.rows(), mask.cols(), mask.nnz(), plan.options().batch);
    let (value, index) = (T::TYPE, I::TYPE);
    let (rows_class, order) = (key::row_class(mask.stats()), mask.pattern().row_order);
    let fours = mask.pattern().quad_part().map_or_else(|| "none".into(), |part| format!("{part:.1}"));
    let candidates = key::set(candidates.iter().map(|choice| choice.entry));
    format!(
        "{surroundings}; attention {value} {index} {rows}×{cols}, {nnz} keys, {rows_class}, {order:?}, fours {fours}; d {dim}, \
         batch {batch}; of {candidates}"
    )
}

fn scratch<T: Value, I: Index>(device: &Device, plan: &SparseAttention<T, I>) -> Result<Scratch<T>> {
    let (queries, keys) = (plan.query_len(), plan.key_len());
    let [q, k, v] = [queries, keys, keys].map(|len| drawn(device, len));
    Ok(Scratch { q: q?, k: k?, v: v?, o: device.zeros(queries)? })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;

    use lacuna_matrix::{Csr, Pattern, generate};

    use super::*;

    const DIM: usize = 16;

    fn mask_of(device: &Device, pattern: Pattern) -> CsrMatrix {
        let ones = vec![1.0; pattern.nnz()];
        CsrMatrix::new(device, &Csr::with_values(Arc::new(pattern), ones).unwrap()).unwrap()
    }

    fn mask(device: &Device, band: usize) -> CsrMatrix {
        mask_of(device, generate::band_random(40, band, 0.9, 1).unwrap())
    }

    fn entry(plan: &SparseAttention) -> &'static str {
        plan.choice().unwrap().entry
    }

    #[test]
    fn the_fastest_is_taken_at_every_alignment_and_measured_once() {
        let device = Device::simulator();
        let (tuner, mask) = (Autotuner::in_memory(), mask(&device, 8));
        let timed = RefCell::new(Vec::new());
        let backwards = |plan: &SparseAttention| {
            timed.borrow_mut().push(entry(plan));
            Ok(1000.0 - timed.borrow().len() as f64)
        };
        let options = attention::Options::default().batch(2);
        let plan = tuner.attention_by(&mask, DIM, options, backwards).unwrap();
        assert!(timed.borrow().len() >= 2 && entry(&plan) == *timed.borrow().last().unwrap(), "{timed:?}");
        assert_eq!(*plan.options(), options);
        let again = tuner.attention_by(&mask, DIM, options.scale(1.0), |_| unreachable!("known")).unwrap();
        assert_eq!((entry(&again), tuner.problems()), (entry(&plan), 1));

        let stream = device.stream().unwrap();
        let mut results = Vec::new();
        for offset in 0..4 {
            let place = || {
                let buffer = device.upload(&vec![0.5_f32; plan.query_len() + offset]).unwrap();
                (buffer, offset..offset + plan.query_len())
            };
            let (from, range) = place();
            let from = from.slice(range.clone()).unwrap();
            let (mut o, _) = place();
            plan.run(&stream, from, from, from, o.slice_mut(range.clone()).unwrap()).unwrap();
            results.push(o.slice(range).unwrap().download(&stream).unwrap());
        }
        assert!(results.iter().flatten().all(|&value| (value - 0.5).abs() < 1e-6));
    }

    #[test]
    fn three_steps_and_algorithms_asked_for_are_not_measured() {
        let (tuner, mask) = (Autotuner::in_memory(), mask(&Device::simulator(), 8));
        let options = attention::Options::default();
        let wide = tuner.attention_by(&mask, 300, options, |_| unreachable!("one way")).unwrap();
        assert!(wide.choice().is_none());
        let legal = SparseAttention::plan(&mask, DIM).unwrap().legal().unwrap();
        let asked = options.algorithm(legal[0].last().unwrap().algorithm);
        let plan = tuner.attention_by(&mask, DIM, asked, |_| unreachable!("nothing to choose")).unwrap();
        assert_eq!((plan.choice().unwrap().algorithm, tuner.problems()), (asked.algorithm, 0));
    }

    #[test]
    fn masks_dimensions_and_heads_are_problems_of_their_own() {
        let device = Device::simulator();
        let key = |mask: &CsrMatrix, dim: usize, heads: usize| {
            let plan =
                SparseAttention::plan_with(mask, dim, attention::Options::default().batch(heads)).unwrap();
            key_of(mask, dim, &plan, &plan.legal().unwrap()[0])
        };
        // Rows of one length, which neighbours share, or do not.
        let rows = |columns: fn(u32) -> u32| {
            let offsets = (0..=40).map(|row| 4 * row).collect();
            let columns = (0..40).flat_map(|row| (0..4).map(move |at| columns(row) + at)).collect();
            mask_of(&device, Pattern::new(40, 400, offsets, columns).unwrap())
        };
        let (shared, apart) = (rows(|_| 0), rows(|row| 4 * row));
        let keys = [key(&shared, DIM, 1), key(&apart, DIM, 1), key(&shared, 32, 1), key(&shared, DIM, 8)];
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key), "{key}");
        }
    }

    #[test]
    fn what_is_measured_on_can_be_run() {
        let device = Device::simulator();
        let plan = SparseAttention::plan(&mask(&device, 4), DIM).unwrap();
        let Scratch { q, k, v, mut o } = scratch(&device, &plan).unwrap();
        let stream = device.stream().unwrap();
        plan.run(&stream, q.as_slice(), k.as_slice(), v.as_slice(), o.as_slice_mut()).unwrap();
        assert!(o.download(&stream).unwrap().iter().any(|&value| value != 0.0));
    }
}
