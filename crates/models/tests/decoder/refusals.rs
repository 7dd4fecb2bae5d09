//! What cannot be planned or begun.
use lacuna::Device;
use lacuna_models::decoder::{Config, Decoder, DecoderError, Features};
use lacuna_models::model::{LayerOptions, Options};

use crate::config;

fn planned(change: impl FnOnce(&mut Config), options: &Options) -> Result<Decoder, DecoderError> {
    let mut config = config();
    let weights = config.drawn(1).unwrap();
    change(&mut config);
    let stream = Device::simulator().stream().unwrap();
    Decoder::plan(&stream, &config, &weights, options)
}

#[test]
fn sizes_that_mean_nothing_are_refused() {
    let changes: [(fn(&mut Config), &str); 8] = [
        (|config| config.sentences = 0, "the number of sentences must be at least 1, got 0"),
        (|config| config.beams = 0, "the number of beams must be at least 1, got 0"),
        (|config| config.beams = 65, "from 1 to 64"),
        (|config| config.hidden = 0, "the number of features must be at least 1, got 0"),
        (|config| config.hidden = 13, "up.weight"),
        (|config| config.end = 60, "one of the 60 tokens"),
        (|config| config.first = 60, "one of the 60 tokens"),
        (
            |config| config.features = Some(Features { rows: 60, offsets: vec![0, 1], indices: vec![0] }),
            "the number of words with features must be 60, got 1",
        ),
    ];
    for (change, why) in changes {
        let error = planned(change, &Options::default()).unwrap_err().to_string();
        assert!(error.contains(why), "{why}: {error}");
    }
    let options = Options::default().layer("attention", LayerOptions::default());
    let error = planned(|_| (), &options).unwrap_err().to_string();
    assert!(error.contains("attention"), "{error}");
    planned(|_| (), &Options::default().layer("up", LayerOptions::default())).unwrap();
}

#[test]
fn a_context_of_another_length_is_refused() {
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let config = config();
    let weights = config.drawn(1).unwrap();
    let mut decoder = Decoder::plan(&stream, &config, &weights, &Options::default()).unwrap();
    let context = device.zeros::<f32>(25).unwrap();
    let error = decoder.begin(&stream, context.as_slice()).unwrap_err();
    assert!(matches!(error, DecoderError::Context { expected: 24, got: 25 }), "{error}");
}
