//! Several steps in a row.
use lacuna::matrix::generate;
use lacuna::{Device, Precision};
use lacuna_models::decoder::{Config, Decoder, Features, Hypotheses, Oracle, StepCheck};
use lacuna_models::model::{Held, LayerOptions, Options};
use lacuna_models::weights::Weights;

use crate::config;

const STEPS: usize = 5;

/// Checks each part of each step, and gives what was chosen.
fn decoded(config: &Config, weights: &Weights, options: &Options) -> (StepCheck, Vec<Hypotheses>) {
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let mut decoder = Decoder::plan(&stream, config, weights, options).unwrap();
    let oracle = Oracle::new(config, weights, options).unwrap();
    let context = device.upload(&context(config)).unwrap();
    decoder.begin(&stream, context.as_slice()).unwrap();
    assert_eq!(decoder.hypotheses(&stream).unwrap(), oracle.begin());
    let (mut check, mut chosen) = (StepCheck::default(), Vec::new());
    for step in 0..STEPS {
        let of_step = oracle.check_step(&mut decoder, &stream);
        check = check.and(of_step.unwrap_or_else(|error| panic!("step {step}: {error}")));
        chosen.push(decoder.hypotheses(&stream).unwrap());
    }
    // Whole steps after another beginning make the same.
    decoder.begin(&stream, context.as_slice()).unwrap();
    for (step, chosen) in chosen.iter().enumerate() {
        decoder.step(&stream).unwrap();
        assert_eq!(decoder.hypotheses(&stream).unwrap(), *chosen, "step {step}");
    }
    (check, chosen)
}

fn context(config: &Config) -> Vec<f32> {
    generate::random_values(config.sentences * config.hidden, 5)
}

/// The same by the host alone: each part in `f64`, from its own results.
fn on_host(config: &Config, weights: &Weights, options: &Options) -> Vec<Hypotheses> {
    let oracle = Oracle::new(config, weights, options).unwrap();
    let singles = |values: &[f64]| values.iter().map(|&value| value as f32).collect::<Vec<f32>>();
    let table = singles(&oracle.table().unwrap().value);
    let mut state: Vec<f32> =
        context(config).chunks(config.hidden).flat_map(|row| row.repeat(config.beams)).collect();
    let mut hypotheses = oracle.begin();
    let mut step = || {
        state = singles(&oracle.recurrent(&oracle.input(&hypotheses, &table, &state)).unwrap().value);
        let features = singles(&oracle.feed_forward(&state).unwrap().value);
        let logits = singles(&oracle.projection(&features).unwrap().value);
        let candidates = oracle.choose(&hypotheses, &logits);
        let best: Vec<_> = candidates.iter().flat_map(|best| &best[..config.beams]).collect();
        hypotheses = Hypotheses {
            words: best.iter().map(|candidate| candidate.word).collect(),
            parents: best.iter().map(|candidate| candidate.parent).collect(),
            scores: best.iter().map(|candidate| candidate.score as f32).collect(),
            finished: best.iter().map(|candidate| candidate.is_finished).collect(),
        };
        hypotheses.clone()
    };
    (0..STEPS).map(|_| step()).collect()
}

fn check(config: &Config, weights: &Weights, options: &Options) -> Vec<Hypotheses> {
    let (check, chosen) = decoded(config, weights, options);
    assert_eq!(check.same + check.tied, STEPS * config.hypotheses());
    assert_eq!(check.tied, 0, "{check:?}");
    assert!(check.worst_over_bound > 0.0 && check.worst_over_bound <= 1.0, "{check:?}");
    let expected = on_host(config, weights, options);
    for (step, (got, expected)) in chosen.iter().zip(&expected).enumerate() {
        assert_eq!((&got.words, &got.parents), (&expected.words, &expected.parents), "step {step}");
        assert_eq!(got.finished, expected.finished, "step {step}");
        for (got, expected) in got.scores.iter().zip(&expected.scores) {
            assert!((got - expected).abs() < 1e-3, "step {step}: {got}, {expected}");
        }
    }
    chosen
}

#[test]
fn each_step_chooses_the_words_that_the_host_does() {
    let config = config();
    let chosen = check(&config, &config.drawn(3).unwrap(), &Options::default());
    // Hypotheses are not all continuations of the first: what they take over of their parents is tested.
    assert!(chosen.iter().any(|step| step.parents[..3] != [0, 0, 0]), "{chosen:?}");
}

#[test]
fn words_of_several_features_and_no_feed_forward_block() {
    let sizes = Config { inner: 0, beams: 1, ..config() };
    // The word itself, and one of seven endings for most.
    let offsets = (0..=sizes.vocabulary).map(|word| 2 * word - word.div_ceil(5)).collect();
    let of_word = |word: usize| {
        let ending = (word % 5 != 0).then(|| sizes.vocabulary + word % 7);
        [Some(word), ending].into_iter().flatten().map(|feature| feature as u32)
    };
    let indices = (0..sizes.vocabulary).flat_map(of_word).collect();
    let features = Features { rows: sizes.vocabulary + 7, offsets, indices };
    let config = Config { features: Some(features), ..sizes };
    check(&config, &config.drawn(4).unwrap(), &Options::default());
}

#[test]
fn sparse_weights_and_full_precision() {
    let config = Config { sentences: 1, ..config() };
    let sparse = LayerOptions { weights: Held::Sparse, precision: Precision::Fma, ..LayerOptions::default() };
    let mut weights = config.drawn(5).unwrap();
    for (name, tensor) in weights.iter_mut() {
        if name != "embedding.weight" && tensor.shape().len() > 1 {
            tensor.values_mut().iter_mut().step_by(2).for_each(|weight| *weight = 0.0);
        }
    }
    let dense = LayerOptions { weights: Held::Dense, ..sparse };
    check(&config, &weights, &Options::default().layers(sparse).layer("projection", dense));
}

#[test]
fn sentences_come_to_an_end_and_stay_there() {
    let config = Config { beams: 2, ..config() };
    let mut weights = config.drawn(6).unwrap();
    for (name, tensor) in weights.iter_mut() {
        if name == "projection.bias" {
            tensor.values_mut()[config.end as usize] = 4.0;
        }
    }
    let chosen = check(&config, &weights, &Options::default());
    let last = &chosen[STEPS - 1];
    let ended = last.finished.iter().zip(&last.words).filter(|&(&is_finished, _)| is_finished);
    assert!(ended.clone().count() > 0 && ended.clone().all(|(_, &word)| word == config.end), "{last:?}");
}

#[test]
fn a_wrong_choice_is_seen() {
    let config = config();
    let (weights, options) = (config.drawn(3).unwrap(), Options::default());
    let oracle = Oracle::new(&config, &weights, &options).unwrap();
    let logits = generate::random_values(config.hypotheses() * config.vocabulary, 9);
    let before = Hypotheses { scores: vec![0.0; 6], ..oracle.begin() };
    let best: Vec<_> =
        oracle.choose(&before, &logits).into_iter().flat_map(|best| best[..3].to_vec()).collect();
    let right = Hypotheses {
        words: best.iter().map(|candidate| candidate.word).collect(),
        parents: best.iter().map(|candidate| candidate.parent).collect(),
        scores: best.iter().map(|candidate| candidate.score as f32).collect(),
        finished: best.iter().map(|candidate| candidate.is_finished).collect(),
    };
    assert_eq!(oracle.check_beams(&before, &logits, &right).unwrap().same, 6);
    let wrong: [fn(&mut Hypotheses); 6] = [
        |it| it.words.swap(0, 1),
        |it| it.scores[4] += 1e-3,
        |it| it.scores[4] = f32::NAN,
        |it| it.finished[5] = true,
        |it| it.parents[5] = 0,
        |it| (it.words[1], it.parents[1], it.scores[1]) = (it.words[0], it.parents[0], it.scores[0]),
    ];
    for (number, change) in wrong.into_iter().enumerate() {
        let mut changed = right.clone();
        change(&mut changed);
        assert!(oracle.check_beams(&before, &logits, &changed).is_err(), "change {number}");
    }
}
