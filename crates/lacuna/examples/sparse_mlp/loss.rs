//! Cross-entropy of the softmax: what training makes small.

/// What a batch of scores is worth.
#[derive(Debug)]
pub(crate) struct Loss {
    /// The mean over the batch.
    pub(crate) mean: f64,
    /// Images whose greatest score is that of their class.
    pub(crate) correct: usize,
    /// The gradient of the mean by each score: classes × batch.
    pub(crate) gradient: Vec<f32>,
}

impl Loss {
    /// Of scores, classes × batch, of images of these classes.
    pub(crate) fn of(scores: &[f32], labels: &[u8]) -> Self {
        let batch = labels.len();
        let mut loss = Self { mean: 0.0, correct: 0, gradient: vec![0.0; scores.len()] };
        for (image, &label) in labels.iter().enumerate() {
            let column = || scores.iter().skip(image).step_by(batch).map(|&score| f64::from(score));
            let greatest = column().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = column().map(|score| (score - greatest).exp()).sum();
            let label = usize::from(label);
            let of_label = f64::from(scores[label * batch + image]);
            loss.mean += (sum.ln() - (of_label - greatest)) / batch as f64;
            loss.correct += usize::from(best(column()) == label);
            for (class, score) in column().enumerate() {
                let wanted = f64::from(u8::from(class == label));
                let probability = (score - greatest).exp() / sum;
                loss.gradient[class * batch + image] = ((probability - wanted) / batch as f64) as f32;
            }
        }
        loss
    }
}

/// Where the greatest of the scores is: the first, if there are several.
pub(crate) fn best(scores: impl Iterator<Item = f64>) -> usize {
    let better = |best: (usize, f64), next: (usize, f64)| if next.1 > best.1 { next } else { best };
    scores.enumerate().fold((0, f64::NEG_INFINITY), better).0
}
