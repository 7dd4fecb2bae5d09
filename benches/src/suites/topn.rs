//! The largest probabilities of rows of logits: the grid of *Accelerating Sparse Matrix Operations in Neural Networks on
//! Graphics Processing Units* (ACL 2019), Table 2; and vocabularies of today's language models.
use super::Case;

/// The suite's name.
pub(crate) const NAME: &str = "topn";
/// The group of the paper's grid.
pub(crate) const GRID: &str = "Table 2";

/// The paper's vocabulary, batches, and how many it takes of each row.
const VOCABULARY: usize = 10_240;
const BATCHES: [usize; 3] = [1, 512, 1024];
const TAKEN: [usize; 9] = [10, 20, 30, 40, 50, 100, 200, 300, 400];

/// Larger vocabularies, their batches, and how many are taken.
const VOCABULARIES: [usize; 4] = [32_000, 50_257, 128_000, 151_936];
const ROWS: [usize; 2] = [1, 64];
const SOME: usize = 50;
/// As many as a sampler may ask for.
const MANY: usize = 1000;

/// The name of a case of the grid.
pub(crate) fn name(rows: usize, taken: usize) -> String {
    Case::logits(rows, VOCABULARY, taken).name
}

fn case(rows: usize, vocabulary: usize, taken: usize, group: &str) -> Case {
    Case { group: group.into(), ..Case::logits(rows, vocabulary, taken) }
}

pub(super) fn cases() -> Vec<Case> {
    let grid = BATCHES.into_iter().flat_map(|rows| TAKEN.map(|taken| case(rows, VOCABULARY, taken, GRID)));
    let large = VOCABULARIES.into_iter().flat_map(|vocabulary| {
        let group = format!("vocabulary of {vocabulary}");
        ROWS.map(|rows| case(rows, vocabulary, SOME, &group))
    });
    let many = case(64, VOCABULARIES[3], MANY, &format!("vocabulary of {}", VOCABULARIES[3]));
    grid.chain(large).chain([many]).collect()
}
