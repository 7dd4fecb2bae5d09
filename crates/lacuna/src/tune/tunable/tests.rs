use std::cell::RefCell;
use std::sync::Arc;

use half::f16;
use lacuna_matrix::{Csr, Pattern, generate};

use super::*;
use crate::{
    Bags, BiasAct, CsrMatrix, DenseTranspose, Error, LayerNorm, NHot, RowOrder, Sddmm, SparseAttention,
    SparseSoftmax, Spmm, TopN, TuneWarning, attention, layer_norm, nhot, sddmm, softmax, spmm, topn,
};

const N: usize = 32;

fn pattern(seed: u64) -> Arc<Pattern> {
    Arc::new(generate::uniform(40, 60, 0.8, seed).unwrap())
}

fn matrix(device: &Device, seed: u64) -> CsrMatrix {
    let pattern = pattern(seed);
    let values = generate::random_values(pattern.nnz(), seed);
    CsrMatrix::new(device, &Csr::with_values(pattern, values).unwrap()).unwrap()
}

fn mask_of(device: &Device, pattern: Pattern) -> CsrMatrix {
    let ones = vec![1.0; pattern.nnz()];
    CsrMatrix::new(device, &Csr::with_values(pattern, ones).unwrap()).unwrap()
}

/// Bags of rows of a table of 20.
fn bags(device: &Device, offsets: &[usize]) -> Bags {
    let indices: Vec<u32> = (0..offsets[offsets.len() - 1] as u32).map(|index| index % 20).collect();
    Bags::new(device, 20, offsets, &indices).unwrap()
}

/// The kernels of a plan for whole buffers.
trait Named {
    fn named(&self) -> String;
}
/// By the one kernel of their choice.
macro_rules! named {
    ($($plan:ty)+) => {
        $(impl Named for $plan {
            fn named(&self) -> String {
                self.choice().entry.name.into()
            }
        })+
    };
}
named! { Spmm Spmm<f16, u16> Sddmm BiasAct LayerNorm NHot }
impl Named for TopN {
    fn named(&self) -> String {
        format!("{:?}", self.choice().algorithm)
    }
}
impl Named for SparseAttention {
    fn named(&self) -> String {
        self.choice().unwrap().entry.name.into()
    }
}
impl Named for SparseSoftmax {
    fn named(&self) -> String {
        self.parts().iter().map(|part| part.forward.name).collect::<Vec<_>>().join(" + ")
    }
}

/// A time for each plan: the later in the model's order the shorter, so that the model is wrong as can be.
fn backwards<P: Named>(timed: &RefCell<Vec<String>>) -> impl FnMut(&P) -> Result<f64> {
    move |plan| {
        timed.borrow_mut().push(plan.named());
        Ok(1000.0 - timed.borrow().len() as f64)
    }
}

/// Tunes a plan, and checks that the fastest is taken, that it is known afterwards, and that what is measured on can be run.
fn taken_and_known<P: Tunable + Named>(plan: impl Fn() -> P, subject: &P::Subject) {
    let (tuner, timed) = (Autotuner::in_memory(), RefCell::default());
    let tuned = tuner.tune_by(plan(), subject, backwards(&timed)).unwrap();
    let timed = timed.into_inner();
    assert!(timed.len() >= 2 && tuned.named() == *timed.last().unwrap(), "{}: {timed:?}", P::NAME);
    assert_ne!(tuned.named(), plan().named(), "{}", P::NAME);
    let again = tuner.tune_by(plan(), subject, |_| unreachable!("it is known")).unwrap();
    assert_eq!((again.named(), tuner.problems()), (tuned.named(), 1), "{}", P::NAME);

    let stream = tuned.device().stream().unwrap();
    let mut scratch = tuned.scratch(subject).unwrap();
    tuned.run_on(&stream, subject, &mut scratch).unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn every_operation_takes_the_fastest_and_measures_once() {
    let device = Device::simulator();
    let a = matrix(&device, 1);
    taken_and_known(|| Spmm::plan(&a, N).unwrap(), &a);
    taken_and_known(|| Sddmm::plan(&a, N).unwrap(), &a);
    taken_and_known(|| SparseSoftmax::plan(&a).unwrap(), &a);
    let mask = mask_of(&device, generate::band_random(40, 8, 0.9, 1).unwrap());
    taken_and_known(|| SparseAttention::plan(&mask, 16).unwrap(), &mask);
    taken_and_known(|| BiasAct::plan(&device, 40, 60).unwrap(), &());
    let rows = layer_norm::Shape::Rows { rows: 40, features: 60 };
    taken_and_known(|| LayerNorm::plan(&device, rows).unwrap(), &());
    let bags = bags(&device, &[0, 3, 3, 10]);
    taken_and_known(|| NHot::plan(&bags, N).unwrap(), &bags);
    taken_and_known(|| TopN::plan(&device, 3, 1000, 10).unwrap(), &());
}

#[test]
fn matrices_of_a_kind_share_a_choice_and_other_widths_have_their_own() {
    let device = Device::simulator();
    let (tuner, timed) = (Autotuner::in_memory(), RefCell::default());
    for (seed, n, problems) in [(1, N, 1), (1, N, 1), (1, 2 * N, 2)] {
        let a = matrix(&device, seed);
        tuner.tune_by(Spmm::plan(&a, n).unwrap(), &a, backwards(&timed)).unwrap();
        assert_eq!(tuner.problems(), problems);
    }
}

#[test]
fn tuned_plans_run_at_every_alignment() {
    let device = Device::simulator();
    let (tuner, a, stream) = (Autotuner::in_memory(), matrix(&device, 1), device.stream().unwrap());
    let plan = tuner.tune_by(Spmm::plan(&a, 8).unwrap(), &a, backwards(&RefCell::default())).unwrap();
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
fn where_there_is_nothing_to_choose_nothing_is_measured() {
    let device = Device::simulator();
    let (tuner, a) = (Autotuner::in_memory(), matrix(&device, 1));
    let asked = spmm::Algorithm::RowSplit { vector: 4, lanes: 32, split: 1, warps: 32 };
    let plan = Spmm::plan_with(&a, N, spmm::Options::default().algorithm(asked)).unwrap();
    let plan = tuner.tune_by(plan, &a, |_| unreachable!("it was asked for")).unwrap();
    assert_eq!(plan.choice().algorithm, asked);
    tuner.tune_by(Spmm::plan(&a, 0).unwrap(), &a, |_| unreachable!("no columns")).unwrap();

    let none = sddmm::Options::default().batch(0);
    let plan = Sddmm::plan_with(&a, N, none).unwrap();
    tuner.tune_by(plan, &a, |_| unreachable!("no products")).unwrap();
    let lanes = softmax::Options::default().algorithm(softmax::Algorithm::Subwarp { lanes: 32 });
    let plan = SparseSoftmax::plan_with(&a, lanes).unwrap();
    tuner.tune_by(plan, &a, |_| unreachable!("it was asked for")).unwrap();
    let wide = SparseAttention::plan(&a, 300).unwrap();
    let wide = tuner.tune_by(wide, &a, |_| unreachable!("three steps are the only way")).unwrap();
    assert!(wide.choice().is_none());
    let none = bags(&device, &[0, 0]);
    tuner.tune_by(NHot::<f32>::plan(&none, N).unwrap(), &none, |_| unreachable!("no indices")).unwrap();
    let asked = topn::Options::default().algorithm(topn::Algorithm::Insertion { chunks: 1 });
    let plan = TopN::<f32>::plan_with(&device, 3, 1000, 10, asked).unwrap();
    tuner.tune_by(plan, &(), |_| unreachable!("it was asked for")).unwrap();
    let one = DenseTranspose::<f32>::plan(&device, 3, 1000).unwrap();
    tuner.tune_by(one, &(), |_| unreachable!("there is one kernel")).unwrap();
    assert_eq!(tuner.problems(), 0);
}

#[test]
fn without_room_the_model_chooses_and_without_times_too() {
    let a = matrix(&Device::simulator(), 1);
    let (tuner, plan) = (Autotuner::in_memory(), || Spmm::plan(&a, N).unwrap());
    let full = |_: &Spmm| Err(Error::OutOfMemory { device: "GPU".into(), asked: 9, free: 1, total: 8 });
    assert_eq!(tuner.tune_by(plan(), &a, full).unwrap().named(), plan().named());
    assert!(matches!(&tuner.warnings()[..], [TuneWarning::NoRoom { why }] if why.contains("9 bytes")));
    assert_eq!(tuner.tune_by(plan(), &a, |_| Ok(f64::NAN)).unwrap().named(), plan().named());
    assert_eq!(tuner.problems(), 0);
    let failing = |_: &Spmm| Err(Error::Cuda { call: "cuLaunchKernel", why: "lost".into() });
    assert!(matches!(tuner.tune_by(plan(), &a, failing), Err(Error::Cuda { .. })));
}

#[test]
fn products_are_measured_without_their_epilogue_and_with_their_strides() {
    let device = Device::simulator();
    let host = Csr::with_values(pattern(1), vec![f16::ONE; pattern(1).nnz()]).unwrap();
    let a = CsrMatrix::<f16, u16>::with_index(&device, &host).unwrap();
    let options = spmm::Options::default().beta(1.0).relu().b_stride(34);
    let (tuner, mut timed) = (Autotuner::in_memory(), Vec::new());
    let tuned = tuner.tune_by(Spmm::plan_with(&a, N, options).unwrap(), &a, |plan: &Spmm<f16, u16>| {
        let spmm::Options { beta, lo, b_stride, .. } = *plan.options();
        assert_eq!((beta, lo, b_stride), (0.0, f32::NEG_INFINITY, Some(34)));
        timed.push(plan.named());
        Ok(1000.0 - timed.len() as f64)
    });
    let tuned = tuned.unwrap();
    assert!(timed.len() >= 2 && tuned.named() == *timed.last().unwrap(), "{timed:?}");
    assert!(timed.iter().all(|entry| entry.starts_with("spmm_f16_u16_")), "{timed:?}");
    assert_eq!(*tuned.options(), options);
}

/// The key of a plan.
fn key<P: Tunable>(plan: &P, subject: &P::Subject) -> String {
    let candidates = plan.candidates();
    let names: Vec<&str> = candidates[0].iter().map(|candidate| candidate.name.as_str()).collect();
    key_of(plan, &plan.describe(subject).unwrap(), &names)
}

fn all_differ(keys: &[String]) {
    for (index, key) in keys.iter().enumerate() {
        assert!(!keys[..index].contains(key), "{key}");
    }
}

#[test]
fn kernels_to_choose_from_are_part_of_a_key_and_their_order_is_not() {
    let a = matrix(&Device::simulator(), 1);
    let plan = Spmm::plan(&a, N).unwrap();
    let key = |names: &[&str]| key_of(&plan, "a problem", names);
    assert_eq!(key(&["a", "b"]), key(&["b", "a"]));
    assert_ne!(key(&["a", "b"]), key(&["a"]));
}

#[test]
fn products_of_other_types_batches_strides_and_orders_are_problems_of_their_own() {
    let device = Device::simulator();
    let product = |a: &CsrMatrix, options| key(&Spmm::plan_with(a, N, options).unwrap(), a);
    let values = vec![f16::ONE; pattern(1).nnz()];
    let host = Csr::with_values(pattern(1), values.clone()).unwrap();
    let halves = CsrMatrix::<f16, u16>::with_index(&device, &host).unwrap();
    let half = |options| key(&Spmm::plan_with(&halves, N, options).unwrap(), &halves);
    let wide = CsrMatrix::<f16>::with_index(&device, &host).unwrap();
    let two = halves.with_value_batch(2, &[values.clone(), values].concat()).unwrap();
    let (one, batch) = (spmm::Options::default(), spmm::Options::default().batch(2));
    let host = Csr::with_values(pattern(1), vec![1.0; pattern(1).nnz()]).unwrap();
    let unsorted = CsrMatrix::<f32>::with_row_order(&device, &host, RowOrder::Unsorted).unwrap();
    all_differ(&[
        product(&matrix(&device, 1), one),
        product(&unsorted, one),
        half(one),
        key(&Spmm::plan(&wide, N).unwrap(), &wide),
        half(batch),
        key(&Spmm::plan_with(&two, N, batch).unwrap(), &two),
        half(batch.b_batch_stride(0)),
        half(one.b_stride(36)),
        half(one.c_stride(33)),
    ]);
    assert_eq!(half(one.alpha(3.0).beta(1.0).relu()), half(one), "epilogues share a choice");
    assert_eq!(half(one.b_stride(40)), half(one), "strides that allow the same share a choice");
}

#[test]
fn sampled_products_differ_by_schedule_and_by_what_they_share() {
    let a = matrix(&Device::simulator(), 1);
    let key = |options| key(&Sddmm::plan_with(&a, N, options).unwrap(), &a);
    let (one, batch) = (sddmm::Options::default(), sddmm::Options::default().batch(2));
    all_differ(&[
        key(one),
        key(one.schedule(sddmm::Schedule::ByColumn)),
        key(batch),
        key(batch.a_batch_stride(0)),
        key(batch.b_batch_stride(0)),
    ]);
}

#[test]
fn bags_tables_and_layouts_are_problems_of_their_own() {
    let device = Device::simulator();
    let key = |bags: &Bags, columns: usize, layout| {
        let options = nhot::Options::default().layout(layout);
        key(&NHot::<f32>::plan_with(bags, columns, options).unwrap(), bags)
    };
    let (even, uneven) = (bags(&device, &[0, 5, 10]), bags(&device, &[0, 1, 10]));
    let weighted = even.with_weights(&[0.5; 10]).unwrap();
    all_differ(&[
        key(&even, N, nhot::Layout::RowMajor),
        key(&uneven, N, nhot::Layout::RowMajor),
        key(&weighted, N, nhot::Layout::RowMajor),
        key(&even, 2 * N, nhot::Layout::RowMajor),
        key(&even, N, nhot::Layout::Transposed),
    ]);
}

#[test]
fn tuned_top_n_keeps_its_options_and_other_sizes_are_problems_of_their_own() {
    let device = Device::simulator();
    let options = topn::Options::default().temperature(0.5).row_stride(1004);
    let plan = |columns, n| TopN::<f32>::plan_with(&device, 3, columns, n, options).unwrap();
    let (tuner, timed) = (Autotuner::in_memory(), RefCell::default());
    let tuned = tuner.tune_by(plan(1000, 10), &(), backwards(&timed)).unwrap();
    assert_eq!(tuned.options(), &options);
    all_differ(&[key(&tuned, &()), key(&plan(1000, 11), &()), key(&plan(999, 10), &())]);
    assert_eq!(key(&tuned, &()), key(&plan(1000, 10), &()));
}

#[test]
fn masks_dimensions_and_heads_are_problems_of_their_own() {
    let device = Device::simulator();
    let key = |mask: &CsrMatrix, dim: usize, heads: usize| {
        let plan = SparseAttention::plan_with(mask, dim, attention::Options::default().batch(heads)).unwrap();
        key(&plan, mask)
    };
    // Rows of one length, which neighbours share, or do not.
    let rows = |columns: fn(u32) -> u32| {
        let row = |row| [0, 1, 2, 3].map(|at| columns(row) + at);
        mask_of(&device, Pattern::of_rows(400, (0..40).map(row)).unwrap())
    };
    let (shared, apart) = (rows(|_| 0), rows(|row| 4 * row));
    all_differ(&[key(&shared, 16, 1), key(&apart, 16, 1), key(&shared, 32, 1), key(&shared, 16, 8)]);
}
