//! Whether a layer's arrays are what its kernel trusts.
use std::ops::Range;

use half::{bf16, f16};
use lacuna_kernels::ValueType;
use lacuna_kernels::spdnn::{
    FUSED_NONE, FUSED_WIDTH, Limits, MMA_INPUTS, MMA_OUTPUTS, NO_INPUT, NO_OUTPUT, PADDED, Scheme,
    fused_place,
};

use super::super::Activation;
use super::super::csr::CsrLayer;
use super::super::groups::{Groups, STEP};
use super::super::packed::Place;
use super::super::prepared::{Places, Prepared};
use super::super::staged::{StagedLayer, WARP};
use super::super::steps::Steps;
use super::layout::{Sizes, stages_of};

/// What is wrong with a layer.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) expected: String,
    pub(super) got: String,
}

type Checked = Result<(), Fault>;

fn expect(is_right: bool, expected: impl FnOnce() -> String, got: impl ToString) -> Checked {
    if is_right { Ok(()) } else { Err(Fault { expected: expected(), got: got.to_string() }) }
}

/// The words of a layer.
struct Words<'w>(&'w [u32]);

impl<'w> Words<'w> {
    fn array(&self, place: Place, len: usize) -> &'w [u32] {
        &self.0[place as usize..][..len]
    }

    fn numbers(&self, place: Place, len: usize) -> impl Iterator<Item = f32> + use<'w> {
        self.array(place, len).iter().map(|&bits| f32::from_bits(bits))
    }

    /// Some of the numbers of 16 bits at a place.
    fn halves(&self, place: Place, range: Range<usize>) -> impl Iterator<Item = u16> + use<'w> {
        let words = &self.0[place as usize..];
        range.map(|at| (words[at / 2] >> (at % 2 * 16)) as u16)
    }
}

/// What the arrays of a layer hold.
struct Contents<'w> {
    edges: usize,
    /// Weights, padding among them.
    weights: (Place, usize),
    bias: Place,
    /// The output of each bias, where these are not one after another.
    outputs: Option<&'w [u32]>,
}

/// Checks the arrays of a layer: places are inside, as [`places`](super::layout::places) made them of these sizes.
pub(super) fn arrays(layer: &Prepared, sizes: Sizes, words: &[u32]) -> Checked {
    let words = Words(words);
    let contents = match &layer.places {
        Places::Groups(of) => groups(layer, of, &words)?,
        Places::Csr(of) => csr(layer, of, &words)?,
        Places::Staged(of) => staged(layer, of, sizes, &words)?,
        Places::Steps(of) => steps(layer, of, &words)?,
    };
    let Contents { edges, weights: (place, len), bias, outputs } = contents;
    expect(edges == layer.edges, || format!("{} edges", layer.edges), edges)?;
    let are_finite = || match layer.choice.entry.tile.weights {
        ValueType::Bf16 => words.halves(place, 0..len).all(|bits| bf16::from_bits(bits).is_finite()),
        ValueType::F16 => words.halves(place, 0..len).all(|bits| f16::from_bits(bits).is_finite()),
        _ => words.numbers(place, len).all(f32::is_finite),
    };
    let is_absent = |at: usize| outputs.is_some_and(|outputs| outputs[at] == NO_OUTPUT);
    let biases = || words.numbers(bias, outputs.map_or(layer.outputs, <[u32]>::len)).enumerate();
    let biases_keep_zero = || biases().all(|(at, bias)| is_absent(at) || keeps_zero(layer, bias));
    let all_keep_zero = !layer.keeps_zero || biases_keep_zero() && are_finite();
    expect(all_keep_zero, || "weights and biases that keep zeros".into(), "others")
}

/// Whether the layer makes zero of this bias.
fn keeps_zero(layer: &Prepared, bias: f32) -> bool {
    let Limits { lo, hi } = layer.limits;
    Activation::Clamp { lo, hi }.of(bias) == 0.0
}

/// Offsets from 0 on, ascending, to the end; gives the greatest distance.
fn offsets(what: &str, offsets: &[u32], end: usize) -> Result<u32, Fault> {
    let [first, last] = [offsets[0], offsets[offsets.len() - 1]];
    expect(first == 0, || format!("{what} from 0 on"), first)?;
    expect(offsets.is_sorted(), || format!("{what} in ascending order"), "others")?;
    expect(last as usize == end, || format!("{what} that end at {end}"), last)?;
    Ok(offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0))
}

fn inputs_below(width: usize, inputs: impl IntoIterator<Item = u32>) -> Checked {
    let wrong = inputs.into_iter().find(|&input| input as usize >= width);
    expect(wrong.is_none(), || format!("inputs below {width}"), wrong.unwrap_or(0))
}

fn csr<'w>(layer: &Prepared, of: &CsrLayer, words: &Words<'w>) -> Result<Contents<'w>, Fault> {
    offsets("offsets of edges", words.array(of.offsets, layer.outputs + 1), layer.edges)?;
    inputs_below(layer.inputs, words.array(of.inputs, layer.edges).iter().copied())?;
    Ok(Contents { edges: layer.edges, weights: (of.weights, layer.edges), bias: of.bias, outputs: None })
}

/// The outputs that groups have had so far.
struct Outputs(Vec<bool>);

impl Outputs {
    /// Adds those of a group, as they stand there and as numbers; gives how many they are.
    fn add(
        &mut self,
        group: usize,
        outputs: impl Iterator<Item = (u32, Option<u32>)>,
    ) -> Result<usize, Fault> {
        let mut count = 0;
        let all = self.0.len();
        for (output, number) in outputs.filter(|&(output, _)| output != NO_OUTPUT) {
            let place = number.and_then(|number| self.0.get_mut(number as usize));
            let is_new = place.is_some_and(|is_there| !std::mem::replace(is_there, true));
            expect(is_new, || format!("each output below {all} once"), format!("{output} in group {group}"))?;
            count += 1;
        }
        Ok(count)
    }

    fn expect_all(&self) -> Checked {
        let missing = self.0.iter().position(|&is_there| !is_there);
        expect(missing.is_none(), || format!("output {} in a group", missing.unwrap_or(0)), "none")
    }
}

fn groups<'w>(layer: &Prepared, of: &Groups, words: &Words<'w>) -> Result<Contents<'w>, Fault> {
    let (groups, most) = (of.groups as usize, outputs_of_group(layer));
    let (starts, counts) = (words.array(of.starts, groups), words.array(of.counts, groups));
    let (inputs, outputs) =
        (words.array(of.inputs, of.padded / most), words.array(of.outputs, groups * most));
    let room = || format!("groups for {} outputs", layer.outputs);
    expect(outputs.len() >= layer.outputs, room, format!("{groups} of {most}"))?;
    let mut there = Outputs(vec![false; layer.outputs]);
    let (mut end, mut edges) = (0, 0);
    for (group, outputs) in outputs.chunks_exact(most).enumerate() {
        let (start, count) = (starts[group] as usize, counts[group] as usize);
        expect(start == end, || format!("group {group} to begin at input {end}"), start)?;
        end = (start + count).next_multiple_of(STEP);
        let all = inputs.len();
        expect(end <= all, || format!("group {group} to end at input {all} or before"), end)?;
        inputs_below(layer.inputs, inputs[start..start + count].iter().copied())?;
        let first = outputs[0];
        expect(first != NO_OUTPUT, || format!("an output first in group {group}"), "none")?;
        edges += count * there.add(group, outputs.iter().map(|&output| (output, Some(output))))?;
    }
    expect(end == inputs.len(), || format!("groups of {} inputs", inputs.len()), end)?;
    there.expect_all()?;
    Ok(Contents { edges, weights: (of.weights, of.padded), bias: of.bias, outputs: Some(outputs) })
}

fn steps<'w>(layer: &Prepared, of: &Steps, words: &Words<'w>) -> Result<Contents<'w>, Fault> {
    let (groups, steps, most) = (of.groups as usize, of.steps as usize, MMA_OUTPUTS as usize);
    let starts = words.array(of.starts, groups + 1);
    offsets("steps of groups", starts, steps)?;
    let has_each = starts.windows(2).all(|pair| pair[0] < pair[1]);
    expect(has_each, || "a step in each group".into(), "none")?;
    let inputs = words.array(of.inputs, steps * MMA_INPUTS as usize);
    let outputs = words.array(of.outputs, groups * most);
    let is_fused = layer.is_fused();
    if is_fused {
        let each = steps / groups;
        let is_even = starts.windows(2).all(|pair| (pair[1] - pair[0]) as usize == each);
        expect(is_even, || format!("{each} steps in each group"), "others")?;
    }
    let number = |place: u32| if is_fused { fused_input(place) } else { Some(place) };
    let none = if is_fused { FUSED_NONE } else { NO_INPUT };
    let mut there = Outputs(vec![false; layer.outputs]);
    let mut edges = 0;
    for (group, outputs) in outputs.chunks_exact(most).enumerate() {
        let [start, end] = [group, group + 1].map(|at| starts[at] as usize * MMA_INPUTS as usize);
        let all = &inputs[start..end];
        let count = all.iter().filter(|&&input| input != none).count();
        let is_first = is_fused || all[..count].iter().all(|&input| input != none);
        expect(is_first, || format!("inputs first in the steps of group {group}"), "none")?;
        let inputs = all.iter().copied().filter(|&input| input != none);
        inputs_below(layer.inputs, inputs.map(|input| number(input).unwrap_or(u32::MAX)))?;
        edges += count * there.add(group, outputs.iter().map(|&output| (output, number(output))))?;
    }
    there.expect_all()?;
    Ok(Contents { edges, weights: (of.weights, of.padded()), bias: of.bias, outputs: Some(outputs) })
}

/// The input at a place of fused layers, if it is one.
fn fused_input(place: u32) -> Option<u32> {
    // What exchanges neighbouring lines exchanges them back.
    let line = place / (FUSED_NONE / FUSED_WIDTH);
    [line, line ^ 1].into_iter().find(|&input| input < FUSED_WIDTH && fused_place(input) == place)
}

fn outputs_of_group(layer: &Prepared) -> usize {
    match layer.choice.entry.tile.scheme {
        Scheme::InputGroups { outputs, .. } | Scheme::GroupTiles { outputs, .. } => outputs as usize,
        _ => 1,
    }
}

fn staged<'w>(
    layer: &Prepared,
    of: &StagedLayer,
    [stages, inputs, _]: Sizes,
    words: &Words<'w>,
) -> Result<Contents<'w>, Fault> {
    let (stages, inputs) = (stages as usize, inputs as usize);
    let (blocks, warps, most) = stages_of(layer);
    offsets("stages of blocks", words.array(of.stages, blocks + 1), stages)?;
    let map_starts = words.array(of.map_starts, stages + 1);
    let longest = offsets("inputs of stages", map_starts, inputs)?;
    expect(longest <= most, || format!("stages of at most {most} inputs"), longest)?;
    inputs_below(layer.inputs, words.halves(of.map, 0..inputs).map(u32::from))?;
    let steps = words.array(of.steps, stages * warps + 1);
    offsets("steps of warps", steps, of.padded / WARP)?;
    let mut edges = 0;
    for (stage, map) in map_starts.windows(2).enumerate() {
        let size = map[1] - map[0];
        let range = steps[stage * warps] as usize * WARP..steps[(stage + 1) * warps] as usize * WARP;
        for place in words.halves(of.places, range).filter(|&place| place != PADDED) {
            expect(u32::from(place) < size, || format!("places below {size} in stage {stage}"), place)?;
            edges += 1;
        }
    }
    Ok(Contents { edges, weights: (of.weights, of.padded), bias: of.bias, outputs: None })
}
