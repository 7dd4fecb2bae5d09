//! Operators that work on each element: sums and activations.
use super::ImportError;
use super::importer::{Importer, Value};
use super::operator::Place;
use crate::files::tflite::Activation;
use crate::network::{Add, Conv};

impl<'m> Importer<'m> {
    pub(super) fn add(&mut self, at: Place<'m>, activation: Activation) -> Result<Value, ImportError> {
        let (x, y) = (self.value(at, 0)?, self.value(at, 1)?);
        if x.dims != y.dims {
            let got = format!("{:?} and {:?} of an image", x.dims, y.dims);
            return Err(at.operand(1, "two values of one shape", got));
        }
        let id = match self.drafts.add(x.id, y.id) {
            Some(id) => id,
            None => self.layer(at, "", Add::new(), vec![x.id, y.id])?,
        };
        let id = self.activated(at, id, activation)?;
        Ok(Value { id, ..x })
    }

    pub(super) fn relu(&mut self, at: Place<'m>) -> Result<Value, ImportError> {
        let value = self.value(at, 0)?;
        let id = self.activated(at, value.id, Activation::Relu)?;
        Ok(Value { id, ..value })
    }

    /// max(x, 0) − slope·max(−x, 0): one of both is 0, so that nothing is rounded but slope·x.
    pub(super) fn prelu(&mut self, at: Place<'m>) -> Result<Value, ImportError> {
        let value = self.value(at, 0)?;
        let channels = self.drafts.shape(value.id).channels;
        let tensor = self.constant(at, 1)?;
        let shape = self.shape_of(tensor);
        let are_of_channels = shape.last() == Some(&channels) && shape.iter().product::<usize>() == channels;
        if !are_of_channels {
            let got = format!("values of shape {shape:?} for {channels} channels");
            return Err(at.operand(1, "a slope for each channel", got));
        }
        let mut slopes = self.numbers(at, tensor)?;
        slopes.iter_mut().for_each(|slope| *slope = -*slope);
        let relu = || Conv::depthwise([1, 1]).relu();
        let negative = self.factors(at, "negative", relu(), vec![value.id], vec![-1.0; channels])?;
        let positive = self.factors(at, "positive", relu(), vec![value.id], vec![1.0; channels])?;
        let both = Conv::depthwise([1, 1]).residual();
        let id = self.factors(at, "", both, vec![negative, positive], slopes)?;
        Ok(Value { id, ..value })
    }
}
