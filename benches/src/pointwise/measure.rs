//! One layer on one device: checked, then timed or modelled.
use std::collections::BTreeMap;

use anyhow::Result;
use lacuna::matrix::Csr;
use lacuna::pointwise::{Operands, Options};
use lacuna::{CsrMatrix, Device, SparsePointwiseConv, Stream};
use lacuna_cases::Number;
use lacuna_cases::conv::oracle_shape;
use lacuna_cases::number::rounded;
use lacuna_reference::{Epilogue, PointwiseReference, pointwise};

use super::Pruned;
use crate::arithmetic;
use crate::conv::{How, Record};
use crate::energy;
use crate::machine::MachineRecord;
use crate::model;
use crate::session::others;
use crate::timing::time;

/// A layer's operands in a type, and what it should come to.
pub(super) struct Truth<T: Number> {
    pub(super) weights: Csr<T>,
    pub(super) input: Vec<T>,
    pub(super) bias: Vec<T>,
    reference: PointwiseReference<T>,
    /// Results of the images that are checked.
    checked: usize,
}

impl<T: Number> Truth<T> {
    pub(super) fn new(pruned: &Pruned, images: usize) -> Result<Self> {
        let dense = &pruned.dense;
        let (input, bias) = (rounded(&dense.input), rounded(&dense.bias));
        let weights = pruned.weights.map_values(T::from_f32);
        let shape = dense.shape.batch(dense.shape.batch.min(images));
        let reference = pointwise(&oracle_shape(shape, shape.batch), &weights, &input[..shape.input_len()])?;
        Ok(Self { weights, input, bias, reference, checked: shape.output_len() })
    }

    /// The largest error over its bound of the first images, or what is wrong. `fused` results have bias and ReLU.
    pub(super) fn check(
        &self,
        arithmetic: lacuna_reference::Precision,
        fused: bool,
        got: &[T],
    ) -> Result<Result<f64, String>> {
        let plain = Epilogue::default();
        let epilogue = if fused { Epilogue { bias: Some(&self.bias), lo: 0.0, ..plain } } else { plain };
        let reference = self.reference.clone().precision(arithmetic)?;
        let checked = reference.check_with(&epilogue, &got[..self.checked]);
        Ok(checked.map(|report| report.worst_over_bound).map_err(|mismatch| mismatch.to_string()))
    }
}

/// Measures a layer with bias and ReLU: the library's choice first.
///
/// # Errors
/// What the library says. A wrong result is no error: the record tells it.
pub fn measure<T: Number>(device: &Device, pruned: &Pruned, how: How<'_>) -> Result<Vec<Record>> {
    let stream = device.stream()?;
    let truth = Truth::<T>::new(pruned, how.checked)?;
    let weights = CsrMatrix::new(device, &truth.weights)?;
    let options = Options::default().relu();
    let plan = |options| SparsePointwiseConv::<T>::plan(&weights, pruned.dense.shape, options);
    let chosen = plan(options)?;
    let [legal, ..] = chosen.legal();
    let others = if how.all_algorithms { others(chosen.choice(), &legal) } else { Vec::new() };
    let mut records = vec![of_plan(device, &stream, &chosen, &weights, pruned, &truth, how)?];
    for algorithm in others {
        let plan = plan(options.algorithm(algorithm))?;
        let record = of_plan(device, &stream, &plan, &weights, pruned, &truth, how)?;
        records.push(Record { chosen: false, ..record });
    }
    Ok(records)
}

fn of_plan<T: Number>(
    device: &Device,
    stream: &Stream,
    plan: &SparsePointwiseConv<T>,
    weights: &CsrMatrix<T>,
    pruned: &Pruned,
    truth: &Truth<T>,
    how: How<'_>,
) -> Result<Record> {
    let layer = &pruned.dense;
    let shape = layer.shape;
    let (x, bias) = (device.upload(&truth.input)?, device.upload(&truth.bias)?);
    let mut out = device.upload(&vec![T::POISON; plan.output_len()])?;
    let mut run = |stream: &Stream| {
        let (input, bias) = (x.as_slice(), Some(bias.as_slice()));
        plan.run(stream, Operands { weights, input, bias, out: out.as_slice_mut() })
    };
    let (_, launches) = device.record(|| run(stream))?;
    let time_us = if device.is_simulator() {
        None
    } else {
        Some(time(stream, how.samples, |stream| Ok(run(stream)?))?)
    };
    let energy_mj = time_us.and_then(|time| {
        energy::of_call(&layer.name, stream, how.counter, time.median, |stream| Ok(run(stream)?))
    });
    let arithmetic = arithmetic::of_kernel(plan.choice());
    let checked = truth.check(arithmetic, true, &out.download(stream)?)?;
    let error_over_bound = checked.unwrap_or_else(|wrong| {
        eprintln!("{}: {}: {wrong}", layer.name, plan.choice().entry.name);
        f64::MAX
    });
    let out_pixels: usize = shape.out_size().iter().product();
    Ok(Record {
        op: Record::op(),
        case: layer.name.clone(),
        batch: shape.batch,
        channels: shape.channels,
        size: shape.size,
        filters: shape.filters,
        level: layer.level,
        zeros: layer.zeros(),
        sparsity: Some(weights.stats().sparsity),
        value: T::TYPE_NAME.into(),
        layout: "nchw".into(),
        algorithm: plan.choice().entry.name.into(),
        splits: 1,
        chosen: true,
        time_us,
        energy_mj,
        model_us: model::times(&launches),
        error_over_bound,
        products: (shape.batch * out_pixels * shape.filters_len()) as u64,
        peers: BTreeMap::new(),
        seed: how.seed,
        machine: MachineRecord::of(device),
    })
}

#[cfg(test)]
mod tests {
    use half::f16;
    use lacuna::conv::{MapLayout, Shape};
    use lacuna_reference::Precision;

    use super::super::drawn;
    use super::*;

    fn every_kernel_is_checked<T: Number>() {
        let how = How {
            layout: MapLayout::Nchw,
            samples: 1,
            all_algorithms: true,
            all_splits: false,
            checked: 2,
            seed: 3,
            counter: None,
        };
        let pruned = drawn(Shape::new(16, [4, 6], 24, [1, 1]).batch(3), 0.75, how.seed).unwrap();
        let records = measure::<T>(&Device::simulator(), &pruned, how).unwrap();
        assert!(records.len() > 3 && records[0].chosen && !records[1].chosen);
        assert!(records.iter().all(|record| record.error_over_bound <= 1.0 && !record.model_us.is_empty()));
        let is_as_asked = |record: &Record| record.sparsity == Some(0.75) && record.value == T::TYPE_NAME;
        assert!(records.iter().all(is_as_asked));
    }

    #[test]
    fn every_kernel_of_a_layer_is_checked() {
        every_kernel_is_checked::<f32>();
        every_kernel_is_checked::<f16>();
    }

    #[test]
    fn a_wrong_result_is_seen() {
        let pruned = drawn(Shape::new(8, [3, 3], 4, [1, 1]).batch(2), 0.5, 1).unwrap();
        let truth = Truth::<f32>::new(&pruned, 1).unwrap();
        let wrong = vec![-1.0; pruned.dense.shape.output_len()];
        assert!(truth.check(Precision::Fp32, true, &wrong).unwrap().is_err());
    }
}
