//! Whether a decoder is right.
use anyhow::Result;
use lacuna::matrix::generate;
use lacuna::{Precision, Stream};
use lacuna_models::decoder::{Config, Decoder, DecoderError, Oracle, StepCheck};
use lacuna_models::model::{Held, LayerOptions, Options};
use lacuna_models::prune;
use lacuna_models::weights::Weights;

use super::How;
use crate::networks::difference;

/// Steps of a cut decoder that are checked part by part.
pub(super) const STEPS: usize = 3;

/// What is drawn for the context, in place of the weights.
const CONTEXT_SALT: u64 = 0xc0;

/// What the steps of a decoder came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checked {
    /// The largest error of a part over its bound; huge for a wrong step.
    pub(super) error_over_bound: f64,
    pub(super) same: usize,
    pub(super) tied: usize,
}

/// Weights, of which all but the embedding are pruned.
pub(super) fn drawn(config: &Config, how: How) -> Result<Weights> {
    let mut weights = config.drawn(how.seed)?;
    if how.sparsity > 0.0 {
        prune::each(&mut weights, how.sparsity, |name, tensor| {
            !name.starts_with("embedding") && tensor.shape().len() > 1
        })?;
    }
    Ok(weights)
}

/// Begins sentences, of drawn contexts.
pub(super) fn begin(decoder: &mut Decoder, stream: &Stream, seed: u64) -> Result<()> {
    let Config { sentences, hidden, .. } = *decoder.config();
    let context = generate::random_values(sentences * hidden, seed ^ CONTEXT_SALT);
    let context = stream.device().upload(&context)?;
    decoder.begin(stream, context.as_slice())?;
    // The context is dropped now, and must have been read.
    Ok(stream.synchronize()?)
}

/// Checks some steps of a decoder that the host can work out, part by part. What is wrong is told on stderr.
pub(super) fn by_parts(stream: &Stream, config: &Config, options: &Options, how: How) -> Result<Checked> {
    let weights = drawn(config, how)?;
    let oracle = Oracle::new(config, &weights, options)?;
    let mut decoder = Decoder::plan(stream, config, &weights, options)?;
    begin(&mut decoder, stream, how.seed)?;
    let mut sum = StepCheck::default();
    for _ in 0..STEPS {
        match judged(oracle.check_step(&mut decoder, stream))? {
            Some(step) => sum = sum.and(step),
            None => return Ok(Checked { error_over_bound: f64::MAX, same: 0, tied: 0 }),
        }
    }
    Ok(Checked { error_over_bound: sum.worst_over_bound, same: sum.same, tied: sum.tied })
}

/// Runs the first step of a decoder in its whole size. Gives how far its logits are from those of dense weights in full `f32`, as a part
/// of the greatest, and whether its beams are those that its logits ask for.
pub(super) fn whole(
    stream: &Stream,
    decoder: &mut Decoder,
    weights: &Weights,
    how: How,
) -> Result<(f64, bool)> {
    let exact = LayerOptions { weights: Held::Dense, precision: Precision::Fma, ..LayerOptions::default() };
    let exact = Options::default().layers(exact);
    let config = decoder.config().clone();
    let expected = {
        let mut twin = Decoder::plan(stream, &config, weights, &exact)?;
        begin(&mut twin, stream, how.seed)?;
        twin.step(stream)?;
        twin.logits().download(stream)?
    };
    begin(decoder, stream, how.seed)?;
    let before = decoder.hypotheses(stream)?;
    decoder.step(stream)?;
    let (after, logits) = (decoder.hypotheses(stream)?, decoder.logits().download(stream)?);
    let oracle = Oracle::new(&config, weights, &exact)?;
    let is_right = judged(oracle.check_beams(&before, &logits, &after))?.is_some();
    Ok((difference(&logits, &expected), is_right))
}

/// A wrong step is no error: it is told, and there is none.
fn judged(check: Result<StepCheck, DecoderError>) -> Result<Option<StepCheck>> {
    match check {
        Ok(check) => Ok(Some(check)),
        Err(wrong @ (DecoderError::Oracle(_) | DecoderError::Lookup { .. } | DecoderError::Beam { .. })) => {
            eprintln!("lacuna-bench: {wrong}");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}
