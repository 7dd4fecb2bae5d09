//! Masks of several rules, and their elements.
use std::sync::Arc;

use lacuna_matrix::Pattern;

use super::rule::Rule;
use super::{Mask, Ranges, shape};
use crate::ops::attention::OPERATION;
use crate::{Error, Result};

/// The most rules of a mask: each is asked for each query, one inside the other.
const MAX_RULES: usize = 256;

impl Mask {
    /// What both masks let a query see.
    ///
    /// # Errors
    /// [`Error::Parameter`] for masks of different sizes; [`Error::TooLarge`] for more than 256 rules in one mask.
    pub fn and(&self, other: &Self) -> Result<Self> {
        self.joined(other, Rule::And)
    }

    /// What either mask lets a query see, or both do.
    ///
    /// # Errors
    /// As [`and`](Self::and).
    pub fn or(&self, other: &Self) -> Result<Self> {
        self.joined(other, Rule::Or)
    }

    fn joined(&self, other: &Self, join: fn(Self, Self) -> Rule) -> Result<Self> {
        let &Self { queries, keys, .. } = self;
        let is_alike = (queries, keys) == (other.queries, other.keys);
        let got = shape(other.queries, other.keys);
        let expected = || format!("{queries}×{keys}, that of the first");
        Error::expect(is_alike, OPERATION, "the size of the second mask", expected, got)?;
        let rules = self.rules + other.rules;
        Error::expect_at_most("the number of rules of a mask", MAX_RULES, rules)?;
        Ok(Self { queries, keys, rules, rule: Arc::new(join(self.clone(), other.clone())) })
    }

    /// The CSR pattern of what is seen, for plans that take one. It takes 4 bytes an element, so up to queries × keys × 4.
    ///
    /// # Errors
    /// [`Error::TooLarge`] from 2³² elements on, which nothing is reserved for before.
    pub fn to_pattern(&self) -> Result<Pattern> {
        let mut elements = 0_u64;
        let each = |ranges: &Ranges| ranges.iter().map(|range| range.len() as u64).sum::<u64>();
        self.rows_alike(|count, ranges| elements += count as u64 * each(ranges));
        Error::expect_at_most("the number of elements of a mask", u32::MAX as usize, elements as usize)?;
        let (mut offsets, mut columns) = (vec![0], Vec::with_capacity(elements as usize));
        self.rows_alike(|count, ranges| {
            for _ in 0..count {
                columns.extend(ranges.iter().cloned().flatten());
                offsets.push(columns.len() as u32);
            }
        });
        Ok(Pattern::new(self.queries, self.keys, offsets, columns)?)
    }

    /// Calls a function with what some neighbouring queries see, and how many they are; query by query.
    fn rows_alike(&self, mut see: impl FnMut(usize, &Ranges)) {
        let (mut query, mut ranges) = (0, Ranges::new());
        while query < self.queries {
            ranges.clear();
            let next = self.row(query, &mut ranges).min(self.queries);
            see(next - query, &ranges);
            query = next;
        }
    }
}
