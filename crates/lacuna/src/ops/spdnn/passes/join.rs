//! Two neighbouring layers: neurons between them that are constant, and those that are the same.
use std::collections::HashMap;

use lacuna_matrix::{Csr, Pattern};
use rayon::prelude::*;

use super::super::{Bias, Layer};
use super::select::outputs;
use super::{Passed, Passes};
use crate::Result;

/// What stands for an output of the first layer in the second.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// The output of this number, of those that are left.
    Kept(u32),
    /// A number.
    Constant(f32),
}

/// Makes constant outputs of `first` part of the biases of `second`, and equal ones one. Tells what it did in `of_first`, and how
/// many sums it changed in `of_second`.
pub(super) fn join(
    first: Layer,
    second: Layer,
    passes: Passes,
    of_first: &mut Passed,
    of_second: &mut Passed,
) -> Result<(Layer, Layer)> {
    let mut found = Found::default();
    let classes = passes.merge.then(|| classes(&first));
    for output in 0..first.outputs() {
        let class = classes.as_ref().map_or(output, |classes| classes[output] as usize);
        let constant = if passes.constants { constant(&first, output) } else { None };
        let place = match constant {
            Some(number) => {
                found.constant += 1;
                Place::Constant(number)
            }
            None if class < output => {
                found.merged += 1;
                found.places[class]
            }
            None => {
                found.kept.push(output as u32);
                Place::Kept(found.kept.len() as u32 - 1)
            }
        };
        found.places.push(place);
    }
    if found.kept.len() == first.outputs() {
        return Ok((first, second));
    }
    let Some(rows) = rewrite(&second, &found.places) else {
        of_first.overflows = true;
        return Ok((first, second));
    };
    (of_first.constant, of_first.merged) = (found.constant, found.merged);
    of_second.regrouped = rows.iter().filter(|row| row.is_regrouped).count();
    let biases = rows.iter().map(|row| row.bias).collect();
    let bias = if of_first.constant > 0 { Bias::PerOutput(biases) } else { second.bias().clone() };
    let pattern = Pattern::of_rows(found.kept.len(), rows.iter().map(|row| &row.columns))?;
    let weights = Csr::with_values(pattern, rows.iter().flat_map(|row| &row.weights).copied().collect())?;
    Ok((outputs(&first, &found.kept)?, second.with(weights, bias)))
}

#[derive(Default)]
struct Found {
    places: Vec<Place>,
    /// The outputs that are left.
    kept: Vec<u32>,
    constant: usize,
    merged: usize,
}

/// For each output the first that is the same.
fn classes(layer: &Layer) -> Vec<u32> {
    let mut first = HashMap::new();
    let class = |output: usize| {
        let (columns, weights) = layer.weights().row(output);
        let weights: &[u32] = bytemuck::cast_slice(weights);
        let bias = layer.bias().of(output).to_bits();
        *first.entry((columns, weights, bias)).or_insert(output as u32)
    };
    (0..layer.outputs()).map(class).collect()
}

/// What an output is for all samples, where it is the same finite number.
fn constant(layer: &Layer, output: usize) -> Option<f32> {
    let number = layer.activation().of(layer.bias().of(output));
    let is_constant = layer.weights().row(output).0.is_empty() && number.is_finite();
    is_constant.then_some(number)
}

/// An output of the second layer.
struct Row {
    columns: Vec<u32>,
    weights: Vec<f32>,
    bias: f32,
    is_regrouped: bool,
}

/// The outputs of a layer with other inputs; none where a number of them is too large for `f32`.
fn rewrite(layer: &Layer, places: &[Place]) -> Option<Vec<Row>> {
    (0..layer.outputs()).into_par_iter().map(|output| row(layer, output, places)).collect()
}

fn row(layer: &Layer, output: usize, places: &[Place]) -> Option<Row> {
    let (columns, weights) = layer.weights().row(output);
    let mut bias = f64::from(layer.bias().of(output));
    let mut is_finite = bias.is_finite();
    let mut is_regrouped = false;
    let mut terms: Vec<(u32, f64)> = Vec::with_capacity(columns.len());
    for (&column, &weight) in columns.iter().zip(weights) {
        match places[column as usize] {
            Place::Kept(place) => terms.push((place, f64::from(weight))),
            // What is not finite times a constant, zero too, is not finite, in the biases as in the sum.
            Place::Constant(number) => {
                let product = f64::from(weight) * f64::from(number);
                is_finite &= product.is_finite();
                if product != 0.0 {
                    is_regrouped = true;
                    bias += product;
                }
            }
        }
    }
    if is_finite && !(bias as f32).is_finite() {
        return None;
    }
    // Another order, or the same place twice.
    is_regrouped |= !terms.is_sorted_by(|a, b| a.0 < b.0);
    terms.sort_by_key(|&(place, _)| place);
    let mut row = Row { columns: Vec::new(), weights: Vec::new(), bias: bias as f32, is_regrouped };
    for same in terms.chunk_by(|a, b| a.0 == b.0) {
        let sum: f64 = same.iter().map(|&(_, weight)| weight).sum();
        let weight = sum as f32;
        if !weight.is_finite() && same.iter().all(|&(_, weight)| weight.is_finite()) {
            return None;
        }
        row.columns.push(same[0].0);
        row.weights.push(weight);
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::super::super::Activation;
    use super::*;

    fn layer(rows: &[&[f32]], biases: &[f32]) -> Layer {
        let weights = Csr::from_dense(rows.len(), rows[0].len(), &rows.concat()).unwrap();
        Layer::new(weights, Bias::PerOutput(biases.to_vec()), Activation::Relu).unwrap()
    }

    fn join_all(first: Layer, second: Layer) -> (Layer, Layer, [Passed; 2]) {
        let mut passed = [Passed::default(); 2];
        let [of_first, of_second] = &mut passed;
        let (first, second) = join(first, second, Passes::default(), of_first, of_second).unwrap();
        (first, second, passed)
    }

    #[test]
    fn outputs_are_the_same_only_in_inputs_weights_and_bias() {
        let rows: [&[f32]; 5] = [&[1.0, 2.0], &[1.0, 2.0], &[1.0, 3.0], &[0.0, 2.0], &[1.0, 2.0]];
        assert_eq!(classes(&layer(&rows, &[0.5, 0.5, 0.5, 0.5, 0.25])), [0, 0, 2, 3, 4]);
    }

    #[test]
    fn sums_that_are_too_large_keep_all() {
        let first = layer(&[&[1.0], &[1.0]], &[0.0, 0.0]);
        let (_, second, passed) = join_all(first.clone(), layer(&[&[f32::MAX, f32::MAX]], &[0.0]));
        assert_eq!(second.weights().values(), [f32::MAX, f32::MAX]);
        assert!(passed[0].overflows && passed[0].merged == 0);
        // What is infinite before may be so after.
        let (_, second, passed) = join_all(first, layer(&[&[f32::INFINITY, 1.0]], &[0.0]));
        assert_eq!(second.weights().values(), [f32::INFINITY]);
        assert!(!passed[0].overflows && passed[0].merged == 1 && passed[1].regrouped == 1);
    }

    #[test]
    fn biases_that_are_too_large_keep_all() {
        let first = layer(&[&[0.0], &[1.0]], &[f32::MAX, 0.0]);
        let (first, second, passed) = join_all(first, layer(&[&[2.0, 1.0]], &[0.0]));
        assert_eq!((first.outputs(), second.inputs()), (2, 2));
        assert!(passed[0].overflows && passed[0].constant == 0);
    }

    #[test]
    fn zeros_leave_biases_as_they_are_and_not_where_a_weight_is_not_finite() {
        let first = layer(&[&[0.0], &[1.0]], &[-1.0, 0.0]);
        let second = layer(&[&[2.0, 1.0], &[f32::INFINITY, 1.0]], &[-0.0, 1.0]);
        let (_, second, passed) = join_all(first, second);
        assert_eq!(second.bias().of(0).to_bits(), (-0.0_f32).to_bits());
        assert!(second.bias().of(1).is_nan());
        assert_eq!(passed[1].regrouped, 1);
    }
}
