//! Each type of layer, in both layouts, dense and sparse.
use lacuna::conv::{Algorithm, MapLayout};
use lacuna_models::model::{Held, LayerOptions, Options};
use lacuna_models::network::{
    Activation, Add, Concat, Conv, DepthToSpace, Flatten, FlattenNhwc, Linear, Network, Pad, PadChannels,
    Pool, Resize, Sampling, Scale, Shape, ValueId,
};
use lacuna_models::oracle;
use lacuna_models::weights::Weights;

use crate::common::{pruned, run};

/// All types of layers, for so many images.
pub(crate) fn all(images: usize) -> Network {
    let mut builder = Network::builder(Shape::maps(images, 3, [9, 8]));
    let mut add = |name: &str, operation: lacuna_models::network::Operation, inputs: &[ValueId]| {
        builder.layer(name, operation, inputs).unwrap()
    };
    let x = ValueId::INPUT;
    let a = add("stem", Conv::new(8, [3, 3]).padding([1, 1]).norm("norm").relu6().into(), &[x]);
    let b = add("depthwise", Conv::depthwise([3, 3]).padding([1, 1]).bias().relu().into(), &[a]);
    let c = add("pointwise", Conv::new(8, [1, 1]).bias().residual().relu().into(), &[b, a]);
    let d = add("scale", Scale::norm().relu().into(), &[c]);
    let e = add("sum", Add::new().activation(Activation::Clamp { lo: -1.0, hi: 1.5 }).into(), &[d, a]);
    // One twice, one that is elsewhere too, and one of other channels.
    let f = add("narrow", Conv::new(4, [1, 1]).into(), &[e]);
    let g = add("concat", Concat.into(), &[e, f, e, c]);
    let h = add("wide", Concat.into(), &[g, f]);
    let i = add("max", Pool::max([3, 3], [2, 2]).padding([1, 1]).into(), &[h]);
    let j = add("strided", Conv::new(6, [1, 1]).strides([2, 2]).norm("last").into(), &[i]);
    let k = add("flatten", Flatten.into(), &[j]);
    let l = add("fc", Linear::new(5).relu().into(), &[k]);
    let m = add("scores", Linear::new(7).into(), &[l]);
    builder.finish(m).unwrap()
}

#[test]
fn every_layer_is_right_in_nchw() {
    for images in [1, 3] {
        let network = all(images);
        let weights = Weights::drawn(&network, 3).unwrap();
        let run = run(&network, &weights, &Options::dense());
        assert!(run.whole.bound_over_greatest < 1e-2, "{:?}", run.whole);
        assert!(run.worst_layer > 0.0);
        assert!(run.report.peak_bytes < run.report.sum_bytes);
    }
}

#[test]
fn every_layer_is_right_with_channels_last() {
    for images in [1, 8] {
        let network = all(images);
        let weights = Weights::drawn(&network, 3).unwrap();
        let run = run(&network, &weights, &Options::dense().layout(MapLayout::Nhwc));
        assert!(run.whole.bound_over_greatest < 1e-2, "{:?}", run.whole);
    }
}

/// Margins on some sides, on all, and on none; wide in one direction; read by a layer whose sums tell where each element is.
#[test]
fn margins_are_right() {
    let margins = [
        Pad::zeros([0, 0], [1, 1]),
        Pad::zeros([2, 0], [1, 0]).value(-3.5),
        Pad::zeros([0, 1], [0, 3]).value(2.0),
        Pad::zeros([1, 2], [3, 0]).value(f32::MIN_POSITIVE),
        Pad::zeros([0, 0], [0, 0]),
    ];
    for (images, layout) in [(1, MapLayout::Nchw), (3, MapLayout::Nchw), (2, MapLayout::Nhwc)] {
        for pad in margins {
            let mut builder = Network::builder(Shape::maps(images, 3, [5, 4]));
            let x = builder.layer("pad", pad, &[ValueId::INPUT]).unwrap();
            let x = builder.layer("conv", Conv::new(2, [3, 3]).strides([2, 2]), &[x]).unwrap();
            let network = builder.finish(x).unwrap();
            let weights = Weights::drawn(&network, 9).unwrap();
            let run = run(&network, &weights, &Options::dense().layout(layout));
            assert!(run.whole.bound_over_greatest < 1e-3, "{pad:?}: {:?}", run.whole);
        }
    }
}

/// A second run finds the margin as the first did, though other values lay there meanwhile.
#[test]
fn what_tensorflow_pads_is_a_layer() {
    let mut builder = Network::builder(Shape::maps(2, 3, [8, 7]));
    let a = builder.layer("a", Conv::new(4, [1, 1]), &[ValueId::INPUT]).unwrap();
    let same = Pad::same([8, 7], [3, 3], [2, 2]);
    assert_eq!(same, Pad::zeros([0, 1], [1, 1]));
    let b = builder.layer("b", same, &[a]).unwrap();
    let c = builder.layer("c", Conv::new(5, [3, 3]).strides([2, 2]).relu(), &[b]).unwrap();
    let d = builder.layer("d", Pool::global_average(), &[c]).unwrap();
    let network = builder.finish(d).unwrap();
    assert_eq!(network.shape(c), Shape::maps(2, 5, [4, 4]));
    run(&network, &Weights::drawn(&network, 3).unwrap(), &Options::dense());
}

#[test]
fn weights_with_many_zeros_are_held_sparse() {
    for images in [1, 2] {
        let network = all(images);
        let weights = pruned(&Weights::drawn(&network, 5).unwrap(), 0.75);
        let run = run(&network, &weights, &Options::default());
        let kernel = |name: &str| {
            let layer = run.report.layers.iter().find(|layer| layer.name == name).unwrap();
            layer.kernel.clone()
        };
        for name in ["pointwise", "narrow", "strided", "fc", "scores"] {
            assert!(kernel(name).contains("spmm"), "{name}: {}", kernel(name));
        }
        assert!(kernel("stem").starts_with("conv") && kernel("depthwise").starts_with("conv"));
    }
}

/// Rows of a matrix too, but padding makes maps of them.
#[test]
fn taps_of_one_pixel_may_be_padded() {
    let mut builder = Network::builder(Shape::matrix(2, 5));
    let x = builder.layer("padded", Conv::new(4, [1, 1]).padding([1, 0]).bias(), &[ValueId::INPUT]).unwrap();
    let y = builder.layer("matrix", Conv::new(5, [1, 1]).bias().relu().residual(), &[ValueId::INPUT; 2]);
    let y = builder.layer("again", Conv::new(4, [1, 1]).padding([1, 0]), &[y.unwrap()]).unwrap();
    let sum = builder.layer("sum", Add::new(), &[x, y]).unwrap();
    let network = builder.finish(sum).unwrap();
    assert_eq!(network.output_shape(), Shape::maps(2, 4, [3, 1]));
    let weights = pruned(&Weights::drawn(&network, 2).unwrap(), 0.5);
    for held in [Held::Sparse, Held::Dense] {
        let layers = LayerOptions { weights: held, ..LayerOptions::default() };
        run(&network, &weights, &Options::default().layers(layers));
    }
}

#[test]
fn what_is_asked_of_a_layer_is_done() {
    let network = all(1);
    let weights = Weights::drawn(&network, 5).unwrap();
    let direct = LayerOptions { algorithm: Algorithm::Direct, ..LayerOptions::default() };
    let sparse = LayerOptions { weights: Held::Sparse, ..LayerOptions::default() };
    let run = run(&network, &weights, &Options::default().layer("stem", direct).layer("narrow", sparse));
    assert_eq!(run.report.layers[0].kernel, "conv_f32_direct");
    let narrow = &run.report.layers[5];
    assert!(narrow.kernel.contains("spmm") && narrow.zero_weights == Some(0.0));
    assert_eq!(narrow.products, 8 * 4 * 72);
}

#[test]
fn concatenated_channels_of_one_image_are_written_where_they_belong() {
    let mut builder = Network::builder(Shape::maps(1, 4, [6, 6]));
    let mut x = builder.layer("stem", Conv::new(8, [3, 3]).padding([1, 1]), &[builder.input()]).unwrap();
    for layer in 0..3 {
        let y = Conv::new(4, [3, 3]).padding([1, 1]).relu();
        let y = builder.layer(format!("conv{layer}"), y, &[x]).unwrap();
        x = builder.layer(format!("concat{layer}"), Concat, &[x, y]).unwrap();
    }
    let x = builder.layer("mean", Pool::global_average(), &[x]).unwrap();
    let network = builder.finish(x).unwrap();
    let weights = Weights::drawn(&network, 1).unwrap();
    let run = run(&network, &weights, &Options::dense());
    let copies = run.report.layers.iter().filter(|layer| layer.name.starts_with("concat"));
    assert!(copies.clone().count() == 3 && copies.clone().all(|layer| layer.kernel == "none"));
    // The block's map alone, and no value beside it.
    assert_eq!(run.report.peak_bytes, 4 * 20 * 36);
}

/// Channels as pixels, other sizes in all ways, and rows in TensorFlow's order, of maps with one channel and with one pixel too.
#[test]
fn maps_are_rearranged_and_resized() {
    for images in [1, 3] {
        let mut builder = Network::builder(Shape::maps(images, 18, [5, 4]));
        let mut add = |name: &str, operation: lacuna_models::network::Operation, inputs: &[ValueId]| {
            builder.layer(name, operation, inputs).unwrap()
        };
        let x = ValueId::INPUT;
        let a = add("space", DepthToSpace::new(3).into(), &[x]);
        let b = add("half", Resize::bilinear([30, 7], Sampling::HalfPixel).into(), &[a]);
        let c = add("corners", Resize::bilinear([4, 5], Sampling::AlignCorners).into(), &[b]);
        let d = add("smaller", Resize::bilinear([2, 3], Sampling::Asymmetric).into(), &[x]);
        let e = add("one", Conv::new(1, [1, 1]).into(), &[a]);
        let f = add("mean", Pool::global_average().into(), &[d]);
        let g = add("more", PadChannels::zeros(2, 3).into(), &[a]);
        let rows = [("ra", a), ("rc", c), ("rd", d), ("re", e), ("rf", f), ("rg", g)];
        let mut rows = rows.map(|(name, value)| add(name, FlattenNhwc.into(), &[value])).to_vec();
        rows.push(add("first", Flatten.into(), &[a]));
        let out = add("all", Concat.into(), &rows);
        let network = builder.finish(out).unwrap();
        assert_eq!(network.shape(a), Shape::maps(images, 2, [15, 12]));
        assert_eq!(
            network.output_shape(),
            Shape::matrix(images, 2 * 180 + 2 * 20 + 18 * 6 + 180 + 18 + 7 * 180 + 2 * 180)
        );
        let weights = Weights::drawn(&network, 3).unwrap();
        for layout in [MapLayout::Nchw, MapLayout::Nhwc] {
            let run = run(&network, &weights, &Options::dense().layout(layout));
            assert!(run.whole.bound_over_greatest < 1e-4, "{:?}", run.whole);
            let kernel = |name: &str| {
                &run.report.layers.iter().find(|layer| layer.name == name).expect("there is a layer").kernel
            };
            let moved = |name: &str| kernel(name).contains("transpose");
            let of_last = layout == MapLayout::Nchw;
            assert_eq!([moved("rc"), moved("first")], [of_last, !of_last]);
            assert_eq!([kernel("rc") == "none", kernel("first") == "none"], [!of_last, of_last]);
        }
    }
}

/// Numbers of channels and pixels, as TensorFlow has them.
#[test]
fn orders_are_tensorflows() {
    let mut builder = Network::builder(Shape::maps(1, 8, [1, 2]));
    let x = builder.layer("space", DepthToSpace::new(2), &[ValueId::INPUT]).unwrap();
    let x = builder.layer("rows", FlattenNhwc, &[x]).unwrap();
    let network = builder.finish(x).unwrap();
    // In NHWC 0, 1, …: a pixel's channels are side by side.
    let input: Vec<f32> = (0..16_u8).map(|at| f32::from(at % 2 * 8 + at / 2)).collect();
    let result = oracle::run(&network, &Weights::new(), &Options::default(), &input).unwrap();
    let expected = [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15].map(f64::from);
    assert_eq!((result.value, result.error), (expected.to_vec(), vec![0.0; 16]));
}
