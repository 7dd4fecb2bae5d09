//! Calls that must be refused, by an error that tells what was expected and what was got.
use anyhow::Result;
use lacuna::matrix::{Csr, Pattern};
use lacuna::spdnn::{Activation, Algorithm, Bias, Features, Layer, Options, PackedNetwork};
use lacuna::{Device, Error, SparseNetwork};

use super::pruning::diagonal;
use crate::expect::refused;
use crate::{Case, Context};

const NAME: &str = "sparse-DNN inference";

/// One more than the most samples, or outputs of a layer, or inputs.
const TOO_MANY: usize = 1 << 30;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("spdnn/refusals/layers", "layers that cannot be", layers),
        Case::new(
            "spdnn/refusals/networks",
            "layers that do not fit, and kernels that cannot do them",
            networks,
        ),
        Case::new("spdnn/refusals/samples", "samples that do not fit", samples),
        Case::new("spdnn/refusals/replaced", "samples and weights in the place of others", replaced),
        Case::new("spdnn/refusals/runs", "samples and workspaces of another network", runs),
        Case::new("spdnn/refusals/results", "no room for results", results),
        Case::new("spdnn/refusals/other_device", "streams and samples of another device", other_device),
    ]
}

pub(super) fn is_parameter(error: &Error) -> bool {
    matches!(error, Error::Parameter { operation: NAME, .. })
}
fn is_length(error: &Error) -> bool {
    matches!(error, Error::Length { operation: NAME, .. })
}
fn is_large(error: &Error) -> bool {
    matches!(error, Error::TooLarge { .. })
}
fn is_illegal(error: &Error) -> bool {
    matches!(error, Error::Illegal { operation: NAME, .. })
}
fn is_device(error: &Error) -> bool {
    matches!(error, Error::OtherDevice { operation: NAME, .. })
}
fn is_any_device(error: &Error) -> bool {
    matches!(error, Error::OtherDevice { .. })
}

/// A layer of as many outputs as inputs.
fn layer(width: usize) -> Result<Layer> {
    diagonal(width, Bias::Scalar(-0.5), Activation::Relu)
}

/// Two such layers.
fn network(device: &Device, width: usize, algorithm: Algorithm) -> Result<SparseNetwork> {
    let options = Options::default().algorithm(algorithm);
    Ok(SparseNetwork::new(device, &[layer(width)?, layer(width)?], 40, options)?)
}

fn empty(rows: usize, cols: usize) -> Result<Csr<f32>> {
    Ok(Csr::with_values(Pattern::new(rows, cols, vec![0; rows + 1], Vec::new())?, Vec::new())?)
}

fn layers(_: &Context<'_>) -> Result<f64> {
    let with = |bias, activation| Ok::<_, anyhow::Error>(Layer::new(empty(3, 5)?, bias, activation));
    let clamp = |lo, hi| with(Bias::Scalar(0.0), Activation::Clamp { lo, hi });
    refused("order", clamp(1.0, 0.5)?, is_parameter, &["the clamp", "1, 0.5", "lo <= hi"])?;
    refused("least NaN", clamp(f32::NAN, 0.5)?, is_parameter, &["the clamp", "NaN, 0.5"])?;
    refused("greatest NaN", clamp(0.5, f32::NAN)?, is_parameter, &["the clamp", "0.5, NaN"])?;
    clamp(0.5, 0.5)??;
    for len in [2, 4, 0] {
        let bias = with(Bias::PerOutput(vec![0.0; len]), Activation::Relu)?;
        let says = [&format!("the bias has {len} elements"), "3 are expected", "one an output"];
        refused("bias", bias, is_length, &says)?;
    }
    let wide = Layer::new(empty(0, TOO_MANY)?, Bias::Scalar(0.0), Activation::Relu);
    let says = ["the number of inputs of a layer", "1073741824", "1073741823", "split"];
    refused("inputs", wide, is_large, &says)?;
    Ok(0.0)
}

fn networks(cx: &Context<'_>) -> Result<f64> {
    let of = |layers: &[Layer], algorithm| {
        SparseNetwork::new(cx.device, layers, 8, Options::default().algorithm(algorithm))
    };
    refused(
        "no layer",
        of(&[], Algorithm::Auto),
        is_parameter,
        &["the number of layers is 0", "at least 1"],
    )?;
    let apart = [layer(4)?, layer(4)?, layer(5)?];
    let says = ["the number of inputs of a layer is 5", "4", "the outputs of layer 1"];
    refused("widths", of(&apart, Algorithm::Auto), is_parameter, &says)?;
    let one_by_one =
        PackedNetwork::from_fn(cx.device, 3, 8, Options::default(), |at| Ok::<_, Error>(apart[at].clone()));
    refused("widths, one by one", one_by_one, is_parameter, &says)?;

    let bias = || Bias::Scalar(0.0);
    let fits = [layer(4)?, Layer::new(empty(1 << 16, 4)?, bias(), Activation::Relu)?];
    of(&fits, Algorithm::StagedEll)?;
    let wide = [Layer::new(empty(2, (1 << 16) + 1)?, bias(), Activation::Relu)?];
    let says =
        ["`StagedEll` cannot be used", "65537 inputs", "leave the choice to the library", "InputGroups"];
    refused("inputs of two bytes", of(&wide, Algorithm::StagedEll), is_illegal, &says)?;
    of(&wide, Algorithm::Baseline)?;
    for (outputs, tiles) in [(3, 1), (16, 3), (0, 0)] {
        let result = of(&apart[..2], Algorithm::InputGroups { outputs, tiles });
        let name = format!("InputGroups {{ outputs: {outputs}, tiles: {tiles} }}");
        refused("no such shape", result, is_illegal, &[&name, "no kernel of this name", "tiles: 4"])?;
    }
    Ok(0.0)
}

fn samples(cx: &Context<'_>) -> Result<f64> {
    let dense = Features::dense(3, 4, vec![0.0; 13]);
    refused("dense", dense, is_length, &["the samples has 13", "12 are expected", "3×4"])?;
    refused("too many to count", Features::dense(usize::MAX, 2, Vec::new()), is_length, &["the samples"])?;
    for algorithm in [Algorithm::Auto, Algorithm::Baseline] {
        let network = network(cx.device, 4, algorithm)?;
        let ones = Pattern::new(2, 5, vec![0, 1, 2], vec![4, 0])?;
        let kinds = [
            Features::binary(&ones),
            Features::sparse(Csr::with_values(ones, vec![1.0; 2])?),
            Features::dense(2, 5, vec![0.0; 10])?,
        ];
        for kind in kinds {
            let says = ["the numbers of a sample is 5", "4, the inputs of the network"];
            refused("upload", network.upload(cx.stream, &kind), is_parameter, &says)?;
            refused("infer", network.infer(cx.stream, &kind), is_parameter, &says)?;
            refused("in parts", network.infer_in_parts(cx.stream, &kind, 32), is_parameter, &says)?;
        }
        let fits = Features::dense(2, 4, vec![0.0; 8])?;
        let says = ["the samples of a part is 0", "at least 1"];
        refused("no rows", network.infer_in_parts(cx.stream, &fits, 0), is_parameter, &says)?;

        let on_device = cx.device.zeros::<f32>(9)?;
        let result = network.arrange(cx.stream, 2, on_device.as_slice());
        refused("arrange", result, is_length, &["the samples has 9", "8 are expected", "2×4"])?;
        let says = ["the number of samples is 1073741824", "1073741823", "split"];
        let result = network.arrange(cx.stream, TOO_MANY, on_device.as_slice());
        refused("arrange many", result, is_large, &says)?;
        refused("room for many", network.workspace(TOO_MANY), is_large, &says)?;
        let numberless = [Layer::new(empty(2, 0)?, Bias::Scalar(0.0), Activation::Relu)?];
        let numberless =
            SparseNetwork::new(cx.device, &numberless, 8, Options::default().algorithm(algorithm))?;
        let many = Features::dense(TOO_MANY, 0, Vec::new())?;
        refused("upload many", numberless.upload(cx.stream, &many), is_large, &says)?;
        refused("infer many", numberless.infer(cx.stream, &many), is_large, &says)?;
    }
    Ok(0.0)
}

fn replaced(cx: &Context<'_>) -> Result<f64> {
    let ones = |rows, cols| Ok::<_, anyhow::Error>(empty(rows, cols)?.pattern().as_ref().clone());
    let [tiles, rows] = [Algorithm::Auto, Algorithm::Baseline].map(|way| network(cx.device, 4, way));
    let (tiles, rows) = (tiles?, rows?);
    let (bits, dense) = (Features::binary(&ones(7, 4)?), Features::dense(7, 4, vec![0.0; 28])?);
    let sparse = Features::sparse(empty(7, 4)?);
    let mut in_bits = tiles.upload(cx.stream, &bits)?;
    let mut in_rows = rows.upload(cx.stream, &dense)?;
    let mut in_tiles = tiles.upload(cx.stream, &dense)?;
    in_bits.replace(&bits)?;
    in_rows.replace(&dense)?;
    let shape = ["the shape of the samples", "7×4"];
    let other = in_bits.replace(&Features::binary(&ones(8, 4)?));
    refused("rows", other, is_parameter, &[shape[0], shape[1], "8×4"])?;
    let other = in_rows.replace(&Features::dense(7, 5, vec![0.0; 35])?);
    refused("numbers", other, is_parameter, &[shape[0], shape[1], "7×5"])?;
    let kind = ["the kind of the samples", "that of those there"];
    refused("numbers for bits", in_bits.replace(&dense), is_parameter, &kind)?;
    refused("a list for bits", in_bits.replace(&sparse), is_parameter, &kind)?;
    refused("bits for numbers", in_rows.replace(&bits), is_parameter, &kind)?;
    refused("a list for numbers", in_rows.replace(&sparse), is_parameter, &kind)?;
    refused("numbers in tiles", in_tiles.replace(&dense), is_parameter, &kind)?;

    let pack =
        || PackedNetwork::new(cx.device, &[layer(4)?], 8, Options::default()).map_err(anyhow::Error::from);
    let (own, other) = (pack()?, pack()?);
    let mut network = SparseNetwork::from_packed(cx.device, &own)?;
    network.replace_weights(&own)?;
    let says = ["the packed network is another", "the one that this was made from"];
    refused("weights of another", network.replace_weights(&other), is_parameter, &says)?;
    let mut streamed = SparseNetwork::streamed(cx.device, &own, 64)?;
    refused("of a streamed one", streamed.replace_weights(&other), is_parameter, &says)?;
    Ok(0.0)
}

fn runs(cx: &Context<'_>) -> Result<f64> {
    let of = |width, way| network(cx.device, width, way);
    let (own, other) = (of(4, Algorithm::Auto)?, of(4, Algorithm::Auto)?);
    let upload = |network: &SparseNetwork, rows: usize| {
        let samples = vec![1.0; rows * network.inputs()];
        Ok::<_, anyhow::Error>(network.upload(cx.stream, &Features::dense(rows, network.inputs(), samples)?)?)
    };
    let (samples, mut room) = (upload(&own, 40)?, own.workspace(40)?);
    own.run(cx.stream, &samples, &mut room)?;
    // Samples belong to no network, if they lie as it reads them.
    own.run(cx.stream, &upload(&other, 40)?, &mut room)?;
    let result = own.run(cx.stream, &samples, &mut other.workspace(40)?);
    refused(
        "workspace",
        result,
        is_parameter,
        &["the workspace is another network's", "one of this network"],
    )?;
    let says = ["the number of samples is 41", "at most 40, those of the workspace"];
    refused("room", own.run(cx.stream, &upload(&own, 41)?, &mut room), is_parameter, &says)?;
    let wide = upload(&of(5, Algorithm::Auto)?, 40)?;
    let says = ["the numbers of a sample is 5", "4, the inputs of the network"];
    refused("numbers", own.run(cx.stream, &wide, &mut room), is_parameter, &says)?;

    let by_rows = of(4, Algorithm::Baseline)?;
    let in_rows = upload(&by_rows, 40)?;
    let layout = "the layout of the samples is";
    let result = own.run(cx.stream, &in_rows, &mut room);
    refused("rows for tiles", result, is_parameter, &[&format!("{layout} rows"), "tiles"])?;
    let result = by_rows.run(cx.stream, &samples, &mut by_rows.workspace(40)?);
    refused("tiles for rows", result, is_parameter, &[&format!("{layout} tiles"), "rows"])?;
    // Both kernels of the paper read rows.
    let staged = of(4, Algorithm::StagedEll)?;
    staged.run(cx.stream, &in_rows, &mut staged.workspace(40)?)?;
    // What was refused has left the workspace as it was.
    let (before, after) = (room.inference(cx.stream)?, own.infer(cx.stream, &dense(40, 4)?)?);
    anyhow::ensure!(before == after, "after refusals {before:?}, not {after:?}");
    Ok(0.0)
}

fn dense(rows: usize, inputs: usize) -> Result<Features> {
    Ok(Features::dense(rows, inputs, vec![1.0; rows * inputs])?)
}

fn results(cx: &Context<'_>) -> Result<f64> {
    let network = network(cx.device, 4, Algorithm::Auto)?;
    let samples = network.upload(cx.stream, &dense(3, 4)?)?;
    let mut room = network.workspace(9)?;
    network.run(cx.stream, &samples, &mut room)?;
    for len in [11, 13, 36] {
        let mut out = cx.device.zeros::<f32>(len)?;
        let says = [&format!("the results has {len}"), "12 are expected", "3×4"];
        refused("results", room.scores_into(cx.stream, out.as_slice_mut()), is_length, &says)?;
    }
    let elsewhere = Device::simulator();
    let (stream, mut foreign) = (elsewhere.stream()?, elsewhere.zeros::<f32>(12)?);
    let mut out = cx.device.zeros::<f32>(12)?;
    let result = room.scores_into(cx.stream, foreign.as_slice_mut());
    refused("results elsewhere", result, is_device, &["the results is on", "simulator"])?;
    refused("stream", room.scores_into(&stream, out.as_slice_mut()), is_device, &["the stream is on"])?;
    refused("scores", room.scores(&stream), is_device, &["the stream is on"])?;
    refused("inference", room.inference(&stream), is_any_device, &["the stream is on"])?;
    Ok(0.0)
}

fn other_device(cx: &Context<'_>) -> Result<f64> {
    let elsewhere = Device::simulator();
    let stream = elsewhere.stream()?;
    let foreign = elsewhere.zeros::<f32>(12)?;
    for algorithm in [Algorithm::Auto, Algorithm::Baseline] {
        let (own, there) = (network(cx.device, 4, algorithm)?, network(&elsewhere, 4, algorithm)?);
        let features = dense(3, 4)?;
        let (samples, strange) = (own.upload(cx.stream, &features)?, there.upload(&stream, &features)?);
        let own_foreign = cx.device.zeros::<f32>(12)?;
        let mut room = own.workspace(3)?;
        let says = ["the stream is on", "simulator", "make it on the same device"];
        refused("upload", own.upload(&stream, &features), is_device, &says)?;
        refused("infer", own.infer(&stream, &features), is_device, &says)?;
        refused("in parts", own.infer_in_parts(&stream, &features, 32), is_device, &says)?;
        refused("arrange", own.arrange(&stream, 3, own_foreign.as_slice()), is_device, &says)?;
        refused("run", own.run(&stream, &samples, &mut room), is_device, &says)?;
        refused("profile", own.profile(&stream, &samples, &mut room), is_device, &says)?;
        let says = ["the samples is on", "simulator", "make it on the same device"];
        refused("foreign", own.arrange(cx.stream, 3, foreign.as_slice()), is_device, &says)?;
        refused("samples", own.run(cx.stream, &strange, &mut room), is_device, &says)?;
    }
    Ok(0.0)
}
