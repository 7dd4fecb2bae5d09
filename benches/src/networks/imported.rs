//! A network of a file: checked, then timed or modelled, beside itself with dense weights and by cuDNN.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use half::{bf16, f16};
use lacuna::conv::MapLayout;
use lacuna::matrix::generate;
use lacuna::{Device, Precision, Stream};
use lacuna_cases::Number;
use lacuna_cases::exit::{Usage, describe};
use lacuna_models::import::{onnx, tflite};
use lacuna_models::model::{Held, LayerOptions, Options};
use lacuna_models::network::Network;
use lacuna_models::weights::Weights;

use super::How;
use super::case::Drawn;
use super::export::export;
use super::layers;
use super::measure::{difference, kernels};
use super::planned::{Checked, Planned};
use super::prune::zeros;
use super::record::{CUDNN, DENSE, Record, Twin};
use crate::machine::MachineRecord;
use crate::types::Dtype;

/// A file to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct FileCase {
    /// An ONNX or a TFLite file.
    pub file: PathBuf,
    /// Images.
    pub batch: usize,
    /// Where the network is written for other frameworks, with its input and result.
    pub export: Option<PathBuf>,
}

impl FileCase {
    /// The network for so many images, and its weights.
    fn read(&self, images: usize) -> Result<(Network, Weights)> {
        let images = Some(images);
        match self.file.extension().and_then(|extension| extension.to_str()) {
            Some("onnx") => {
                let imported = onnx::read(&self.file, &onnx::Options { images, ..Default::default() })?;
                Ok((imported.network, imported.weights))
            }
            Some("tflite") => {
                let imported = tflite::read(&self.file, &tflite::Options { images })?;
                Ok((imported.network, imported.weights))
            }
            _ => Err(Usage(format!("{}: expected a file .onnx or .tflite", self.file.display())).into()),
        }
    }

    fn drawn(&self, images: usize, seed: u64) -> Result<Drawn> {
        let (network, weights) = self.read(images)?;
        // Numbers from 0 to 1, as those of an image.
        let numbers = generate::random_values(network.input_shape().elements(), seed);
        let input = numbers.into_iter().map(|number| number.abs()).collect();
        Ok(Drawn { network, weights, input, masks: None })
    }

    fn name(&self) -> String {
        self.file.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }
}

/// Measures a network of a file, with a drawn input. Its layers are checked with one image.
///
/// # Errors
/// [`Usage`] for files of other kinds, and what cannot be imported; what the library says. A wrong result is no error: the record tells it.
pub fn measure(device: &Device, case: &FileCase, how: How<'_>) -> Result<Record> {
    match how.value {
        Dtype::F32 => of_type::<f32>(device, case, how),
        Dtype::F16 => of_type::<f16>(device, case, how),
        Dtype::Bf16 => of_type::<bf16>(device, case, how),
    }
}

fn of_type<T: Number>(device: &Device, case: &FileCase, how: How<'_>) -> Result<Record> {
    let stream = device.stream()?;
    let name = case.name();
    let weights =
        if how.faster { Held::FasterAbove(super::measure::FASTER_ABOVE) } else { Held::SparseAbove(0.5) };
    let sparse = Options::default().layout(how.layout).layers(LayerOptions { weights, ..Default::default() });
    let one = case.drawn(1, how.seed)?;
    let Checked { layers: checked_layers, error_over_bound } =
        one.plan::<T>(&stream, &sparse)?.check(&one.weights, &sparse)?;
    let drawn = if case.batch == 1 { one } else { case.drawn(case.batch, how.seed)? };
    let exact = LayerOptions { weights: Held::Dense, precision: Precision::Fma, ..Default::default() };
    let exact = Options::default().layout(how.layout).layers(exact);
    let expected = drawn.plan::<f32>(&stream, &exact)?.scores()?;
    let mut planned = drawn.plan::<T>(&stream, &sparse)?;
    let scores = planned.scores()?;
    if let Some(folder) = &case.export {
        write(folder, &drawn, &scores, how.layout)?;
    }
    let cost = planned.cost(&name, how)?;
    let (launches, sparse_layers) = kernels(&planned.model);
    let layers = if how.layers { layers::measure(&mut planned, &name, how)? } else { Vec::new() };
    drop(planned);
    let input = drawn.network.input_shape();
    let mut record = Record {
        suite: how.suite.into(),
        op: "model",
        case: name,
        width: None,
        batch: input.images,
        resolution: Some(input.size[0]),
        tokens: None,
        cut: false,
        sparsity: zeros(&drawn.network, &drawn.weights),
        faster: how.faster,
        layout: if how.layout == MapLayout::Nhwc { "nhwc" } else { "nchw" },
        value: T::TYPE_NAME,
        weights: "file",
        masks: None,
        launches,
        sparse_layers,
        products: drawn.network.multiply_adds(),
        frames_per_s: Record::frames_per_s(case.batch, &cost),
        paper_frames_per_s: None,
        cost,
        checked_layers,
        checked_whole: true,
        error_over_bound,
        difference: difference(&scores, &expected),
        peers: BTreeMap::new(),
        peer_failures: BTreeMap::new(),
        layers,
        seed: how.seed,
        machine: MachineRecord::of(device),
    };
    if how.twins {
        for (twin, options) in [(DENSE, Options::dense()), (CUDNN, Options::cudnn())] {
            match of_twin::<T>(&stream, &drawn, &options.layout(how.layout), &expected, twin, how) {
                Ok(cost) => {
                    record.peers.insert(twin, cost);
                }
                Err(why) => {
                    record.peer_failures.insert(twin, describe(&why));
                }
            }
        }
    }
    Ok(record)
}

fn of_twin<T: Number>(
    stream: &Stream,
    drawn: &Drawn,
    options: &Options,
    expected: &[f32],
    name: &str,
    how: How<'_>,
) -> Result<Twin> {
    let mut planned: Planned<'_, T> = drawn.plan(stream, options)?;
    let difference = Some(difference(&planned.scores()?, expected));
    let cost = planned.cost(name, how)?;
    Ok(Twin { width: None, cost, difference, paper_frames_per_s: None, version: None })
}

/// The network for other frameworks. Its result has one pixel, which lies alike in both layouts.
fn write(folder: &Path, drawn: &Drawn, scores: &[f32], layout: MapLayout) -> Result<()> {
    if layout == MapLayout::Nhwc && drawn.network.output_shape().pixels() > 1 {
        return Err(Usage("--export writes maps in NCHW; leave --layout out".into()).into());
    }
    export(folder, &drawn.network, &drawn.weights, &drawn.input, scores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_kinds_are_refused() {
        for file in ["network.pt", "network"] {
            let case = FileCase { file: file.into(), batch: 1, export: None };
            let error = case.read(1).unwrap_err();
            assert!(error.to_string().contains(".onnx or .tflite"), "{error}");
        }
        let case = FileCase { file: "none.tflite".into(), batch: 1, export: None };
        assert!(case.read(1).unwrap_err().to_string().contains("none.tflite"));
        assert_eq!(case.name(), "none");
    }
}
