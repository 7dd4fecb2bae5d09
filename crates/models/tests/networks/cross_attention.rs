//! Networks with several inputs, and attention of one sequence to another.
use std::sync::Arc;

use half::{bf16, f16};
use lacuna::Device;
use lacuna::conv::MapLayout;
use lacuna::matrix::{Pattern, generate};
use lacuna_models::model::{Model, ModelError, Options};
use lacuna_models::network::{
    Add, Attention, Conv, LayerNorm, Network, NetworkError, Problem, Shape, ValueId,
};
use lacuna_models::oracle::{self, OracleError};
use lacuna_models::weights::Weights;

use crate::common::{run, run_as};

const LAYOUTS: [MapLayout; 2] = [MapLayout::Nchw, MapLayout::Nhwc];

/// Some queries see nothing, and some keys are seen by nobody.
fn mask(queries: usize, keys: usize) -> Arc<Pattern> {
    Arc::new(generate::uniform(queries, keys, 0.8, 5).unwrap())
}

/// Attention whose inputs are those of the network: Q and then K and V side by side, or each.
fn alone(images: usize, heads: usize, dim: usize, mask: &Arc<Pattern>, is_beside: bool) -> Network {
    let width = heads * dim;
    let of = |channels: usize, tokens: usize| Shape::maps(images, channels, [1, tokens]);
    let mut builder = Network::builder(of(width, mask.rows()));
    let others = if is_beside { vec![2 * width] } else { vec![width; 2] };
    let mut inputs = vec![builder.input()];
    inputs.extend(others.into_iter().map(|channels| builder.add_input(of(channels, mask.cols()))));
    let x = builder.layer("attention", Attention::new(heads, Arc::clone(mask)), &inputs).unwrap();
    builder.finish(x).unwrap()
}

#[test]
fn cross_attention_is_right() {
    for (images, heads, dim, queries, keys) in
        [(1, 2, 16, 24, 40), (2, 3, 5, 33, 7), (1, 1, 32, 1, 64), (2, 2, 8, 5, 1)]
    {
        let mask = mask(queries, keys);
        for is_beside in [true, false] {
            let network = alone(images, heads, dim, &mask, is_beside);
            assert_eq!(network.output_shape(), Shape::maps(images, heads * dim, [1, queries]));
            assert_eq!(network.multiply_adds(), (2 * images * heads * dim * mask.nnz()) as u64);
            for layout in LAYOUTS {
                let run = run(&network, &Weights::new(), &Options::dense().layout(layout));
                assert!(run.whole.bound_over_greatest < 1e-4, "{heads} {dim}: {:?}", run.whole);
            }
        }
    }
}

#[test]
fn values_of_16_bits_are_right() {
    let network = alone(2, 2, 16, &Arc::new(generate::uniform(40, 24, 0.0, 1).unwrap()), false);
    for layout in LAYOUTS {
        let options = Options::dense().layout(layout);
        assert!(run_as::<f16>(&network, &Weights::new(), &options).whole.bound_over_greatest < 1e-2);
        assert!(run_as::<bf16>(&network, &Weights::new(), &options).whole.bound_over_greatest < 0.1);
    }
}

/// Q, K and V of one sequence give the same whether they are three values or one.
#[test]
fn self_attention_may_have_three_inputs() {
    let mask = Arc::new(generate::band_random(16, 4, 0.5, 3).unwrap());
    let three = alone(1, 2, 4, &mask, false);
    let mut builder = Network::builder(Shape::maps(1, 24, [1, 16]));
    let x = builder.layer("attention", Attention::new(2, mask), &[builder.input()]).unwrap();
    let one = builder.finish(x).unwrap();
    // Channels first, they lie alike.
    let values = generate::random_values(24 * 16, 9);
    let of = |network: &Network| {
        oracle::run(network, &Weights::new(), &Options::default(), &values).unwrap().value
    };
    assert_eq!(of(&three), of(&one));
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut builder = Network::builder(Shape::maps(1, 8, [1, 6]));
    let q = builder.input();
    let mut add = |images, channels, tokens| builder.add_input(Shape::maps(images, channels, [1, tokens]));
    let (k, kv, short, wide, other) =
        (add(1, 8, 10), add(1, 16, 10), add(1, 8, 9), add(1, 9, 10), add(2, 8, 10));
    let mut problem = |heads, mask: Arc<Pattern>, inputs: &[ValueId]| match builder.layer(
        "a",
        Attention::new(heads, mask),
        inputs,
    ) {
        Err(NetworkError::Layer { problem, .. }) => problem,
        other => panic!("{other:?}"),
    };
    let shape = |problem: Problem| match problem {
        Problem::Shape { what, expected, got } => (what, expected.channels, got.channels),
        other => panic!("{other}"),
    };
    assert_eq!(shape(problem(2, mask(6, 10), &[q, k])), ("K and V", 16, 8));
    assert_eq!(shape(problem(2, mask(6, 10), &[q, kv, k])), ("K", 8, 16));
    assert_eq!(shape(problem(2, mask(6, 10), &[q, k, wide])), ("V", 8, 9));
    assert_eq!(shape(problem(2, mask(6, 10), &[q, k, short])), ("V", 8, 8));
    assert_eq!(shape(problem(2, mask(6, 10), &[q, other, other])), ("K", 8, 8));
    for wrong in [mask(6, 9), mask(10, 6), mask(6, 6)] {
        let found = problem(2, wrong, &[q, k, k]).to_string();
        assert!(found.contains("the mask") && found.contains("6×10, the tokens of Q"), "{found}");
    }
    for heads in [0, 3] {
        assert!(matches!(problem(heads, mask(6, 10), &[q, kv]), Problem::Size { what: "the channels", .. }));
    }
    assert!(matches!(problem(2, mask(6, 10), &[]), Problem::Inputs { got: 0, .. }));
    assert!(matches!(problem(2, mask(6, 10), &[q, k, k, k]), Problem::Inputs { got: 4, .. }));
}

/// Two inputs of other shapes, of which the second begins where no vector does, and an input that nobody reads.
#[test]
fn several_inputs_lie_one_after_another() {
    let mut builder = Network::builder(Shape::maps(1, 3, [1, 3]));
    let other = builder.add_input(Shape::maps(1, 5, [1, 3]));
    let unread = builder.add_input(Shape::matrix(2, 2));
    let x = builder.layer("norm", LayerNorm::new(), &[other]).unwrap();
    let y = builder.layer("first", Conv::new(4, [1, 1]), &[builder.input()]).unwrap();
    let z = builder.layer("second", Conv::new(4, [1, 1]).residual(), &[x, y]).unwrap();
    let mut only_input = builder.clone();
    let out = builder.layer("sum", Add::new(), &[z, y]).unwrap();
    assert!(only_input.layer("no", Add::new(), &[z, unread]).is_err());
    assert_eq!(only_input.finish(unread).unwrap_err(), NetworkError::Output);
    let network = builder.finish(out).unwrap();
    assert_eq!((network.inputs(), network.input_len()), (&[ValueId::INPUT, other, unread][..], 9 + 15 + 4));
    let weights = Weights::drawn(&network, 2).unwrap();
    for layout in LAYOUTS {
        let run = run(&network, &weights, &Options::dense().layout(layout));
        assert!(run.whole.bound_over_greatest < 1e-2, "{:?}", run.whole);
    }
    // A buffer of the first input alone is too short.
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let mut model = Model::<f32>::plan(&stream, &network, &weights, &Options::dense()).unwrap();
    let input = device.zeros::<f32>(9).unwrap();
    let mut output = device.zeros::<f32>(12).unwrap();
    let error = model.run(&stream, input.as_slice(), output.as_slice_mut()).unwrap_err();
    assert!(matches!(error, ModelError::Length { what: "input", expected: 28, got: 9 }), "{error}");
    let error = oracle::run(&network, &weights, &Options::dense(), &[0.0_f32; 9]).unwrap_err();
    assert!(matches!(error, OracleError::Length { expected: 28, got: 9, .. }), "{error}");
}
