//! One network on one device: checked, then timed or modelled.
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use half::{bf16, f16};
use indicatif::ProgressBar;
use lacuna::conv::MapLayout;
use lacuna::{Device, Precision};
use lacuna_cases::Number;
use lacuna_models::model::{Held, LayerOptions, Model, Options};
use lacuna_models::weights::Weights;
use lacuna_vendor::nvml::EnergyCounter;

use super::case::Case;
use super::named::Cut;
use super::planned::Checked;
use super::prune::zeros;
use super::published::Row;
use super::record::Record;
use super::{layers, twins};
use crate::machine::MachineRecord;
use crate::types::Dtype;

/// How networks are measured.
#[derive(Clone, Copy, Debug)]
pub struct How<'c> {
    /// The suite's name in records.
    pub suite: &'c str,
    /// The type of values.
    pub value: Dtype,
    /// How maps lie.
    pub layout: MapLayout,
    /// Samples of a timing.
    pub samples: u32,
    /// The seed of what is drawn.
    pub seed: u64,
    /// Weights of a file, in place of drawn ones.
    pub weights: Option<&'c Weights>,
    /// The folder of DLMC, whose masks layers of a network get that is in it.
    pub dlmc: Option<&'c Path>,
    /// Whether layers are checked in their whole size, and not cut.
    pub check_whole: bool,
    /// Whether layers with many zeros are held sparse or dense as is faster, by a measurement, and not by their zeros alone.
    pub faster: bool,
    /// Whether networks are set beside others.
    pub twins: bool,
    /// Whether each layer is measured too.
    pub layers: bool,
    /// By what energy is counted, where it is.
    pub counter: Option<&'c EnergyCounter>,
}

/// The part of zeros below which sparse weights are not tried.
pub(super) const FASTER_ABOVE: f64 = 0.5;

/// The paper's row of a network; of weights of a file none, as nobody knows how they were pruned.
pub(super) fn published(case: &Case, how: How<'_>) -> Option<&'static Row> {
    case.published().filter(|_| how.weights.is_none())
}

/// How far scores are from others, as a part of the greatest of these; huge where they are no numbers.
pub(crate) fn difference(got: &[f32], expected: &[f32]) -> f64 {
    let off = got.iter().zip(expected).map(|(&got, &expected)| (f64::from(got) - f64::from(expected)).abs());
    let off = off.fold(0.0, |most: f64, off| if off.is_finite() { most.max(off) } else { f64::MAX });
    let greatest = expected.iter().fold(0.0_f64, |most, score| most.max(f64::from(score.abs())));
    if off == 0.0 { 0.0 } else { (off / greatest).min(f64::MAX) }
}

/// Measures a network. On the simulator it is a cut one.
///
/// # Errors
/// [`Usage`](lacuna_cases::exit::Usage) for sizes that the network cannot have; what the library says. A wrong result is no error: the record tells it.
pub fn measure(device: &Device, case: &Case, how: How<'_>) -> Result<Record> {
    match how.value {
        Dtype::F32 => of_type::<f32>(device, case, how),
        Dtype::F16 => of_type::<f16>(device, case, how),
        Dtype::Bf16 => of_type::<bf16>(device, case, how),
    }
}

fn of_type<T: Number>(device: &Device, case: &Case, how: How<'_>) -> Result<Record> {
    // indicatif draws on stderr, and only where that is a terminal.
    let progress = ProgressBar::new_spinner();
    let name = case.network.name();
    let tell = |what: &str| {
        progress.set_message(format!("{name}: {what}"));
        progress.tick();
    };
    let stream = device.stream()?;
    let mut options = Options::default().layout(how.layout);
    if how.faster {
        options.layers.weights = Held::FasterAbove(FASTER_ABOVE);
    } else if case.has_masks() {
        // A mask of 70 % may have a zero less than that, and is to be sparse as all others.
        options.layers.weights = Held::SparseAbove(FASTER_ABOVE);
    }
    let is_cut = device.is_simulator();
    tell("checking each layer");
    let small =
        if is_cut || how.check_whole { case.drawn(device, how) } else { case.cut(Cut::Quarter, how.seed) }?;
    let Checked { layers: checked_layers, error_over_bound } =
        small.plan::<T>(&stream, &options)?.check(&small.weights, &options)?;
    drop(small);
    tell("drawing and pruning weights");
    let drawn = case.drawn(device, how)?;
    tell("planning");
    let exact = LayerOptions { weights: Held::Dense, precision: Precision::Fma, ..LayerOptions::default() };
    let expected = drawn.plan::<f32>(&stream, &options.clone().layers(exact))?.scores()?;
    let mut planned = drawn.plan::<T>(&stream, &options)?;
    let difference = difference(&planned.scores()?, &expected);
    tell("measuring");
    let cost = planned.cost(&name, how)?;
    let (launches, sparse_layers) = kernels(&planned.model);
    let layers = if how.layers { layers::measure(&mut planned, &name, how)? } else { Vec::new() };
    drop(planned);
    let input = drawn.network.input_shape();
    let mut record = Record {
        suite: how.suite.into(),
        op: "model",
        case: name.clone(),
        width: case.width(),
        batch: input.images,
        resolution: (!case.network.has_tokens()).then_some(input.size[0]),
        tokens: case.network.has_tokens().then_some(input.pixels()),
        cut: is_cut,
        sparsity: how.weights.map_or(case.sparsity, |_| zeros(&drawn.network, &drawn.weights)),
        faster: how.faster,
        layout: if how.layout == MapLayout::Nhwc { "nhwc" } else { "nchw" },
        value: T::TYPE_NAME,
        weights: if how.weights.is_some() { "file" } else { "drawn" },
        masks: drawn.masks.clone(),
        launches,
        sparse_layers,
        products: drawn.network.multiply_adds(),
        frames_per_s: Record::frames_per_s(case.batch, &cost),
        paper_frames_per_s: case.paper_frames_per_s().filter(|_| !is_cut && how.weights.is_none()),
        cost,
        checked_layers,
        checked_whole: how.check_whole && !is_cut,
        error_over_bound,
        difference,
        peers: BTreeMap::new(),
        peer_failures: BTreeMap::new(),
        layers,
        seed: how.seed,
        machine: MachineRecord::of(device),
    };
    if how.twins {
        tell("measuring twins");
        twins::measure::<T>(&stream, case, &drawn, &expected, how, &mut record)?;
    }
    progress.finish_and_clear();
    Ok(record)
}

/// Layers that launch something, and those with sparse weights.
pub(super) fn kernels<T: Number>(model: &Model<T>) -> (usize, usize) {
    let report = model.report();
    let launches = report.layers.iter().filter(|layer| layer.kernel != "none").count();
    (launches, report.layers.iter().filter(|layer| layer.kernel.contains("spmm")).count())
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::Named;
    use super::super::record::{CUDNN, DENSE, SAME_ACCURACY};
    use super::*;

    pub(crate) const SPARSE: Case =
        Case { network: Named::MobileNetV1, width: 1.3, batch: 1, resolution: 224, sparsity: 0.9 };

    pub(crate) const HOW: How<'_> = How {
        suite: "a test",
        value: Dtype::F32,
        layout: MapLayout::Nchw,
        samples: 1,
        seed: 1,
        weights: None,
        dlmc: None,
        check_whole: false,
        faster: false,
        twins: true,
        layers: true,
        counter: None,
    };

    #[test]
    fn a_sparse_network_is_checked_and_set_beside_its_twins() {
        let record = measure(&Device::simulator(), &SPARSE, HOW).unwrap();
        assert!(record.is_right() && record.error_over_bound > 0.0 && record.difference > 0.0);
        assert_eq!((record.checked_layers, record.layers.len(), record.sparse_layers), (29, 29, 14));
        assert!(record.cut && record.frames_per_s.is_none() && record.cost.model_us["H200"] > 0.0);
        // What the paper says is of the whole network.
        assert_eq!((record.resolution, record.paper_frames_per_s), (Some(32), None));
        assert_eq!(record.peers.keys().copied().collect::<Vec<_>>(), [DENSE, SAME_ACCURACY]);
        assert!(record.peer_failures[CUDNN].contains("model.0.0"), "{:?}", record.peer_failures);
        let [dense, same] = [DENSE, SAME_ACCURACY].map(|twin| &record.peers[twin]);
        assert!(dense.difference.is_some() && record.speedup(DENSE).is_some());
        assert_eq!((dense.width, same.width, same.paper_frames_per_s), (Some(1.3), Some(1.0), None));
        assert!(dense.cost.weight_bytes > record.cost.weight_bytes);
        let shares: f64 = record.layers.iter().filter_map(|layer| layer.share).sum();
        assert!((shares - 1.0).abs() < 1e-9);
        let pruned = record.layers.iter().filter(|layer| layer.zero_weights > Some(0.85)).count();
        assert_eq!(pruned, 14);
        // What a ReLU leaves.
        assert!(record.layers[0].zero_outputs > 0.1 && record.layers[28].zero_outputs < 0.1);
    }

    #[test]
    fn a_dense_network_is_its_own_twin() {
        let case = Case { network: Named::Vgg16, sparsity: 0.0, batch: 3, ..SPARSE };
        let record = measure(&Device::simulator(), &case, HOW).unwrap();
        assert!(record.is_right() && record.peers.is_empty() && record.peer_failures.len() == 1);
        assert_eq!((record.sparse_layers, record.width, record.paper_frames_per_s), (0, None, None));
        assert!(record.layers.iter().any(|layer| layer.kernel == "none" && layer.share.is_none()));
    }

    #[test]
    fn channels_last_are_checked_too() {
        let case = Case { network: Named::DenseNet121, sparsity: 0.0, ..SPARSE };
        let how = How { layout: MapLayout::Nhwc, twins: false, layers: false, ..HOW };
        let record = measure(&Device::simulator(), &case, how).unwrap();
        assert!(record.is_right() && record.layers.is_empty() && record.layout == "nhwc");
    }

    #[test]
    fn values_of_16_bits_are_checked_and_take_half_the_memory() {
        let transformer = Case { network: Named::Transformer, sparsity: 0.0, ..SPARSE };
        let how = How { layout: MapLayout::Nhwc, twins: false, layers: false, ..HOW };
        let of = |value| measure(&Device::simulator(), &transformer, How { value, ..how }).unwrap();
        let single = of(Dtype::F32);
        for (value, name) in [(Dtype::F16, "f16"), (Dtype::Bf16, "bf16")] {
            let record = of(value);
            assert!(record.is_right() && record.value == name, "{} {:e}", name, record.difference);
            assert!(record.error_over_bound > 0.0 && record.difference > single.difference);
            assert_eq!(2 * record.cost.peak_bytes, single.cost.peak_bytes);
        }
    }

    #[test]
    fn sequences_of_two_inputs_are_checked_with_channels_last() {
        let case = Case { network: Named::TransformerBase, sparsity: 0.7, batch: 2, ..SPARSE };
        let how = How { layout: MapLayout::Nhwc, value: Dtype::F16, twins: false, layers: false, ..HOW };
        let record = measure(&Device::simulator(), &case, how).unwrap();
        assert!(record.is_right() && record.error_over_bound > 0.0, "{:e}", record.difference);
        assert_eq!((record.sparse_layers, record.tokens, record.resolution), (0, Some(16), None));
        assert_eq!(record.masks.map(|masks| (masks.real.len(), masks.drawn)), Some((0, 96)));
        assert!(record.paper_frames_per_s.is_none());
    }

    #[test]
    fn weights_of_a_file_are_taken_as_they_are() {
        let device = Device::simulator();
        let dense = Case { sparsity: 0.0, ..SPARSE };
        let drawn = SPARSE.drawn(&device, How { seed: 5, ..HOW }).unwrap();
        let how = How { weights: Some(&drawn.weights), layers: false, ..HOW };
        let record = measure(&device, &dense, how).unwrap();
        assert!(record.is_right() && record.error_over_bound > 0.0);
        assert_eq!((record.weights, record.sparse_layers), ("file", 14));
        assert!((record.sparsity - 0.9).abs() < 1e-3, "{}", record.sparsity);
        // They have zeros, so that dense weights are another way; which network is as accurate is not known.
        assert_eq!(record.peers.keys().copied().collect::<Vec<_>>(), [DENSE]);
        let other = Case { width: 1.0, ..dense };
        let error = measure(&device, &other, how).unwrap_err().to_string();
        assert!(error.contains("tensor model.1.3.weight: expected shape"), "{error}");
    }

    #[test]
    fn scores_that_differ_are_seen() {
        assert_eq!(difference(&[1.0, -2.0], &[1.0, -2.0]), 0.0);
        assert_eq!(difference(&[1.0, -1.0], &[1.0, -2.0]), 0.5);
        assert_eq!(difference(&[f32::NAN, 1.0], &[1.0, 1.0]), f64::MAX);
        assert_eq!(difference(&[1.0], &[0.0]), f64::MAX);
        assert_eq!(difference(&[0.0], &[0.0]), 0.0);
    }
}
