//! Outputs of a layer that have the same inputs.
use std::collections::HashMap;

use half::f16;
use lacuna_kernels::ValueType;
use lacuna_kernels::spdnn::NO_OUTPUT;

use super::Layer;
use super::packed::{Arrays, Place};

/// Inputs of a group begin at multiples of this.
pub(super) const STEP: usize = 4;
/// Classes of an input that are looked at for the next to come.
const NEIGHBOURS: usize = 8;

/// Outputs with the same inputs, each class in ascending order.
#[derive(Debug, Default)]
pub(super) struct Classes {
    members: Vec<Vec<u32>>,
}

/// A layer's groups, packed; places are those of `GroupsArgs`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Groups {
    pub(super) starts: Place,
    pub(super) counts: Place,
    pub(super) inputs: Place,
    pub(super) weights: Place,
    pub(super) outputs: Place,
    pub(super) bias: Place,
    pub(super) groups: u32,
    /// Places for weights, those of absent outputs and inputs among them.
    pub(super) padded: usize,
}

impl Classes {
    /// Finds the classes, and puts those that share inputs after one another: warps that work at the same time then load
    /// the same lines.
    pub(super) fn of(layer: &Layer) -> Self {
        let pattern = layer.weights().pattern();
        let mut class_of: HashMap<&[u32], usize> = HashMap::new();
        let mut members: Vec<Vec<u32>> = Vec::new();
        for output in 0..pattern.rows() {
            let class = *class_of.entry(pattern.row_columns(output)).or_insert_with(|| {
                members.push(Vec::new());
                members.len() - 1
            });
            members[class].push(output as u32);
        }
        let order =
            chain(layer.inputs(), members.len(), |class| pattern.row_columns(members[class][0] as usize));
        let members = order.into_iter().map(|class| std::mem::take(&mut members[class])).collect();
        Self { members }
    }

    /// For each class the number of its outputs, and of its inputs.
    pub(super) fn sizes(&self, layer: &Layer) -> Vec<[u32; 2]> {
        let size = |members: &Vec<u32>| [members.len() as u32, self.inputs(layer, members).len() as u32];
        self.members.iter().map(size).collect()
    }

    /// The classes, cut into groups of at most `most` outputs.
    pub(super) fn groups(&self, most: usize) -> impl Iterator<Item = &[u32]> {
        self.members.iter().flat_map(move |members| members.chunks(most))
    }

    fn inputs<'l>(&self, layer: &'l Layer, members: &[u32]) -> &'l [u32] {
        layer.weights().pattern().row_columns(members[0] as usize)
    }

    /// Cuts the classes into groups of at most `most` outputs.
    pub(super) fn pack(&self, layer: &Layer, most: usize, arrays: &mut Arrays) -> Groups {
        let [mut starts, mut counts, mut inputs, mut outputs] = [(); 4].map(|()| Vec::<u32>::new());
        let mut weights = Vec::new();
        for group in self.groups(most) {
            let columns = self.inputs(layer, group);
            starts.push(inputs.len() as u32);
            counts.push(columns.len() as u32);
            inputs.extend_from_slice(columns);
            let place = weights.len();
            inputs.resize(inputs.len().next_multiple_of(STEP), 0);
            weights.resize(inputs.len() * most, 0.0);
            for (r, &output) in group.iter().enumerate() {
                for (i, &weight) in layer.weights().row(output as usize).1.iter().enumerate() {
                    weights[place + i * most + r] = weight;
                }
            }
            outputs.extend_from_slice(group);
            outputs.resize(starts.len() * most, NO_OUTPUT);
        }
        let bias = outputs.iter().map(|&output| bias_of(layer, output));
        Groups {
            padded: weights.len(),
            groups: starts.len() as u32,
            starts: arrays.push(&starts),
            counts: arrays.push(&counts),
            inputs: arrays.push(&inputs),
            weights: match layer.weight_type() {
                ValueType::F16 => arrays.push_u16(&halves(&weights)),
                _ => arrays.push_f32(weights),
            },
            bias: arrays.push_f32(bias),
            outputs: arrays.push(&outputs),
        }
    }
}

/// The bias of an output, or of none.
pub(super) fn bias_of(layer: &Layer, output: u32) -> f32 {
    if output == NO_OUTPUT { 0.0 } else { layer.bias().of(output as usize) }
}

/// Weights as `f16`, which they are.
fn halves(weights: &[f32]) -> Vec<u16> {
    weights.iter().map(|&weight| f16::from_f32(weight).to_bits()).collect()
}

/// An order of the classes in which neighbours share inputs, where they can: after each class comes the one that has most
/// inputs in common with it, of those that are left; where none has any, the first that is left.
fn chain<'c>(inputs: usize, classes: usize, columns: impl Fn(usize) -> &'c [u32]) -> Vec<usize> {
    let mut users = vec![[u32::MAX; NEIGHBOURS]; inputs];
    for class in 0..classes {
        for &input in columns(class) {
            if let Some(place) = users[input as usize].iter_mut().find(|user| **user == u32::MAX) {
                *place = class as u32;
            }
        }
    }
    let mut is_taken = vec![false; classes];
    let mut shared = vec![0_u32; classes];
    let mut order = Vec::with_capacity(classes);
    let mut first_left = 0;
    while order.len() < classes {
        let next = order.last().and_then(|&last: &usize| {
            let neighbours = columns(last).iter().flat_map(|&input| users[input as usize]);
            let found: Vec<usize> = neighbours
                .map(|class| class as usize)
                .filter(|&class| class < classes && !is_taken[class])
                .collect();
            found.iter().for_each(|&class| shared[class] += 1);
            let best = found.iter().copied().max_by_key(|&class| (shared[class], std::cmp::Reverse(class)));
            found.iter().for_each(|&class| shared[class] = 0);
            best
        });
        let next = next.unwrap_or_else(|| {
            while is_taken[first_left] {
                first_left += 1;
            }
            first_left
        });
        is_taken[next] = true;
        order.push(next);
    }
    order
}

#[cfg(test)]
mod tests {
    use lacuna_matrix::{Csr, Pattern};

    use super::*;
    use crate::spdnn::{Activation, Bias};

    fn layer() -> Layer {
        // Outputs 0, 2 and 4 have inputs 1, 3; output 1 has 0; output 3 has 3, 4; output 5 none.
        let rows: [&[u32]; 6] = [&[1, 3], &[0], &[1, 3], &[3, 4], &[1, 3], &[]];
        let values = (1..10_u8).map(f32::from).collect();
        let weights = Csr::with_values(Pattern::of_rows(5, rows).unwrap(), values);
        let bias = Bias::PerOutput((0..6_u8).map(f32::from).collect());
        Layer::new(weights.unwrap(), bias, Activation::Identity).unwrap()
    }

    #[test]
    fn classes_are_in_an_order_that_shares_inputs() {
        let classes = Classes::of(&layer());
        assert_eq!(classes.members, [vec![0, 2, 4], vec![3], vec![1], vec![5]]);
        assert_eq!(classes.sizes(&layer()), [[3, 2], [1, 2], [1, 1], [1, 0]]);
    }

    #[test]
    fn groups_have_the_weights_and_biases_of_their_outputs() {
        let mut arrays = Arrays::default();
        let groups = Classes::of(&layer()).pack(&layer(), 2, &mut arrays);
        assert_eq!(groups.groups, 5);
        let words = |place: Place, len: usize| &arrays.words[place as usize..][..len];
        let numbers =
            |place, len| words(place, len).iter().map(|&bits| f32::from_bits(bits)).collect::<Vec<_>>();
        assert_eq!(words(groups.starts, 5), [0, 4, 8, 12, 16]);
        assert_eq!(words(groups.counts, 5), [2, 2, 2, 1, 0]);
        assert_eq!(words(groups.inputs, 2), [1, 3]);
        assert_eq!(words(groups.outputs, 4), [0, 2, 4, NO_OUTPUT]);
        assert_eq!(numbers(groups.bias, 4), [0.0, 2.0, 4.0, 0.0]);
        // Outputs 0 and 2 at input 1, then at input 3; output 4 alone.
        assert_eq!(numbers(groups.weights, 4), [1.0, 4.0, 2.0, 5.0]);
        assert_eq!(numbers(groups.weights + 8, 4), [8.0, 0.0, 9.0, 0.0]);
    }
}
