//! What a run works on.
use super::Filters;
use crate::{Slice, SliceMut, Value};

/// What a run works on.
#[derive(Debug)]
pub struct Operands<'o, T: Value = f32> {
    /// x: [`Conv::input_len`](super::Conv::input_len) elements.
    pub input: Slice<'o, T>,
    /// The filters, packed by this plan, or one that packs alike.
    pub filters: &'o Filters<T>,
    /// What is added to each channel of the result: as many elements as there are filters.
    pub bias: Option<Slice<'o, T>>,
    /// What is added to each element: it lies as the result does.
    pub residual: Option<Slice<'o, T>>,
    /// The result: [`Conv::output_len`](super::Conv::output_len) elements.
    pub out: SliceMut<'o, T>,
    /// A counter, to which the number of results other than zero is added.
    pub nonzeros: Option<SliceMut<'o, u32>>,
}

impl<'o, T: Value> Operands<'o, T> {
    /// Without bias, residual and counter.
    pub fn new(input: Slice<'o, T>, filters: &'o Filters<T>, out: SliceMut<'o, T>) -> Self {
        Self { input, filters, bias: None, residual: None, out, nonzeros: None }
    }
}
