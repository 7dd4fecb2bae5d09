//! Masks by rule: which keys each query sees, without a list of them.
mod join;
mod ranges;
mod rule;
mod strip;
#[cfg(test)]
pub(super) mod tests;

use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use lacuna_matrix::Pattern;

use self::ranges::{Ranges, push_columns};
use self::rule::{RangeRule, Rule};
use super::OPERATION;
use crate::{Error, Result};

pub(super) use self::strip::{Bits, SIDE, Strip};

/// Which keys each query sees, told by rules: queries × keys. It takes as much memory as its rules do, not queries × keys.
///
/// [`MaskBlocks::new`](super::MaskBlocks::new) puts it on a device as blocks, for [`BlockAttention`](super::BlockAttention).
/// [`to_pattern`](Self::to_pattern) lists its elements, for plans that take a CSR pattern. Masks are joined by
/// [`and`](Self::and) and [`or`](Self::or). Clones share their rules.
///
/// ```
/// use lacuna::attention::Mask;
///
/// # fn main() -> lacuna::Result<()> {
/// // Three sequences in one batch without padding, causal in each.
/// let lengths = [100, 30, 70];
/// let packed = Mask::documents(&lengths)?.and(&Mask::causal(200)?)?;
/// // Each token sees itself, the 15 before it, and the first two, which see all up to themselves.
/// let global = Mask::global(200, 200, &[0, 1], &[0, 1])?.and(&Mask::causal(200)?)?;
/// let mask = Mask::sliding_window(200, 16)?.or(&global)?;
/// assert_eq!(mask.to_pattern()?.row_columns(20)[..3], [0, 1, 5]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Mask {
    queries: usize,
    keys: usize,
    /// Rules that are joined in it.
    rules: usize,
    rule: Arc<Rule>,
}

/// Queries, or keys: whole blocks of them are counted in 32 bits.
const MAX_TOKENS: usize = u32::MAX as usize - 63;

impl Mask {
    fn expect_sizes([queries, keys]: [usize; 2]) -> Result<()> {
        Error::expect_at_most("the number of queries", MAX_TOKENS, queries)?;
        Error::expect_at_most("the number of keys", MAX_TOKENS, keys)
    }

    fn new([queries, keys]: [usize; 2], rule: RangeRule) -> Result<Self> {
        Self::expect_sizes([queries, keys])?;
        Ok(Self { queries, keys, rules: 1, rule: Arc::new(Rule::Ranges(rule)) })
    }

    /// Each query sees each key.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for sizes that 32 bits do not count. All masks have this error.
    pub fn full(queries: usize, keys: usize) -> Result<Self> {
        Self::new([queries, keys], RangeRule::Full)
    }

    /// Each token sees itself and those before it: query i sees keys 0..=i.
    ///
    /// # Errors
    /// As [`full`](Self::full).
    pub fn causal(tokens: usize) -> Result<Self> {
        Self::diagonals(tokens, tokens, ..=0)
    }

    /// The last query sees all keys, each query before it one less: query i sees keys j ≤ i + keys − queries. So it is with
    /// keys of earlier steps in a cache, and in PyTorch's `causal_lower_right`. With more queries than keys the first queries see none.
    ///
    /// # Errors
    /// As [`full`](Self::full).
    pub fn causal_lower_right(queries: usize, keys: usize) -> Result<Self> {
        Self::diagonals(queries, keys, ..=signed(keys).saturating_sub(signed(queries)))
    }

    /// Each token sees itself and the `window` − 1 before it: query i sees keys i − window < j ≤ i, `window` of them. Libraries that
    /// write the rule as i − j ≤ w mean a `window` of w + 1.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a window of 0; as [`full`](Self::full).
    pub fn sliding_window(tokens: usize, window: usize) -> Result<Self> {
        Error::expect(window > 0, OPERATION, "the window", || "at least 1, the token itself", window)?;
        Self::diagonals(tokens, tokens, 1_i64.saturating_sub(signed(window))..=0)
    }

    /// Query i sees key j where j − i is in the range: `..=0` is causal aligned at the start, `-8..=8` a window to both sides.
    ///
    /// # Errors
    /// As [`full`](Self::full).
    pub fn diagonals(queries: usize, keys: usize, range: impl RangeBounds<i64>) -> Result<Self> {
        let lowest = match range.start_bound() {
            Bound::Included(&lowest) => lowest,
            Bound::Excluded(&below) => below.saturating_add(1),
            Bound::Unbounded => i64::MIN,
        };
        let highest = match range.end_bound() {
            Bound::Included(&highest) => highest,
            Bound::Excluded(&above) => above.saturating_sub(1),
            Bound::Unbounded => i64::MAX,
        };
        Self::new([queries, keys], RangeRule::Diagonals { lowest, highest })
    }

    /// Query i sees key j where `seen` has the element (i / block\[0\], j / block\[1\]): blocks of any size, seen whole. The last
    /// blocks may be cut.
    ///
    /// # Errors
    /// [`Error::Parameter`] for blocks without queries or keys, and for a pattern that has not as many rows and columns as there are
    /// blocks; as [`full`](Self::full).
    pub fn blocks(queries: usize, keys: usize, block: [usize; 2], seen: Pattern) -> Result<Self> {
        let [of_queries, of_keys] = block;
        let is_block = of_queries > 0 && of_keys > 0;
        let expected = || "at least 1×1";
        Error::expect(is_block, OPERATION, "the size of a block", expected, shape(of_queries, of_keys))?;
        let (rows, cols) = (queries.div_ceil(of_queries), keys.div_ceil(of_keys));
        let is_right = (seen.rows(), seen.cols()) == (rows, cols);
        let got = shape(seen.rows(), seen.cols());
        Error::expect(is_right, OPERATION, "the pattern of blocks", || shape(rows, cols), got)?;
        Self::new([queries, keys], RangeRule::Blocks { block, seen })
    }

    /// Documents of these lengths, one after another: each token sees those of its own document, before and after it. So sequences
    /// of different lengths share a batch without padding. [`and`](Self::and) a causal mask it is causal in each document.
    ///
    /// # Errors
    /// As [`full`](Self::full).
    pub fn documents(lengths: &[usize]) -> Result<Self> {
        Self::cross_documents(lengths, lengths)
    }

    /// Documents with so many queries, and so many keys each: each query sees the keys of its own document.
    ///
    /// # Errors
    /// [`Error::Parameter`] where there are not as many lengths of both; as [`full`](Self::full).
    pub fn cross_documents(queries: &[usize], keys: &[usize]) -> Result<Self> {
        let expected = || format!("{}, one for each document", queries.len());
        let is_right = queries.len() == keys.len();
        Error::expect(is_right, OPERATION, "the number of lengths of keys", expected, keys.len())?;
        let ends = |lengths: &[usize]| -> Vec<usize> {
            let add = |end: &mut usize, &length: &usize| {
                *end = end.saturating_add(length);
                Some(*end)
            };
            lengths.iter().scan(0, add).collect()
        };
        let (query_ends, key_ends) = (ends(queries), ends(keys));
        let size = [&query_ends, &key_ends].map(|ends| ends.last().copied().unwrap_or(0));
        Self::new(size, RangeRule::Documents { query_ends, key_ends })
    }

    /// These queries see all keys, and all queries see these keys, as the global tokens of Longformer and BigBird do. The numbers
    /// may come in any order, and more than once.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a query or a key that is not there; as [`full`](Self::full).
    pub fn global(
        queries: usize,
        keys: usize,
        global_queries: &[usize],
        global_keys: &[usize],
    ) -> Result<Self> {
        Self::expect_sizes([queries, keys])?;
        let sorted = |what, tokens: &[usize], count: usize| -> Result<Vec<u32>> {
            let greatest = tokens.iter().copied().max().filter(|&greatest| greatest >= count);
            let expected = || format!("below {count}");
            Error::expect(greatest.is_none(), OPERATION, what, expected, greatest.unwrap_or(0))?;
            let mut sorted: Vec<u32> = tokens.iter().map(|&token| token as u32).collect();
            sorted.sort_unstable();
            sorted.dedup();
            Ok(sorted)
        };
        let (rows, columns) =
            (sorted("a global query", global_queries, queries)?, sorted("a global key", global_keys, keys)?);
        let mut keys_of_all = Ranges::new();
        push_columns(columns, &mut keys_of_all);
        Self::new([queries, keys], RangeRule::Global { queries: rows, keys: keys_of_all })
    }

    /// The mask of a CSR pattern, queries × keys: any mask.
    pub fn from_pattern(pattern: impl Into<Arc<Pattern>>) -> Self {
        let pattern = pattern.into();
        let (queries, keys) = (pattern.rows(), pattern.cols());
        Self { queries, keys, rules: 1, rule: Arc::new(Rule::Pattern(pattern)) }
    }

    /// Queries: rows of the mask.
    pub fn queries(&self) -> usize {
        self.queries
    }
    /// Keys: its columns.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// What up to 64 queries see.
    pub(super) fn strip(&self, queries: Range<usize>) -> Strip {
        self.rule.strip(queries, self.keys)
    }

    /// What each 64 queries see.
    pub(super) fn strips(&self) -> impl Iterator<Item = Strip> {
        let starts = (0..self.queries).step_by(SIDE);
        starts.map(|first| self.strip(first..self.queries.min(first + SIDE)))
    }
}

/// A count as one that may be subtracted.
fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn shape(rows: usize, cols: usize) -> String {
    format!("{rows}×{cols}")
}
