//! Beam search: the next beams of each sentence.
use lacuna_gpu::GlobalPtr;
use lacuna_kernels::topn::{BeamArgs, Method};

use super::choose::of_method;
use super::{Choice, Options, Output, TopN};
use crate::nhot::DeviceIndices;
use crate::op::{MAX_GRID_X, launch};
use crate::{Buffer, Device, Error, Result, Slice, Stream, Value};

const OPERATION: &str = "beam search";
/// The most beams of a sentence: as many continuations of each have to have room.
const MAX_BEAMS: usize = 64;

/// A step of a beam search, on the device: from the logits of each beam's next token, the best beams of each sentence. For a batch
/// of sentences of as many beams each.
///
/// A beam's score is the sum of its tokens' log-probabilities. A beam that ended with the end of the sentence is finished: it keeps
/// its score, whatever its logits are, and its only continuation is that token again. Candidates are the best tokens of each beam,
/// as many as there are beams; of equal scores the one of the earlier beam comes first, and of one beam the more probable token, or
/// the smaller of equal ones. NaN comes first, so that it is seen.
///
/// ```
/// use lacuna::{BeamSearch, Device};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let stream = device.stream()?;
/// // One sentence, two beams, a vocabulary of four tokens; token 0 ends.
/// let search = BeamSearch::plan(&device, 1, 2, 4, 0)?;
/// let mut state = search.start()?;
/// let logits = device.upload(&[0.0_f32, 3.0, 1.0, 2.0, /* beam 1: */ 0.0, 0.0, 0.0, 0.0])?;
/// search.step(&stream, logits.as_slice(), &mut state)?;
/// // At the start all beams are continuations of the first.
/// assert_eq!(state.tokens().download(&stream)?, [1, 3]);
/// assert_eq!(state.parents().download(&stream)?, [0, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct BeamSearch<T: Value = f32> {
    top: TopN<T>,
    device: Device,
    sentences: usize,
    beams: usize,
    vocabulary: usize,
    continuations: usize,
    end: u32,
    log_probabilities: Buffer<f32>,
    tokens: Buffer<u32>,
}

/// The beams of all sentences: those of one after those of another, best first.
#[derive(Debug)]
pub struct BeamState {
    vocabulary: usize,
    scores: Buffer<f32>,
    finished: Buffer<u32>,
    parents: Buffer<u32>,
    /// The parents' numbers among the beams of all sentences. Nothing but a step writes them, each below the number of beams.
    rows: Buffer<u32>,
    /// Nothing but a step writes them, each below the vocabulary.
    tokens: Buffer<u32>,
}

impl BeamState {
    /// The sum of each beam's log-probabilities.
    pub fn scores(&self) -> Slice<'_, f32> {
        self.scores.as_slice()
    }
    /// 1 for each beam that is finished, else 0.
    pub fn finished(&self) -> Slice<'_, u32> {
        self.finished.as_slice()
    }
    /// Of which beam of its sentence, before the last step, each is a continuation.
    pub fn parents(&self) -> Slice<'_, u32> {
        self.parents.as_slice()
    }
    /// The last token of each beam.
    pub fn tokens(&self) -> Slice<'_, u32> {
        self.tokens.as_slice()
    }
    /// The last token of each beam, as indices of a table with a row a token: what the next step looks up, without the host.
    pub fn token_indices(&self) -> DeviceIndices<'_> {
        DeviceIndices::new(self.tokens.as_slice(), self.vocabulary)
    }
    /// The parent of each beam, as indices of a table with a row a beam, sentence after sentence: what each beam takes over of
    /// its parent, as a recurrent layer's state.
    pub fn parent_indices(&self) -> DeviceIndices<'_> {
        DeviceIndices::new(self.rows.as_slice(), self.rows.len())
    }

    /// Makes these beams a copy of others, of as many tokens. Gives the work to the stream, and returns at once; can be recorded.
    ///
    /// # Errors
    /// [`Error::Parameter`] for beams over another vocabulary; [`Error::Length`] and [`Error::OtherDevice`] for others that do
    /// not fit; what the driver says.
    pub fn copy_from(&mut self, stream: &Stream, other: &Self) -> Result<()> {
        let expected = || format!("one of {} tokens", self.vocabulary);
        let is_same = self.vocabulary == other.vocabulary;
        Error::expect(is_same, OPERATION, "the vocabulary of the beams", expected, other.vocabulary)?;
        stream.copy(other.scores.as_slice(), self.scores.as_slice_mut())?;
        stream.copy(other.finished.as_slice(), self.finished.as_slice_mut())?;
        stream.copy(other.parents.as_slice(), self.parents.as_slice_mut())?;
        stream.copy(other.rows.as_slice(), self.rows.as_slice_mut())?;
        stream.copy(other.tokens.as_slice(), self.tokens.as_slice_mut())
    }
}

impl<T: Value> BeamSearch<T> {
    /// A plan for `sentences` of `beams` each, over `vocabulary` tokens, of which `end_of_sentence` ends one.
    ///
    /// # Errors
    /// As [`plan_with`](Self::plan_with).
    pub fn plan(
        device: &Device,
        sentences: usize,
        beams: usize,
        vocabulary: usize,
        end_of_sentence: u32,
    ) -> Result<Self> {
        Self::plan_with(device, sentences, beams, vocabulary, end_of_sentence, Options::default())
    }

    /// As [`plan`](Self::plan), with temperature, row stride and algorithm of the top-N in it. The plan has memory for its
    /// results: runs of a plan on several streams must be ordered.
    ///
    /// # Errors
    /// [`Error::Parameter`] for no beams or more than 64, for no vocabulary, and for an end that is not in it; otherwise as
    /// [`TopN::plan_with`].
    pub fn plan_with(
        device: &Device,
        sentences: usize,
        beams: usize,
        vocabulary: usize,
        end_of_sentence: u32,
        options: Options,
    ) -> Result<Self> {
        let (are_allowed, expected) = ((1..=MAX_BEAMS).contains(&beams), || format!("from 1 to {MAX_BEAMS}"));
        Error::expect(are_allowed, OPERATION, "the number of beams", expected, beams)?;
        let (is_token, expected) =
            ((end_of_sentence as usize) < vocabulary, || format!("one of the {vocabulary} tokens"));
        Error::expect(is_token, OPERATION, "the end of the sentence", expected, end_of_sentence)?;
        let rows = sentences.saturating_mul(beams);
        Error::expect_at_most("the number of beams of all sentences", MAX_GRID_X, rows)?;
        let continuations = beams.min(vocabulary);
        let options = options.output(Output::LogProbabilities);
        let top = TopN::plan_with(device, rows, vocabulary, continuations, options)?;
        let results = top.output_len();
        Ok(Self {
            device: device.clone(),
            sentences,
            beams,
            vocabulary,
            continuations,
            end: end_of_sentence,
            // Zeros are tokens, so that beams name tokens even if they advance before continuations are found.
            log_probabilities: device.zeros(results)?,
            tokens: device.zeros(results)?,
            top,
        })
    }

    /// The kernel that finds continuations.
    pub fn choice(&self) -> &Choice {
        self.top.choice()
    }

    /// The least number of logits of a step: a row of the vocabulary for each beam of each sentence.
    pub fn input_len(&self) -> usize {
        self.top.input_len()
    }

    /// Beams before the first step: in each sentence one of score 0, and others of −∞, which no continuation of it loses to. Their
    /// last token is 0.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or what the driver says.
    pub fn start(&self) -> Result<BeamState> {
        self.start_with(0)
    }

    /// As [`start`](Self::start), with this last token: the one that begins sentences.
    ///
    /// # Errors
    /// As `start`, and [`Error::Parameter`] for a token that is not in the vocabulary.
    pub fn start_with(&self, token: u32) -> Result<BeamState> {
        let Self { device, sentences, beams, vocabulary, .. } = self;
        let (is_token, expected) =
            ((token as usize) < *vocabulary, || format!("one of the {vocabulary} tokens"));
        Error::expect(is_token, OPERATION, "the first token", expected, token)?;
        let all = sentences * beams;
        let scores: Vec<f32> =
            (0..all).map(|at| if at % beams == 0 { 0.0 } else { f32::NEG_INFINITY }).collect();
        let rows: Vec<u32> = (0..all).map(|at| (at - at % beams) as u32).collect();
        Ok(BeamState {
            vocabulary: *vocabulary,
            scores: device.upload(&scores)?,
            finished: device.zeros(all)?,
            parents: device.zeros(all)?,
            rows: device.upload(&rows)?,
            tokens: device.upload(&vec![token; all])?,
        })
    }

    /// Replaces the beams by the next ones. `logits` has a row for each beam, sentence after sentence. Gives the work to the
    /// stream, and returns at once.
    ///
    /// # Errors
    /// [`Error::Parameter`] for beams over another vocabulary; [`Error::Length`] and [`Error::OtherDevice`] for logits or beams
    /// that do not fit; [`Error::Launch`] or, on the simulator, its findings.
    pub fn step(&self, stream: &Stream, logits: Slice<'_, T>, state: &mut BeamState) -> Result<()> {
        self.check(state)?;
        self.find(stream, logits)?;
        self.advance(stream, state)
    }

    /// The first half of a [`step`](Self::step), for those who measure it by itself: softmax and the best continuations of each
    /// beam, into the plan's own memory.
    ///
    /// # Errors
    /// As `step`.
    pub fn find(&self, stream: &Stream, logits: Slice<'_, T>) -> Result<()> {
        self.top.launches(stream, logits, self.results(), None)
    }

    /// The second half of a [`step`](Self::step): the next beams, from the continuations that [`find`](Self::find) found last.
    ///
    /// # Errors
    /// As `step`.
    pub fn advance(&self, stream: &Stream, state: &mut BeamState) -> Result<()> {
        self.check(state)?;
        self.device.expect_same(OPERATION, "the stream", stream.device())?;
        if self.sentences == 0 {
            return Ok(());
        }
        let [log_probabilities, continuations] = self.results();
        let args = BeamArgs {
            log_probabilities: GlobalPtr::from_address(log_probabilities),
            continuations: GlobalPtr::from_address(continuations),
            scores: state.scores.as_slice_mut().pointer(),
            finished: state.finished.as_slice_mut().pointer(),
            parents: state.parents.as_slice_mut().pointer(),
            rows: state.rows.as_slice_mut().pointer(),
            tokens: state.tokens.as_slice_mut().pointer(),
            beams: self.beams as u32,
            n: self.continuations as u32,
            end: self.end,
        };
        launch(stream, of_method(Method::Beam), [self.sentences as u32, 1, 1], &args)
    }

    /// The addresses of what the top-N writes. They are the plan's own: it is borrowed, and the stream orders what uses them.
    fn results(&self) -> [u64; 2] {
        [self.log_probabilities.as_slice().address(), self.tokens.as_slice().address()]
    }

    fn check(&self, state: &BeamState) -> Result<()> {
        let (what, Self { sentences, beams, vocabulary, .. }) = ("the state of the beams", self);
        let shape = || format!("{sentences} sentences of {beams} beams");
        self.device.expect_operand(OPERATION, what, state.scores(), shape, sentences * beams)?;
        let (is_same, expected) = (state.vocabulary == *vocabulary, || format!("one of {vocabulary} tokens"));
        Error::expect(is_same, OPERATION, "the vocabulary of the beams", expected, state.vocabulary)
    }
}
