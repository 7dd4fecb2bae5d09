//! Attention under the mask of SC 2020, section VII-C: each token sees the nearest 256, and of those further back the less
//! the further back they are; and the softmax between its products.
use super::{Case, PatternKind};
use crate::op::Op;

/// Tokens; the last is the paper's sequence.
const TOKENS: [usize; 5] = [1024, 2048, 4096, 8192, 12_288];
/// The nearest tokens, which are all seen.
const BAND: usize = 256;
/// The part of what is further back that is not.
const SPARSITY: f64 = 0.95;
/// Heads, and columns of each: the paper's.
const HEADS: usize = 8;
const HEAD: usize = 64;

fn mask(op: Op, tokens: usize, width: usize) -> Case {
    let pattern = PatternKind::Mask { band: BAND, sparsity: SPARSITY };
    Case::new(op, format!("{tokens} tokens"), [tokens, tokens, width], pattern)
}

/// All heads of a layer at once.
pub(super) fn cases() -> Vec<Case> {
    TOKENS.map(|tokens| Case { batch: HEADS, ..mask(Op::Attention, tokens, HEAD) }).into()
}

/// One head's scores; and as many that stand anywhere.
pub(super) fn softmax_cases() -> Vec<Case> {
    let grouped = |case: Case, group: &str| Case { group: group.into(), ..case };
    let masks = TOKENS.map(|tokens| grouped(mask(Op::SparseSoftmax, tokens, 1), "mask"));
    let uniform = TOKENS.map(|tokens| {
        let (name, pattern) =
            (format!("{tokens} {tokens} {SPARSITY}"), PatternKind::Uniform { sparsity: SPARSITY });
        grouped(Case::new(Op::SparseSoftmax, name, [tokens, tokens, 1], pattern), "uniform")
    });
    masks.into_iter().chain(uniform).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Problem;

    #[test]
    fn the_mask_has_as_many_nonzeros_as_are_counted_on() {
        let case = &softmax_cases()[1];
        let drawn = Problem::generate(case, 1).unwrap().a.nnz() as f64;
        assert!((drawn / case.nonzeros() - 1.0).abs() < 0.02, "{drawn}, not {}", case.nonzeros());
        // 12,288 tokens: 3.1 million in the band, 3.6 million below.
        assert!((6.6e6..6.8e6).contains(&softmax_cases()[4].nonzeros()));
        assert!((7.5e6..7.6e6).contains(&softmax_cases()[9].nonzeros()));
    }
}
