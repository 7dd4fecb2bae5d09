//! A network for other frameworks: its graph as JSON, weights, an input and the result for it as NumPy has them. `benches/peers/network.py` runs it
//! by PyTorch.
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use lacuna::pool::Mode;
use lacuna_cases::exit::Usage;
use lacuna_models::files::{npy, npz};
use lacuna_models::network::{Activation, Layer, Network, Operation, Sampling, Shape, Window};
use lacuna_models::weights::{Folded, Tensor, Weights};
use serde_json::{Value, json};

/// Writes `graph.json`, `weights.npz`, `input.npy` and `output.npy` into a folder. Batch norms are folded into weights; maps are NCHW.
///
/// # Errors
/// [`Usage`] for layers that the graph has no form for; files that cannot be written.
pub(super) fn export(
    folder: &Path,
    network: &Network,
    weights: &Weights,
    input: &[f32],
    output: &[f32],
) -> Result<()> {
    let mut tensors = Weights::new();
    let layers = network.layers().iter().map(|layer| node(network, layer, weights, &mut tensors));
    let layers = layers.collect::<Result<Vec<Value>>>()?;
    let shape = |shape: Shape| vec![shape.images, shape.channels, shape.size[0], shape.size[1]];
    let graph = json!({
        "input": shape(network.input_shape()),
        "output": network.output().index(),
        "layers": layers,
    });
    fs::create_dir_all(folder).with_context(|| format!("cannot make folder {}", folder.display()))?;
    let graph_file = folder.join("graph.json");
    fs::write(&graph_file, serde_json::to_string(&graph)?)
        .with_context(|| format!("cannot write {}", graph_file.display()))?;
    npz::write(&tensors, folder.join("weights.npz"))?;
    npy::write(&Tensor::new(shape(network.input_shape()), input.to_vec())?, folder.join("input.npy"))?;
    npy::write(&Tensor::new(shape(network.output_shape()), output.to_vec())?, folder.join("output.npy"))?;
    Ok(())
}

/// A layer, and its weights into `tensors`.
fn node(network: &Network, layer: &Layer, weights: &Weights, tensors: &mut Weights) -> Result<Value> {
    let inputs: Vec<usize> = layer.inputs.iter().map(|value| value.index()).collect();
    let mut node = match network.convolution(layer) {
        Some(conv) => {
            let folded = Folded::new(&conv, weights)?;
            let shape = conv.shape;
            let groups = if shape.is_depthwise() { shape.channels } else { 1 };
            let sizes = vec![shape.filters, shape.channels / groups, shape.taps[0], shape.taps[1]];
            tensors.insert(format!("{}.weight", layer.name), Tensor::new(sizes, folded.filters)?);
            if let Some(bias) = folded.bias {
                tensors.insert(format!("{}.bias", layer.name), Tensor::new(vec![shape.filters], bias)?);
            }
            json!({
                "op": "conv", "strides": shape.strides, "padding": shape.padding, "groups": groups,
                "residual": conv.residual, "clamp": clamp(conv.activation),
            })
        }
        None => moved(layer)?,
    };
    node["name"] = json!(layer.name);
    node["inputs"] = json!(inputs);
    node["output"] = json!(layer.output.index());
    Ok(node)
}

/// A layer without weights.
fn moved(layer: &Layer) -> Result<Value> {
    Ok(match &layer.operation {
        Operation::Pool(pool) => {
            let mode = match pool.mode {
                Mode::Max => "max",
                Mode::AverageExcludePadding => "mean_of_pixels",
                _ => "mean",
            };
            match pool.window {
                Window::Global => json!({"op": "global", "mode": mode}),
                Window::Sliding { size, strides, padding } => {
                    json!({"op": "pool", "mode": mode, "size": size, "strides": strides, "padding": padding})
                }
            }
        }
        Operation::Pad(pad) => {
            json!({"op": "pad", "before": pad.before, "after": pad.after, "value": pad.value})
        }
        Operation::PadChannels(pad) => {
            json!({"op": "pad_channels", "before": pad.before, "after": pad.after})
        }
        Operation::Add(add) => json!({"op": "add", "clamp": clamp(add.activation)}),
        Operation::Concat(_) => json!({"op": "concat"}),
        Operation::Flatten(_) => json!({"op": "flatten"}),
        Operation::FlattenNhwc(_) => json!({"op": "flatten_nhwc"}),
        Operation::DepthToSpace(of) => json!({"op": "depth_to_space", "block": of.block}),
        Operation::Resize(resize) if resize.sampling != Sampling::Asymmetric => {
            let align = resize.sampling == Sampling::AlignCorners;
            json!({"op": "resize", "size": resize.size, "align_corners": align})
        }
        _ => {
            return Err(Usage(format!("layer {}: --export has no form for it", layer.name)).into());
        }
    })
}

/// The least and the greatest result; null where there is no limit.
fn clamp(activation: Activation) -> Value {
    match activation {
        Activation::Relu => json!([0.0, null]),
        Activation::Clamp { lo, hi } => json!([lo, hi]),
        _ => json!([null, null]),
    }
}

#[cfg(test)]
mod tests {
    use lacuna_models::network::{Attention, Conv, Linear, Pool, ValueId};

    use super::*;

    #[test]
    fn a_network_is_written_with_its_norms_folded() {
        let mut builder = Network::builder(Shape::maps(2, 3, [6, 6]));
        let conv = Conv::new(4, [3, 3]).strides([2, 2]).padding([1, 1]).norm("norm").relu6();
        let x = builder.layer("conv", conv, &[ValueId::INPUT]).unwrap();
        let x = builder.layer("mean", Pool::global_average(), &[x]).unwrap();
        let x = builder.layer("fc", Linear::new(5), &[x]).unwrap();
        let network = builder.finish(x).unwrap();
        let weights = Weights::drawn(&network, 1).unwrap();
        let folder = tempfile::tempdir().unwrap();
        export(folder.path(), &network, &weights, &[0.5; 216], &[1.0; 10]).unwrap();
        let graph = fs::read_to_string(folder.path().join("graph.json")).unwrap();
        let graph: Value = serde_json::from_str(&graph).unwrap();
        assert_eq!((&graph["input"], &graph["output"]), (&json!([2, 3, 6, 6]), &json!(3)));
        let conv = &graph["layers"][0];
        assert_eq!(
            (&conv["op"], &conv["strides"], &conv["groups"]),
            (&json!("conv"), &json!([2, 2]), &json!(1))
        );
        assert_eq!((&conv["clamp"], &conv["inputs"]), (&json!([0.0, 6.0]), &json!([0])));
        assert_eq!(graph["layers"][1]["op"], json!("global"));
        let tensors = npz::read(folder.path().join("weights.npz")).unwrap();
        let folded = Folded::new(&network.convolution(&network.layers()[0]).unwrap(), &weights).unwrap();
        assert_eq!(tensors.get("conv.weight", &[4, 3, 3, 3]).unwrap().values(), folded.filters);
        assert_eq!(tensors.get("fc.weight", &[5, 4, 1, 1]).unwrap().values().len(), 20);
        assert_eq!(npy::read(folder.path().join("output.npy")).unwrap().shape(), [2, 5, 1, 1]);
    }

    #[test]
    fn layers_that_have_no_form_are_refused() {
        let mask = lacuna::matrix::generate::band_random(4, 2, 0.5, 1).unwrap();
        let mut builder = Network::builder(Shape::maps(1, 6, [2, 2]));
        let x = builder.layer("attention", Attention::new(1, mask.into()), &[ValueId::INPUT]).unwrap();
        let network = builder.finish(x).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let error = export(folder.path(), &network, &Weights::new(), &[], &[]).unwrap_err();
        assert!(error.to_string().contains("layer attention"), "{error}");
    }
}
