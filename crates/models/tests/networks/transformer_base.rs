//! The Transformer for translation, and the masks of its layers.
use std::fs;
use std::sync::Arc;

use half::f16;
use lacuna::conv::MapLayout;
use lacuna::matrix::{generate, io::smtx};
use lacuna_models::model::Options;
use lacuna_models::network::{Network, NetworkError, Shape};
use lacuna_models::networks::TransformerBase;
use lacuna_models::prune::{MaskError, Masks};
use lacuna_models::weights::Weights;

use crate::common::{pruned, run, run_as};

fn small(source: usize, target: usize) -> TransformerBase {
    let full = TransformerBase::dense(source, target).unwrap();
    TransformerBase { layers: 1, heads: 2, hidden: 16, filter: 32, vocabulary: Some(10), ..full }
}

#[test]
fn the_network_is_right() {
    let network = small(12, 9).network(2).unwrap();
    assert_eq!(network.input_len(), 2 * 16 * (12 + 9));
    assert_eq!(network.output_shape(), Shape::maps(2, 10, [1, 9]));
    let weights = pruned(&Weights::drawn(&network, 11).unwrap(), 0.8);
    for layout in [MapLayout::Nchw, MapLayout::Nhwc] {
        let run = run(&network, &weights, &Options::default().layout(layout));
        assert!(run.worst_layer > 0.0 && run.worst_layer <= 1.0);
        assert!(run.whole.error_over_greatest < 5e-5, "{:?}", run.whole);
        let sparse = run.report.layers.iter().filter(|layer| layer.kernel.contains("spmm")).count();
        assert_eq!(sparse, if layout == MapLayout::Nchw { 17 } else { 0 });
    }
    let half = run_as::<f16>(&network, &weights, &Options::dense().layout(MapLayout::Nhwc));
    assert!(half.worst_layer <= 1.0 && half.whole.error_over_greatest < 1e-2, "{:?}", half.whole);
}

/// A token of the target sees those before it and all of the source; a mask may hide some.
#[test]
fn tokens_see_what_masks_say() {
    let network = small(5, 4).network(1).unwrap();
    let weights = Weights::drawn(&network, 3).unwrap();
    let input = generate::random_values(network.input_len(), 4);
    let of = |network: &Network, input: &[f32]| {
        lacuna_models::oracle::run(network, &weights, &Options::dense(), input).unwrap().value
    };
    // Whether the results of the four tokens change with a token of an input.
    let changed = |network: &Network, at: usize| -> Vec<bool> {
        let input = &input[..network.input_len()];
        let mut other = input.to_vec();
        // Of one channel alone: norms take away what all have in common.
        other[at] += 1.0;
        let (before, after) = (of(network, input), of(network, &other));
        (0..4).map(|at| (0..10).any(|word| before[word * 4 + at] != after[word * 4 + at])).collect()
    };
    let target_from = 16 * 5;
    assert_eq!(changed(&network, target_from + 2), [false, false, true, true]);
    assert_eq!(changed(&network, 3), [true; 4]);
    // Each token of the target sees one of the source, and each of the source itself.
    let diagonal = |rows| Arc::new(generate::band_random(rows, 1, 1.0, 1).unwrap());
    let base = small(4, 4);
    let base = TransformerBase {
        source_mask: diagonal(4),
        target_mask: diagonal(4),
        cross_mask: diagonal(4),
        ..base
    };
    assert_eq!(changed(&base.network(1).unwrap(), 1), [false, true, false, false]);
}

#[test]
fn the_base_model_has_the_papers_sizes() {
    let network = TransformerBase::dense(256, 128).unwrap().network(1).unwrap();
    // Four or eight matrices of attention, two of the feed-forward layer with their biases, and norms.
    let layer =
        |attention: usize, norms: usize| attention * 512 * 512 + 2 * 512 * 2048 + 2048 + 512 + norms * 1024;
    assert_eq!(network.parameter_count(), 6 * (layer(4, 2) + layer(8, 3)) + 2 * 1024);
    let linear = 256 * 6 * (6 * 512 * 512 + 2 * 512 * 2048) + 128 * 6 * (6 * 512 * 512 + 2 * 512 * 2048);
    let keys = 256 * 256 + 128 * 129 / 2 + 128 * 256;
    assert_eq!(network.multiply_adds(), linear + 6 * keys * 512 * 2);
    let files: Vec<String> =
        network.layers().iter().filter_map(|layer| TransformerBase::dlmc_file(&layer.name)).collect();
    assert_eq!(files.len(), 6 * (6 + 10));
}

#[test]
fn sizes_that_mean_nothing_are_refused() {
    let usual = small(4, 6);
    for wrong in [
        TransformerBase { layers: 0, ..usual.clone() },
        TransformerBase { heads: 0, ..usual.clone() },
        TransformerBase { heads: 3, ..usual.clone() },
        TransformerBase { hidden: 0, ..usual.clone() },
    ] {
        assert!(matches!(wrong.network(1), Err(NetworkError::Size { .. })), "{wrong:?}");
    }
    let turned = Arc::new(generate::uniform(4, 6, 0.0, 1).unwrap());
    let error = TransformerBase { cross_mask: turned, ..usual }.network(1).unwrap_err().to_string();
    assert!(error.contains("decoder.0.encdec_attention.attention: the mask: expected 6×4"), "{error}");
    assert!(matches!(TransformerBase::dense(1 << 17, 1 << 17), Err(NetworkError::Size { .. })));
}

#[test]
fn masks_of_files_are_those_of_layers() {
    let network = small(3, 3).network(1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let write = |layer: &str, rows: usize, columns: usize| {
        let path = folder.path().join(TransformerBase::dlmc_file(layer).unwrap());
        let pattern = generate::uniform(rows, columns, 0.75, 3).unwrap();
        smtx::write(&pattern, fs::File::create(path).unwrap()).unwrap();
        pattern
    };
    let read = || Masks::read(folder.path(), &network, TransformerBase::dlmc_file);
    let empty = read().unwrap();
    assert_eq!((empty.iter().count(), empty.missing().count()), (0, 6 + 10));
    let conv = write("encoder.0.ffn.conv1", 32, 16);
    let key = write("decoder.0.encdec_attention.k", 16, 16);
    let masks = read().unwrap();
    let found: Vec<_> = masks.iter().collect();
    assert_eq!(found, [("decoder.0.encdec_attention.k", &key), ("encoder.0.ffn.conv1", &conv)]);
    assert_eq!(masks.missing().count(), 14);
    let error = masks.expect_all().unwrap_err();
    assert!(
        matches!(&error, MaskError::Missing { layer, .. } if layer == "decoder.0.encdec_attention.output_transform")
    );
    assert!(
        error.to_string().contains("encdec_attention_multihead_attention_output_transform_fully"),
        "{error}"
    );

    let weights = Weights::drawn(&network, 1).unwrap();
    let masked = masks.masked_drawn(&weights).unwrap();
    assert_eq!(masked.iter().map(|(name, _)| name).collect::<Vec<_>>().len(), 2);
    let shape = [32, 16, 1, 1];
    let [before, after] = [&weights, &masked]
        .map(|weights| weights.get("encoder.0.ffn.conv1.weight", &shape).unwrap().values());
    for (at, (before, after)) in before.iter().zip(after).enumerate() {
        let is_left = conv.row_columns(at / 16).contains(&((at % 16) as u32));
        // A quarter is left, twice as large.
        assert_eq!(*after, if is_left { 2.0 * before } else { 0.0 });
    }
    assert!(masks.masked_drawn(&Weights::new()).is_err());

    write("encoder.0.ffn.conv2", 32, 16);
    let error = read().unwrap_err();
    assert!(matches!(error, MaskError::Shape { expected: [16, 32], got: [32, 16], .. }), "{error}");
    assert!(error.to_string().contains("body_encoder_layer_0_ffn_conv2_fully_connected.smtx"), "{error}");
    fs::write(folder.path().join("body_encoder_layer_0_ffn_conv2_fully_connected.smtx"), "no").unwrap();
    let error = read().unwrap_err();
    assert!(matches!(&error, MaskError::Read { .. }) && error.to_string().contains("ffn_conv2"), "{error}");
}
