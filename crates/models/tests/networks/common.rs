//! Running a network on the simulator, and checking it.
use lacuna::Device;
use lacuna::conv::MapLayout;
use lacuna::matrix::generate;
use lacuna_models::model::{Model, Options, Report};
use lacuna_models::network::{Network, Shape};
use lacuna_models::oracle::{self, Check, Number};
use lacuna_models::weights::Weights;

/// What a network that was right is.
pub(crate) struct Run {
    /// Of the whole network, with errors carried through.
    pub(crate) whole: Check,
    /// Of the layer that came nearest to its bound.
    pub(crate) worst_layer: f64,
    pub(crate) report: Report,
}

/// An input like an image after normalisation; all of them, where there are several.
pub(crate) fn input(network: &Network) -> Vec<f32> {
    generate::random_values(network.input_len(), 7)
}

/// Runs a network with values of `f32`; as [`run_as`].
pub(crate) fn run(network: &Network, weights: &Weights, options: &Options) -> Run {
    run_as::<f32>(network, weights, options)
}

/// Runs a network on the simulator, and checks each layer by itself and the result.
///
/// # Panics
/// Where something is wrong.
pub(crate) fn run_as<T: Number>(network: &Network, weights: &Weights, options: &Options) -> Run {
    let input: Vec<T> = input(network).into_iter().map(T::from_f32).collect();
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let mut model = Model::<T>::plan(&stream, network, weights, options).unwrap();
    let lies = |values: &[T], shape: Shape| match options.layout {
        MapLayout::Nhwc => channels_first(values, shape),
        _ => values.to_vec(),
    };
    let on_device = match options.layout {
        MapLayout::Nhwc => inputs_last(network, &input),
        _ => input.clone(),
    };
    let on_device = device.upload(&on_device).unwrap();
    let mut output = device.uninitialized::<T>(network.output_shape().elements()).unwrap();
    let mut worst_layer = 0.0_f64;
    let show = |layer: &lacuna_models::network::Layer, inputs: &[Vec<T>], got: &[T]| {
        let shapes = network.input_shapes(layer);
        let inputs: Vec<Vec<T>> =
            inputs.iter().zip(shapes).map(|(values, shape)| lies(values, shape)).collect();
        let got = lies(got, network.shape(layer.output));
        let check = oracle::check_layer(network, layer, weights, options, &inputs, &got).unwrap();
        worst_layer = worst_layer.max(check.worst_over_bound);
    };
    model.inspect(&stream, on_device.as_slice(), output.as_slice_mut(), show).unwrap();
    let inspected = output.download(&stream).unwrap();
    let mut output = device.uninitialized::<T>(inspected.len()).unwrap();
    model.run(&stream, on_device.as_slice(), output.as_slice_mut()).unwrap();
    assert_eq!(output.download(&stream).unwrap(), inspected);
    let expected = oracle::run(network, weights, options, &input).unwrap();
    let got = lies(&inspected, network.output_shape());
    let whole = expected.check("the result", &got).unwrap();
    Run { whole, worst_layer, report: model.report() }
}

fn moved<T: Copy>(values: &[T], shape: Shape, from: impl Fn(usize, usize, usize) -> usize) -> Vec<T> {
    let pixels = shape.pixels();
    let element = |at: usize| {
        let (image, rest) = (at / shape.image_len(), at % shape.image_len());
        values[image * shape.image_len() + from(rest, pixels, shape.channels)]
    };
    (0..values.len()).map(element).collect()
}

fn channels_last<T: Copy>(values: &[T], shape: Shape) -> Vec<T> {
    moved(values, shape, |at, pixels, channels| at % channels * pixels + at / channels)
}

/// All inputs of a network, each with channels last.
fn inputs_last<T: Copy>(network: &Network, mut values: &[T]) -> Vec<T> {
    let mut last = Vec::with_capacity(values.len());
    for &input in network.inputs() {
        let shape = network.shape(input);
        let (own, rest) = values.split_at(shape.elements());
        last.extend(channels_last(own, shape));
        values = rest;
    }
    last
}

fn channels_first<T: Copy>(values: &[T], shape: Shape) -> Vec<T> {
    moved(values, shape, |at, pixels, channels| at % pixels * channels + at / pixels)
}

/// Weights of which this part is zero in all filters: the smallest.
pub(crate) fn pruned(weights: &Weights, part: f64) -> Weights {
    let mut pruned = Weights::new();
    for (name, tensor) in weights.iter() {
        let mut tensor = tensor.clone();
        if tensor.shape().len() > 1 {
            let mut sizes: Vec<f32> = tensor.values().iter().map(|weight| weight.abs()).collect();
            sizes.sort_by(f32::total_cmp);
            let limit = sizes[((sizes.len() as f64 * part) as usize).min(sizes.len() - 1)];
            for weight in tensor.values_mut() {
                *weight = if weight.abs() < limit { 0.0 } else { *weight };
            }
        }
        pruned.insert(name, tensor);
    }
    pruned
}
