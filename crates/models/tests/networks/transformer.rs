//! Layer norms, attention, and the Transformer that is made of them.
use std::sync::Arc;

use lacuna::conv::MapLayout;
use lacuna::matrix::{Pattern, generate};
use lacuna_models::model::Options;
use lacuna_models::network::{Attention, LayerNorm, Network, NetworkError, Problem, Shape};
use lacuna_models::networks::Transformer;
use lacuna_models::weights::Weights;

use crate::common::{pruned, run};

const LAYOUTS: [MapLayout; 2] = [MapLayout::Nchw, MapLayout::Nhwc];

fn mask(tokens: usize) -> Arc<Pattern> {
    Arc::new(generate::band_random(tokens, 6, 0.7, 3).unwrap())
}

#[test]
fn layer_norms_are_right() {
    for (images, channels, size) in [(2, 37, [3, 5]), (1, 1, [4, 4]), (3, 8, [1, 1]), (1, 130, [1, 33])] {
        let mut builder = Network::builder(Shape::maps(images, channels, size));
        let x = builder.layer("norm", LayerNorm::new().epsilon(1e-3), &[builder.input()]).unwrap();
        let network = builder.finish(x).unwrap();
        assert_eq!(network.parameter_count(), 2 * channels);
        let weights = Weights::drawn(&network, 4).unwrap();
        for layout in LAYOUTS {
            let run = run(&network, &weights, &Options::dense().layout(layout));
            assert!(run.whole.bound_over_greatest < 1e-3, "{channels} {size:?}: {:?}", run.whole);
            assert_eq!(run.report.layers[0].products, 0);
        }
    }
}

#[test]
fn attention_is_right() {
    for (images, heads, dim, tokens) in [(1, 2, 16, 40), (2, 3, 5, 24), (1, 1, 32, 64)] {
        let mut builder = Network::builder(Shape::maps(images, 3 * heads * dim, [tokens / 8, 8]));
        let mask = mask(tokens);
        let attention = Attention::new(heads, Arc::clone(&mask));
        let x = builder.layer("attention", attention, &[builder.input()]).unwrap();
        let network = builder.finish(x).unwrap();
        assert_eq!(network.output_shape().channels, heads * dim);
        assert_eq!(network.multiply_adds(), (2 * images * heads * dim * mask.nnz()) as u64);
        for layout in LAYOUTS {
            let run = run(&network, &Weights::new(), &Options::dense().layout(layout));
            assert!(run.whole.bound_over_greatest < 1e-4, "{heads} {dim}: {:?}", run.whole);
        }
    }
}

#[test]
fn the_transformer_is_right() {
    let small =
        Transformer { layers: 2, heads: 2, hidden: 16, filter: 32, mask: mask(64), vocabulary: Some(10) };
    let network = small.network(2).unwrap();
    let weights = pruned(&Weights::drawn(&network, 11).unwrap(), 0.8);
    for layout in LAYOUTS {
        let run = run(&network, &weights, &Options::default().layout(layout));
        assert!(run.worst_layer > 0.0 && run.worst_layer <= 1.0);
        assert!(run.whole.error_over_greatest < 5e-5, "{:?}", run.whole);
        let sparse = run.report.layers.iter().filter(|layer| layer.kernel.contains("spmm")).count();
        assert_eq!(sparse, if layout == MapLayout::Nchw { 9 } else { 0 });
        // Both layers have one mask, which is on the device once.
        let masks = run.report.layers.iter().filter(|layer| layer.name.ends_with("attention"));
        let bytes: Vec<usize> = masks.map(|layer| layer.weight_bytes).collect();
        assert!(bytes[0] > 0 && bytes[1] == 0, "{bytes:?}");
    }
}

#[test]
fn table_iii_has_the_papers_sizes() {
    let transformer = Transformer::table_iii(12_288, 1).unwrap();
    let network = transformer.network(1).unwrap();
    // Of each layer 12 · 1024², biases and two norms; the last norm, and the scores of 256 words.
    let layer = 12 * 1024 * 1024 + 4096 + 1024 + 4 * 1024;
    assert_eq!(network.parameter_count(), 3 * layer + 2 * 1024 + 256 * 1024);
    let beside = transformer.mask.nnz() as f64 / 12_288_f64.powi(2);
    assert!((0.04..0.06).contains(&beside), "{beside}");
}

#[test]
fn sizes_that_mean_nothing_are_refused() {
    let usual = Transformer { layers: 1, heads: 2, hidden: 8, filter: 8, mask: mask(16), vocabulary: None };
    assert!(usual.network(1).is_ok());
    for wrong in [
        Transformer { layers: 0, ..usual.clone() },
        Transformer { heads: 0, ..usual.clone() },
        Transformer { heads: 3, ..usual.clone() },
        Transformer { hidden: 0, ..usual.clone() },
    ] {
        assert!(matches!(wrong.network(1), Err(NetworkError::Size { .. })), "{wrong:?}");
    }
    let mut builder = Network::builder(Shape::maps(1, 24, [1, 15]));
    let input = builder.input();
    let mut problem =
        |operation: lacuna_models::network::Operation| match builder.layer("a", operation, &[input]) {
            Err(NetworkError::Layer { problem: Problem::Size { what, .. }, .. }) => what,
            other => panic!("{other:?}"),
        };
    assert_eq!(problem(Attention::new(2, mask(16)).into()), "the mask");
    assert_eq!(problem(Attention::new(5, mask(15)).into()), "the channels");
    assert_eq!(problem(Attention::new(0, mask(15)).into()), "the channels");
    assert_eq!(problem(LayerNorm::new().epsilon(f32::NAN).into()), "epsilon");
    assert_eq!(problem(LayerNorm::new().epsilon(-1.0).into()), "epsilon");
}
