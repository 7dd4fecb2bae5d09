//! Beam search on a device.
use lacuna::{BeamSearch, Device, Result};

use crate::model::{END, Model};

/// A sentence that was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hypothesis {
    /// Its tokens, with the end if it came to one.
    pub(crate) tokens: Vec<u32>,
    /// The logarithm of its probability.
    pub(crate) score: f64,
}

/// The `beams` best hypotheses of each sentence, best first, of at most `length` tokens.
///
/// # Errors
/// What the device says.
pub(crate) fn search(
    device: &Device,
    model: &Model,
    sentences: usize,
    beams: usize,
    length: usize,
) -> Result<Vec<Vec<Hypothesis>>> {
    let stream = device.stream()?;
    let search = BeamSearch::<f32>::plan(device, sentences, beams, model.vocabulary, END)?;
    let mut state = search.start()?;
    let mut logits = device.uninitialized::<f32>(search.input_len())?;
    let mut found: Vec<Vec<u32>> = vec![Vec::new(); sentences * beams];
    for position in 0..length {
        // The model is on the host; one on the device would write its logits there.
        let rows = found.iter().enumerate().flat_map(|(beam, tokens)| {
            model.logits(beam / beams, position, tokens.last().copied().unwrap_or(END))
        });
        logits.upload(&rows.collect::<Vec<f32>>())?;
        search.step(&stream, logits.as_slice(), &mut state)?;
        let (parents, tokens) = (state.parents().download(&stream)?, state.tokens().download(&stream)?);
        found = parents
            .iter()
            .zip(tokens)
            .enumerate()
            .map(|(beam, (&parent, token))| {
                let mut tokens_so_far = found[beam / beams * beams + parent as usize].clone();
                if tokens_so_far.last() != Some(&END) {
                    tokens_so_far.push(token);
                }
                tokens_so_far
            })
            .collect();
        if state.finished().download(&stream)?.iter().all(|&finished| finished == 1) {
            break;
        }
    }
    let scores = state.scores().download(&stream)?;
    let hypotheses: Vec<Hypothesis> = found
        .into_iter()
        .zip(scores)
        .map(|(tokens, score)| Hypothesis { tokens, score: score.into() })
        .collect();
    Ok(hypotheses.chunks(beams).map(<[Hypothesis]>::to_vec).collect())
}
