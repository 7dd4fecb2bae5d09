//! The parts of a step.
use lacuna::Stream;

use super::{Decoder, DecoderError};
use crate::model::Model;

/// A part of a step, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The embeddings of the last words, and the states of the parents.
    Lookup,
    /// The recurrent layer.
    Recurrent,
    /// The feed-forward block.
    FeedForward,
    /// The projection to the vocabulary.
    Projection,
    /// Softmax and the best continuations of each hypothesis.
    TopN,
    /// The best hypotheses of each sentence.
    Beam,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Lookup, Self::Recurrent, Self::FeedForward, Self::Projection, Self::TopN, Self::Beam];

    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lookup => "lookup",
            Self::Recurrent => "recurrent",
            Self::FeedForward => "feed_forward",
            Self::Projection => "projection",
            Self::TopN => "topn",
            Self::Beam => "beam",
        }
    }
}

impl Decoder {
    /// Gives one part to the stream: to time parts by themselves. Each reads what those before it wrote.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn run_part(&mut self, stream: &Stream, part: Part) -> Result<(), DecoderError> {
        match part {
            Part::Lookup => self.look_up(stream),
            Part::Recurrent => {
                let (input, state) = (self.input.as_slice(), self.state.as_slice_mut());
                Ok(self.recurrent.run(stream, input, state)?)
            }
            Part::FeedForward => match &mut self.feed_forward {
                Some((model, output)) => {
                    Ok(model.run(stream, self.state.as_slice(), output.as_slice_mut())?)
                }
                None => Ok(()),
            },
            Part::Projection => {
                let features =
                    self.feed_forward.as_ref().map_or(&self.state, |(_, output)| output).as_slice();
                Ok(self.projection.run(stream, features, self.logits.as_slice_mut())?)
            }
            Part::TopN => Ok(self.search.find(stream, self.logits.as_slice())?),
            Part::Beam => Ok(self.search.advance(stream, &mut self.beams)?),
        }
    }

    /// The kernels of a part, joined by ` + `; `none` where there is nothing to do.
    pub fn kernels(&self, part: Part) -> String {
        let of_model = |model: &Model| {
            let kernels: Vec<String> = model.report().layers.into_iter().map(|layer| layer.kernel).collect();
            kernels.join(" + ")
        };
        match part {
            Part::Lookup => {
                let names = [&self.words, &self.parents].map(|lookup| lookup.plan.choice().entry.name);
                names.join(" + ")
            }
            Part::Recurrent => of_model(&self.recurrent),
            Part::FeedForward => {
                self.feed_forward.as_ref().map_or_else(|| "none".into(), |(model, _)| of_model(model))
            }
            Part::Projection => of_model(&self.projection),
            Part::TopN => self.search.choice().entry.name.into(),
            Part::Beam => "topn_beam".into(),
        }
    }
}
