//! A device's step against the oracle's.
use std::collections::BTreeSet;

use lacuna::Stream;

use super::oracle::Continuations;
use super::{Candidate, Config, Decoder, DecoderError, Hypotheses, Oracle, Part};

/// How near a right step is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepCheck {
    /// The greatest error of a layer's element, or of a score, as a part of its bound.
    pub worst_over_bound: f64,
    /// Beams that are the host's choice.
    pub same: usize,
    /// Beams that are not, as two continuations come nearer to each other than scores may be off.
    pub tied: usize,
}

impl StepCheck {
    /// Both of them.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            worst_over_bound: self.worst_over_bound.max(other.worst_over_bound),
            same: self.same + other.same,
            tied: self.tied + other.tied,
        }
    }
}

impl Oracle<'_> {
    /// Runs the decoder's next step, and checks each part, with what the device itself gave to it taken as exact: rows that are looked
    /// up bit by bit, layers within their bounds, and beams where scores are not tied within theirs.
    ///
    /// # Errors
    /// [`DecoderError::Lookup`], [`DecoderError::Oracle`] and [`DecoderError::Beam`] for a wrong step, and those of
    /// [`Decoder::step`].
    pub fn check_step(&self, decoder: &mut Decoder, stream: &Stream) -> Result<StepCheck, DecoderError> {
        let mut check = StepCheck::default();
        let mut within = |expected: &crate::oracle::Approximate, what: &str, got: &[f32]| {
            let worst = expected.check(what, got)?.worst_over_bound;
            check.worst_over_bound = check.worst_over_bound.max(worst);
            Ok::<_, DecoderError>(())
        };
        let table = decoder.table.download(stream)?;
        within(&self.table()?, "the embedding", &table)?;
        let (before, state) = (decoder.hypotheses(stream)?, decoder.state.download(stream)?);
        decoder.run_part(stream, Part::Lookup)?;
        let input = decoder.input.download(stream)?;
        expect_rows(&self.input(&before, &table, &state), &input, 2 * self.config.hidden)?;
        decoder.run_part(stream, Part::Recurrent)?;
        let state = decoder.state.download(stream)?;
        within(&self.recurrent(&input)?, "the recurrent layer", &state)?;
        decoder.run_part(stream, Part::FeedForward)?;
        let features = match &decoder.feed_forward {
            Some((_, output)) => output.download(stream)?,
            None => state.clone(),
        };
        within(&self.feed_forward(&state)?, "the feed-forward block", &features)?;
        decoder.run_part(stream, Part::Projection)?;
        let logits = decoder.logits.download(stream)?;
        within(&self.projection(&features)?, "the projection", &logits)?;
        decoder.run_part(stream, Part::TopN)?;
        decoder.run_part(stream, Part::Beam)?;
        Ok(check.and(self.check_beams(&before, &logits, &decoder.hypotheses(stream)?)?))
    }

    /// Checks beams that are chosen by these logits.
    ///
    /// # Errors
    /// [`DecoderError::Beam`].
    ///
    /// # Panics
    /// For hypotheses and logits that are not of this decoder's sizes.
    pub fn check_beams(
        &self,
        before: &Hypotheses,
        logits: &[f32],
        after: &Hypotheses,
    ) -> Result<StepCheck, DecoderError> {
        let Config { beams, .. } = *self.config;
        let mut check = StepCheck::default();
        for (sentence, best) in self.choose(before, logits).iter().enumerate() {
            let most_off = best.iter().fold(0.0_f64, |most, candidate| most.max(candidate.error));
            let mut chosen = BTreeSet::new();
            for beam in 0..beams {
                let wrong = |why: String| Err(DecoderError::Beam { sentence, beam, why });
                let at = sentence * beams + beam;
                let (parent, word) = (after.parents[at], after.words[at]);
                if parent as usize / beams != sentence || word as usize >= self.config.vocabulary {
                    return wrong(format!("hypothesis {parent} and word {word} cannot be"));
                }
                let got = Continuations::of(self.config, before, parent as usize, logits).by(word);
                let expected = best[beam];
                let (score, is_finished) = (f64::from(after.scores[at]), after.finished[at]);
                if got.word != word || got.is_finished != is_finished || !chosen.insert((parent, word)) {
                    return wrong(format!("word {word} after hypothesis {parent} is none, or there twice"));
                }
                let off = if score == got.score { 0.0 } else { (score - got.score).abs() };
                // NaN is not within either.
                let is_within = off <= got.error;
                if !is_within {
                    return wrong(format!(
                        "expected score {} within {:e}, got {score}",
                        got.score, got.error
                    ));
                }
                let over_bound = if off > 0.0 { off / got.error } else { 0.0 };
                check.worst_over_bound = check.worst_over_bound.max(over_bound);
                if (got.parent, got.word) == (expected.parent, expected.word) {
                    check.same += 1;
                } else if is_tied(&got, &expected, most_off) {
                    check.tied += 1;
                } else {
                    return wrong(format!("expected {expected:?}, got {got:?}"));
                }
            }
        }
        Ok(check)
    }
}

/// Whether one may have the place of the other, where others are off by `most_off`: no place's score is off by more.
fn is_tied(got: &Candidate, expected: &Candidate, most_off: f64) -> bool {
    // Those of -∞ are all alike.
    got.score == expected.score || (got.score - expected.score).abs() <= got.error + most_off
}

fn expect_rows(expected: &[f32], got: &[f32], columns: usize) -> Result<(), DecoderError> {
    let differs = |&at: &usize| expected[at].to_bits() != got[at].to_bits();
    match (0..expected.len()).find(differs) {
        None => Ok(()),
        Some(at) => Err(DecoderError::Lookup {
            hypothesis: at / columns,
            element: at % columns,
            expected: expected[at],
            got: got[at],
        }),
    }
}

impl Decoder {
    /// The hypotheses, downloaded, after the work given to the stream so far.
    ///
    /// # Errors
    /// What that work failed with, and what the device says.
    pub fn hypotheses(&self, stream: &Stream) -> Result<Hypotheses, DecoderError> {
        let beams = &self.beams;
        Ok(Hypotheses {
            words: beams.tokens().download(stream)?,
            parents: beams.parent_indices().as_slice().download(stream)?,
            scores: beams.scores().download(stream)?,
            finished: beams.finished().download(stream)?.iter().map(|&is| is != 0).collect(),
        })
    }
}
