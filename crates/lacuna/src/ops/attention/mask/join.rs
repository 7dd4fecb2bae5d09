//! Masks of several rules, and their elements.
use std::sync::Arc;

use lacuna_matrix::Pattern;

use super::rule::Rule;
use super::{Mask, shape};
use crate::ops::attention::OPERATION;
use crate::{Error, Result};

/// The most rules of a mask: one asks the other, so that many would take all of the stack.
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
        let elements: u64 = self.strips().map(|strip| strip.elements()).sum();
        Error::expect_at_most("the number of elements of a mask", u32::MAX as usize, elements as usize)?;
        let (mut offsets, mut columns) = (vec![0], Vec::with_capacity(elements as usize));
        for strip in self.strips() {
            for query in 0..strip.queries {
                strip.push_keys(query, &mut columns);
                offsets.push(columns.len() as u32);
            }
        }
        Ok(Pattern::new(self.queries, self.keys, offsets, columns)?)
    }
}
