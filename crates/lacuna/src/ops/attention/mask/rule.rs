//! Which keys a query sees by a rule.
use std::ops::Range;
use std::sync::Arc;

use lacuna_matrix::Pattern;

use super::Mask;
use super::ranges::{Ranges, push_columns};
use super::strip::Strip;

/// What tells which keys a query sees.
#[derive(Debug)]
pub(super) enum Rule {
    Ranges(RangeRule),
    Pattern(Arc<Pattern>),
    And(Mask, Mask),
    Or(Mask, Mask),
}

/// A rule by which a query sees ranges of keys.
#[derive(Debug)]
pub(super) enum RangeRule {
    /// All.
    Full,
    /// Those whose number less that of the query is in this range, the last among them.
    Diagonals { lowest: i64, highest: i64 },
    /// Those of the blocks that the row of the query's block has.
    Blocks {
        /// Queries of a block, and keys.
        block: [usize; 2],
        seen: Pattern,
    },
    /// Those of the query's document.
    Documents {
        /// Where each document's queries end, and its keys.
        query_ends: Vec<usize>,
        key_ends: Vec<usize>,
    },
    /// All for these queries, and these keys for all. Both ascend.
    Global { queries: Vec<u32>, keys: Ranges },
}

impl Rule {
    /// What up to 64 queries see of so many keys.
    pub(super) fn strip(&self, queries: Range<usize>, count: usize) -> Strip {
        match self {
            Self::And(a, b) => a.strip(queries.clone()).and(&b.strip(queries)),
            Self::Or(a, b) => a.strip(queries.clone()).or(&b.strip(queries)),
            Self::Pattern(pattern) => {
                let rows: Vec<&[u32]> = queries.map(|query| pattern.row_columns(query)).collect();
                Strip::of_columns(&rows)
            }
            Self::Ranges(rule) => Strip::of_ranges(queries, |query, ranges| rule.row(query, count, ranges)),
        }
    }
}

impl RangeRule {
    /// Adds the keys that a query sees to a list of ranges, and gives the first later query that may see others.
    fn row(&self, query: usize, count: usize, ranges: &mut Ranges) -> usize {
        let first = ranges.len();
        let mut push = |start: usize, end: usize| {
            let end = end.min(count);
            if start < end {
                // A mask's keys are counted in 32 bits.
                ranges.push(start as u32..end as u32);
            }
        };
        match self {
            Self::Full => {
                push(0, count);
                usize::MAX
            }
            Self::Diagonals { lowest, highest } => {
                let at =
                    |diagonal: i64| (query as i64).saturating_add(diagonal).clamp(0, count as i64) as usize;
                push(at(*lowest), at(highest.saturating_add(1)));
                query + 1
            }
            Self::Blocks { block: [queries, keys], seen } => {
                let row = query / queries;
                push_columns(seen.row_columns(row).iter().copied(), ranges);
                for range in &mut ranges[first..] {
                    let at = |block: u32| (block as usize).saturating_mul(*keys).min(count) as u32;
                    *range = at(range.start)..at(range.end);
                }
                (row + 1).saturating_mul(*queries)
            }
            Self::Documents { query_ends, key_ends } => {
                let document = query_ends.partition_point(|&end| end <= query);
                push(document.checked_sub(1).map_or(0, |before| key_ends[before]), key_ends[document]);
                query_ends[document]
            }
            Self::Global { queries, keys } => {
                let next = queries.partition_point(|&global| (global as usize) < query);
                let is_global = queries.get(next) == Some(&(query as u32));
                if is_global {
                    push(0, count);
                    return query + 1;
                }
                ranges.extend_from_slice(keys);
                queries.get(next).map_or(usize::MAX, |&global| global as usize)
            }
        }
    }
}
