//! The same search in plain Rust, in `f64`: every continuation of every beam, sorted.
use crate::model::{END, Model};
use crate::search::Hypothesis;

/// The `beams` best hypotheses of each sentence, best first, of at most `length` tokens.
pub(crate) fn search(model: &Model, sentences: usize, beams: usize, length: usize) -> Vec<Vec<Hypothesis>> {
    (0..sentences).map(|sentence| of_sentence(model, sentence, beams, length)).collect()
}

fn of_sentence(model: &Model, sentence: usize, beams: usize, length: usize) -> Vec<Hypothesis> {
    let mut found = vec![Hypothesis { tokens: Vec::new(), score: 0.0 }];
    for position in 0..length {
        let mut next = Vec::new();
        for hypothesis in &found {
            let last = hypothesis.tokens.last().copied();
            if last == Some(END) {
                next.push(hypothesis.clone());
                continue;
            }
            let logits: Vec<f64> =
                model.logits(sentence, position, last.unwrap_or(END)).map(f64::from).collect();
            let log_sum = logits.iter().map(|logit| logit.exp()).sum::<f64>().ln();
            next.extend(logits.iter().zip(0..).map(|(logit, token)| {
                let mut tokens = hypothesis.tokens.clone();
                tokens.push(token);
                Hypothesis { tokens, score: hypothesis.score + logit - log_sum }
            }));
        }
        next.sort_by(|a, b| b.score.total_cmp(&a.score));
        next.truncate(beams);
        found = next;
    }
    found
}
