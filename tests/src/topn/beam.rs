//! Steps of a beam search.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::{BeamSearch, Device, Error, TopN, topn};

use super::Problem;
use crate::expect::refused;
use crate::{Case, Context, Number};
use lacuna_cases::number::rounded;

/// Name, what it is; sentences, beams, tokens, steps.
const CASES: [(&str, &str, [usize; 4]); 7] = [
    ("greedy", "one beam: the most probable token each time", [3, 1, 50, 5]),
    ("usual", "four sentences of five beams", [4, 5, 300, 6]),
    ("more_beams_than_tokens", "eight beams over five tokens", [2, 8, 5, 4]),
    ("one_token", "nothing but the end", [2, 3, 1, 2]),
    ("many", "64 beams, the most that there can be", [1, 64, 70, 2]),
    ("cut", "a vocabulary that is walked through", [1, 3, 12_001, 2]),
    ("none", "no sentences", [0, 3, 10, 1]),
];

pub(super) fn cases() -> Vec<Case> {
    let steps = CASES.into_iter().map(|(name, about, sizes)| {
        Case::new(format!("topn/beam/{name}"), about, move |cx| {
            check::<f32>(cx, sizes).context("f32")?;
            check::<f16>(cx, sizes).context("f16")?;
            check::<bf16>(cx, sizes).context("bf16")
        })
    });
    let refusals = Case::new("topn/beam/refusals", "beams, ends and states that cannot be", refusals);
    steps.chain([refusals]).collect()
}

/// A beam, as the host has it.
#[derive(Clone, Debug, PartialEq)]
struct Beam {
    score: f32,
    is_finished: bool,
    parent: u32,
    token: u32,
}

/// Random logits step after step. Continuations are as [`TopN`] finds them, which its own cases judge: what is chosen among them
/// must be exact.
fn check<T: Number>(cx: &Context<'_>, [sentences, beams, tokens, steps]: [usize; 4]) -> Result<f64> {
    let end = tokens as u32 / 2;
    let search = BeamSearch::<T>::plan(cx.device, sentences, beams, tokens, end)?;
    let n = beams.min(tokens);
    let options = topn::Options::default().output(topn::Output::LogProbabilities);
    let top = TopN::<T>::plan_with(cx.device, sentences * beams, tokens, n, options)?;
    let mut state = search.start()?;
    let start = |at| {
        let score = if at % beams == 0 { 0.0 } else { f32::NEG_INFINITY };
        Beam { score, is_finished: false, parent: 0, token: 0 }
    };
    let mut expected: Vec<Beam> = (0..sentences * beams).map(start).collect();
    for step in 0..steps {
        let mut drawn = Problem::drawn(sentences * beams, tokens, n, cx.seed ^ step as u64).logits;
        // Ends are likely, so that beams come to one.
        drawn.chunks_mut(tokens).step_by(2).for_each(|row| row[end as usize] = 8.0);
        let logits = cx.device.upload(&rounded::<T>(&drawn))?;
        search.step(cx.stream, logits.as_slice(), &mut state)?;
        let (mut values, mut indices) =
            (cx.device.zeros(top.output_len())?, cx.device.zeros(top.output_len())?);
        top.run(cx.stream, logits.as_slice(), values.as_slice_mut(), indices.as_slice_mut())?;
        let (values, indices) = (values.download(cx.stream)?, indices.download(cx.stream)?);
        expected = (0..sentences)
            .flat_map(|sentence| {
                let beam = sentence * beams;
                let found = beam * n..(beam + beams) * n;
                next(&expected[beam..beam + beams], &values[found.clone()], &indices[found], end)
            })
            .collect();
        let got: Vec<Beam> = {
            let (scores, finished) =
                (state.scores().download(cx.stream)?, state.finished().download(cx.stream)?);
            let (parents, tokens) =
                (state.parents().download(cx.stream)?, state.tokens().download(cx.stream)?);
            let beam = |at: usize| Beam {
                score: scores[at],
                is_finished: finished[at] == 1,
                parent: parents[at],
                token: tokens[at],
            };
            (0..scores.len()).map(beam).collect()
        };
        let rows = state.parent_indices().as_slice().download(cx.stream)?;
        let row = |at: usize| (at / beams * beams) as u32 + got[at].parent;
        ensure!(
            rows.len() == got.len() && (0..rows.len()).all(|at| rows[at] == row(at)),
            "rows of parents {rows:?}"
        );
        if let Some(at) = (0..got.len()).find(|&at| got[at] != expected[at]) {
            anyhow::bail!("step {step}, beam {at}: expected {:?}, got {:?}", expected[at], got[at]);
        }
    }
    ensure!(steps < 4 || beams < 2 || expected.iter().any(|beam| beam.is_finished), "no beam came to an end");
    Ok(0.0)
}

/// The next beams of a sentence.
fn next(beams: &[Beam], log_probabilities: &[f32], tokens: &[u32], end: u32) -> Vec<Beam> {
    let n = tokens.len() / beams.len();
    let mut candidates = Vec::new();
    for (parent, beam) in beams.iter().enumerate() {
        let found = parent * n..(parent + 1) * n;
        let parent = parent as u32;
        if beam.is_finished {
            candidates.push(Beam { parent, token: end, ..beam.clone() });
            continue;
        }
        for (log_probability, &token) in log_probabilities[found.clone()].iter().zip(&tokens[found]) {
            let score = beam.score + log_probability;
            candidates.push(Beam { score, is_finished: token == end, parent, token });
        }
    }
    // Stable: of equal scores the first stays the first.
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
    candidates.truncate(beams.len());
    candidates
}

fn refusals(cx: &Context<'_>) -> Result<f64> {
    let is_parameter = |error: &Error| matches!(error, Error::Parameter { operation: "beam search", .. });
    let plan = |beams, tokens, end| BeamSearch::<f32>::plan(cx.device, 2, beams, tokens, end);
    refused("0 beams", plan(0, 10, 0), is_parameter, &["the number of beams is 0", "from 1 to 64"])?;
    refused("65 beams", plan(65, 100, 0), is_parameter, &["65", "64"])?;
    refused("end", plan(3, 10, 10), is_parameter, &["the end of the sentence is 10", "10 tokens"])?;
    refused("no tokens", plan(3, 0, 0), is_parameter, &["0 tokens"])?;
    let search = plan(3, 10, 0)?;
    let logits = cx.device.zeros::<f32>(60)?;
    let is_length = |error: &Error| matches!(error, Error::Length { operation: "beam search", .. });
    let mut other = plan(2, 10, 0)?.start()?;
    let result = search.step(cx.stream, logits.as_slice(), &mut other);
    refused("state", result, is_length, &["the state of the beams", "4", "6", "2 sentences of 3 beams"])?;
    let is_device = |error: &Error| matches!(error, Error::OtherDevice { operation: "beam search", .. });
    let mut other = BeamSearch::<f32>::plan(&Device::simulator(), 2, 3, 10, 0)?.start()?;
    let result = search.step(cx.stream, logits.as_slice(), &mut other);
    refused("device", result, is_device, &["the state of the beams"])?;
    Ok(0.0)
}
