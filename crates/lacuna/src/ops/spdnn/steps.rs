//! Groups of outputs as tensor cores take them: steps of 16 inputs, and bfloat16 weights in the order of the lanes.
use half::bf16;
use lacuna_kernels::spdnn::{
    FUSED_NONE, MMA_INPUTS, MMA_OUTPUTS, MMA_WORDS, NO_INPUT, NO_OUTPUT, fused_banks, fused_place,
    weight_place,
};

use super::Layer;
use super::groups::{Classes, bias_of};
use super::packed::{Arrays, Place};

/// Inputs that a lane, and lanes that a row has in a step.
const LANES: usize = 4;
const INPUTS: usize = MMA_INPUTS as usize;
/// Steps that come after the last: kernels load them, and do not use them.
pub(super) const MORE_STEPS: usize = 2;

/// A layer's groups, packed; places are those of `GroupMmaArgs`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    pub(super) starts: Place,
    pub(super) inputs: Place,
    pub(super) weights: Place,
    pub(super) outputs: Place,
    pub(super) bias: Place,
    pub(super) groups: u32,
    /// Steps of all groups.
    pub(super) steps: u32,
}

impl Steps {
    /// Places for weights, those of absent outputs and inputs among them.
    pub(super) fn padded(&self) -> usize {
        self.steps as usize * (MMA_INPUTS * MMA_OUTPUTS) as usize
    }

    /// Packs the classes in groups of 16 outputs, of a step at least. For fused layers inputs and outputs are places in shared memory, and
    /// all groups have the same number of steps.
    pub(super) fn pack(classes: &Classes, layer: &Layer, is_fused: bool, arrays: &mut Arrays) -> Self {
        let most = classes.sizes(layer).iter().map(|size| size[1] as usize).max().unwrap_or(0);
        let least = if is_fused { most.div_ceil(INPUTS).max(1) } else { 1 };
        let [mut starts, mut inputs, mut outputs] = [vec![0], Vec::new(), Vec::new()];
        let mut weights: Vec<u16> = Vec::new();
        for group in classes.groups(MMA_OUTPUTS as usize) {
            let columns = layer.weights().row(group[0] as usize).0;
            let mut slots: Vec<Option<usize>> =
                if is_fused { by_banks(columns) } else { (0..columns.len()).map(Some).collect() };
            slots.resize(slots.len().next_multiple_of(INPUTS).max(least * INPUTS), None);
            let place = weights.len();
            weights.resize(place + slots.len() * MMA_OUTPUTS as usize, 0);
            for (r, &output) in group.iter().enumerate() {
                let row = layer.weights().row(output as usize).1;
                for (at, edge) in slots.iter().enumerate() {
                    let step = at / INPUTS * 2 * MMA_WORDS as usize;
                    let weight = edge.map_or(0, |edge| bf16::from_f32(row[edge]).to_bits());
                    weights[place + step + weight_place(r as u32, (at % INPUTS) as u32) as usize] = weight;
                }
            }
            let input = |edge: &Option<usize>| match (edge, is_fused) {
                (Some(edge), false) => columns[*edge],
                (Some(edge), true) => fused_place(columns[*edge]),
                (None, false) => NO_INPUT,
                (None, true) => FUSED_NONE,
            };
            inputs.extend(slots.iter().map(input));
            starts.push((inputs.len() / INPUTS) as u32);
            outputs.extend_from_slice(group);
            outputs.resize((starts.len() - 1) * MMA_OUTPUTS as usize, NO_OUTPUT);
        }
        // Here too comes what is loaded ahead, and not used.
        outputs.resize(outputs.len() + MMA_OUTPUTS as usize, NO_OUTPUT);
        let bias: Vec<f32> = outputs.iter().map(|&output| bias_of(layer, output)).collect();
        if is_fused {
            outputs.iter_mut().filter(|output| **output != NO_OUTPUT).for_each(|at| *at = fused_place(*at));
        }
        let (groups, steps) = ((starts.len() - 1) as u32, starts[starts.len() - 1]);
        inputs.resize(inputs.len() + MORE_STEPS * INPUTS, if is_fused { FUSED_NONE } else { NO_INPUT });
        weights.resize(weights.len() + MORE_STEPS * 2 * MMA_WORDS as usize, 0);
        Self {
            groups,
            steps,
            starts: arrays.push(&starts),
            inputs: arrays.push(&inputs),
            weights: arrays.push_u16(&weights),
            outputs: arrays.push(&outputs),
            bias: arrays.push_f32(bias),
        }
    }
}

/// An order of a group's inputs in which those that are loaded together are in different banks of shared memory, where they can:
/// in a step, of the slots of each lane the first, then the second, and so on.
fn by_banks(columns: &[u32]) -> Vec<Option<usize>> {
    let mut queues: [Vec<usize>; LANES] = Default::default();
    for (edge, &column) in columns.iter().enumerate().rev() {
        queues[fused_banks(column) as usize].push(edge);
    }
    let mut slots = vec![None; columns.len().next_multiple_of(INPUTS)];
    for at in 0..columns.len() {
        let (step, i, lane) = (at / INPUTS, at % INPUTS / LANES, at % LANES);
        let longest = (0..LANES).max_by_key(|&bank| queues[bank].len()).unwrap_or(0);
        let bank = if queues[lane].is_empty() { longest } else { lane };
        slots[step * INPUTS + lane * LANES + i] = queues[bank].pop();
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_of_a_load_are_in_different_banks() {
        for stride in [1, 2, 4, 32, 96] {
            let columns: Vec<u32> = (0..32).map(|i| i * stride % 1024).collect();
            let slots = by_banks(&columns);
            let mut edges: Vec<usize> = slots.iter().flatten().copied().collect();
            for step in slots.chunks(INPUTS) {
                for i in 0..LANES {
                    let mut banks: Vec<u32> = (0..LANES)
                        .filter_map(|lane| step[lane * LANES + i])
                        .map(|edge| fused_banks(columns[edge]))
                        .collect();
                    banks.sort_unstable();
                    assert_eq!(banks, [0, 1, 2, 3], "stride {stride}");
                }
            }
            edges.sort_unstable();
            assert!(edges.into_iter().eq(0..32));
        }
    }

    #[test]
    fn every_input_has_a_slot() {
        for count in 0..40 {
            let columns: Vec<u32> = (0..count).map(|i| i * i).collect();
            let slots = by_banks(&columns);
            assert_eq!(slots.len(), columns.len().next_multiple_of(INPUTS));
            assert_eq!(slots.iter().flatten().count(), columns.len());
        }
    }
}
