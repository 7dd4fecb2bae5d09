//! One decoder on one device: checked, then timed or modelled.
use std::collections::BTreeMap;

use anyhow::Result;
use indicatif::ProgressBar;
use lacuna::{Device, Stream};
use lacuna_cases::exit::Usage;
use lacuna_models::decoder::{Config, Decoder, DecoderError, Part};
use lacuna_models::model::{LayerOptions, Options};

use super::check::{self, Checked};
use super::record::{PartRecord, Record};
use crate::machine::MachineRecord;
use crate::model;
use crate::timing::{Timing, time};
use crate::types::{self, Precision, Types};

/// How decoders are measured.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// The part of the layers' weights that is pruned.
    pub sparsity: f64,
    /// How exactly sums are computed.
    pub precision: Precision,
    /// Whether parts are checked in their whole size, and not cut.
    pub check_whole: bool,
    /// Samples of a timing.
    pub samples: u32,
    /// The seed of what is drawn.
    pub seed: u64,
}

/// A time, or a model of it.
type Timed = (Option<Timing>, BTreeMap<String, f64>);

/// Measures a decoder. On the simulator it is a cut one.
///
/// # Errors
/// [`Usage`] for sizes that it cannot have; what the library says. A wrong step is no error: the record tells it.
pub fn measure(device: &Device, config: &Config, how: How) -> Result<Record> {
    // indicatif draws on stderr, and only where that is a terminal.
    let progress = ProgressBar::new_spinner();
    let tell = |what: &str| {
        progress.set_message(what.to_owned());
        progress.tick();
    };
    let stream = device.stream()?;
    let precision = Types { precision: how.precision, ..Types::default() }.precision();
    let options = Options::default().layers(LayerOptions { precision, ..LayerOptions::default() });
    let is_cut = device.is_simulator();
    let config = &if is_cut { cut(config, [48, 24]) } else { config.clone() };
    tell("checking each part");
    let small = if how.check_whole { config.clone() } else { cut(config, [1500, 128]) };
    let Checked { error_over_bound, same, tied } = check::by_parts(&stream, &small, &options, how)?;
    tell("drawing and pruning weights");
    let weights = check::drawn(config, how)?;
    tell("planning");
    let plan = Decoder::plan(&stream, config, &weights, &options);
    let mut decoder = plan.map_err(|error| match error {
        DecoderError::Network(error) => Usage(error.to_string()).into(),
        error => anyhow::Error::from(error),
    })?;
    let (difference, beams_are_right) = check::whole(&stream, &mut decoder, &weights, how)?;
    drop(weights);
    tell("measuring");
    check::begin(&mut decoder, &stream, how.seed)?;
    let (time_us, model_us) = timed(&mut decoder, &stream, how.samples, Decoder::step)?;
    let parts = parts(&mut decoder, &stream, how.samples)?;
    let per_second = |count: usize| time_us.map(|time| count as f64 / time.median * 1e6);
    let Config { sentences, beams, vocabulary, hidden, inner, .. } = *config;
    Ok(Record {
        op: "decoder",
        case: format!("v{vocabulary}_h{hidden}_i{inner}_b{beams}_s{sentences}"),
        sentences,
        beams,
        vocabulary,
        hidden,
        inner,
        cut: is_cut,
        sparsity: how.sparsity,
        value: "f32",
        precision: types::name(how.precision),
        weights: "drawn",
        weight_bytes: decoder.weight_bytes(),
        time_us,
        model_us,
        tokens_per_s: per_second(sentences),
        hypotheses_per_s: per_second(config.hypotheses()),
        parts,
        checked_steps: check::STEPS,
        checked_whole: small == *config,
        error_over_bound,
        same_beams: same,
        tied_beams: tied,
        difference,
        beams_are_right,
        seed: how.seed,
        machine: MachineRecord::of(device),
    })
}

/// A decoder with fewer sentences, words and features, so that the host can work it out in `f64`.
fn cut(config: &Config, [words, features]: [usize; 2]) -> Config {
    let vocabulary = config.vocabulary.min(words);
    Config {
        sentences: config.sentences.min(2),
        vocabulary,
        hidden: config.hidden.min(features),
        inner: config.inner.min(2 * features),
        first: config.first.min(vocabulary as u32 - 1),
        end: config.end.min(vocabulary as u32 - 1),
        ..config.clone()
    }
}

/// Each part by itself, in their order.
fn parts(decoder: &mut Decoder, stream: &Stream, samples: u32) -> Result<Vec<PartRecord>> {
    let mut records = Vec::new();
    for part in Part::ALL {
        let kernels = decoder.kernels(part);
        let (time_us, model_us) = if kernels == "none" {
            Timed::default()
        } else {
            timed(decoder, stream, samples, |decoder, stream| decoder.run_part(stream, part))?
        };
        records.push(PartRecord { name: part.name(), kernels, time_us, model_us, share: None });
    }
    let sum: f64 = records.iter().filter_map(PartRecord::us).sum();
    for record in &mut records {
        record.share = record.us().filter(|_| sum > 0.0).map(|us| us / sum);
    }
    Ok(records)
}

/// The time of some work, which ran before: kernels are loaded. On the simulator, what its counts come to.
fn timed(
    decoder: &mut Decoder,
    stream: &Stream,
    samples: u32,
    work: impl Fn(&mut Decoder, &Stream) -> Result<(), DecoderError>,
) -> Result<Timed> {
    if stream.device().is_simulator() {
        let (ran, launches) = stream.device().record(|| Ok(work(decoder, stream)))?;
        ran?;
        return Ok((None, model::times(&launches)));
    }
    Ok((Some(time(stream, samples, |stream| Ok(work(decoder, stream)?))?), BTreeMap::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOW: How =
        How { sparsity: 0.0, precision: Precision::Single, check_whole: false, samples: 1, seed: 1 };

    #[test]
    fn a_decoder_is_checked_and_modelled_on_the_simulator() {
        for (sparsity, inner) in [(0.0, 2048), (0.9, 0)] {
            let config = Config { inner, ..Config::default() };
            let record = measure(&Device::simulator(), &config, How { sparsity, ..HOW }).unwrap();
            assert!(record.is_right() && record.cut && record.checked_whole, "{record:?}");
            assert_eq!(record.same_beams + record.tied_beams, 3 * 8, "{record:?}");
            assert!(record.time_us.is_none() && record.tokens_per_s.is_none());
            let shares: f64 = record.parts.iter().filter_map(|part| part.share).sum();
            assert!((shares - 1.0).abs() < 1e-9);
            assert_eq!(
                record.parts.iter().filter(|part| part.kernels == "none").count(),
                usize::from(inner == 0)
            );
            assert_eq!(record.parts[3].kernels.contains("spmm"), sparsity > 0.0, "{record:?}");
        }
    }

    #[test]
    fn a_cut_decoder_has_its_words() {
        let config = Config { end: 31_999, inner: 0, ..Config::default() };
        let cut = cut(&config, [48, 24]);
        assert_eq!((cut.sentences, cut.beams, cut.vocabulary, cut.hidden, cut.inner), (2, 4, 48, 24, 0));
        assert_eq!((cut.first, cut.end), (1, 47));
    }
}
