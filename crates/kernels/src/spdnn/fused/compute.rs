//! A layer of fused layers: steps one after another, with what comes next on its way to registers.
use lacuna_gpu::{GlobalPtr, Gpu, SharedPtr};

use super::{BUFFER_BYTES, Block, FusedLayer};
use crate::spdnn::exact::{MMA_OUTPUTS, OF_LANE, Step, Steps, add_products};
use crate::spdnn::{LayerInput, Limits, NO_OUTPUT};

/// What is on its way to registers.
pub(super) struct Ahead {
    /// The next two steps.
    steps: [Step; 2],
    /// The step after them.
    place: Steps,
    /// Outputs and biases of the next group.
    group: Group,
}

/// A lane's places of outputs g and g + 8, and their biases.
#[derive(Clone, Copy, Default)]
struct Group {
    places: [u32; 2],
    bias: [f32; 2],
}

/// Sums of a lane, by the two products of a step.
type Sums = [[f32; 4]; 2];

/// Where a warp is in a layer.
struct At {
    /// Groups that are left, this one with them.
    groups: u32,
    /// Steps that are left of this group.
    steps: u32,
    /// Steps that are still to be loaded.
    to_load: u32,
    /// The group.
    group: u32,
    own: Group,
    sums: Sums,
}

impl<G: Gpu, X: LayerInput, const WARPS: u32> Block<'_, G, X, WARPS> {
    /// Begins a layer. Arrays go on past their ends for as long as what is loaded ahead and not used.
    ///
    /// # Safety
    /// It is one of the layers.
    #[inline(always)]
    pub(super) unsafe fn begin(&self, layer: &FusedLayer) -> Ahead {
        let first = self.groups(layer)[0];
        let mut place = self.steps(layer, first);
        // SAFETY: as promised by the caller.
        unsafe {
            let steps = [place.next(self.gpu), place.next(self.gpu)];
            Ahead { steps, place, group: self.group(layer, first) }
        }
    }

    /// The first step of a group.
    #[inline(always)]
    fn steps(&self, layer: &FusedLayer, group: u32) -> Steps {
        let (weights, inputs) = (self.array(layer.weights), self.array(layer.inputs));
        Steps::at(self.gpu, weights, inputs, group * layer.steps)
    }

    /// Outputs and biases of a group.
    ///
    /// # Safety
    /// The layer is there, and the group, or it is the first past the last.
    #[inline(always)]
    unsafe fn group(&self, layer: &FusedLayer, group: u32) -> Group {
        let at = (group * MMA_OUTPUTS + self.lane / OF_LANE) as usize;
        let places: GlobalPtr<u32> = self.array(layer.outputs).add(at);
        let bias = GlobalPtr::<f32>::from_address(self.array(layer.bias).address()).add(at);
        // SAFETY: as promised by the caller.
        unsafe {
            let [first] = self.gpu.load_readonly(places);
            let [second] = self.gpu.load_readonly(places.add(MMA_OUTPUTS as usize / 2));
            let [first_bias] = self.gpu.load_readonly(bias);
            let [second_bias] = self.gpu.load_readonly(bias.add(MMA_OUTPUTS as usize / 2));
            Group { places: [first, second], bias: [first_bias, second_bias] }
        }
    }

    /// Computes a layer: reads the buffer at `FROM`, writes the other, and begins the next layer.
    ///
    /// # Safety
    /// The layers are there; what is ahead is of this one; no warp writes the one buffer or reads the other.
    #[inline(always)]
    pub(super) unsafe fn compute<const FROM: u32>(
        &self,
        layer: &FusedLayer,
        next: &FusedLayer,
        ahead: &mut Ahead,
    ) {
        let [first, end] = self.groups(layer);
        let (count, next_first) = ((end - first) * layer.steps, self.groups(next)[0]);
        // SAFETY: as promised by the caller; a group's outputs are its own.
        unsafe {
            if count < 2 {
                // What was loaded ahead is not all of this layer's.
                if count > 0 {
                    let own = ahead.group;
                    let mut sums = Sums::default();
                    self.multiply::<FROM>(layer, &ahead.steps[0], &mut sums);
                    self.finish::<FROM>(layer, &own, &sums);
                }
                *ahead = self.begin(next);
                return;
            }
            let mut at = At {
                groups: end - first,
                steps: layer.steps,
                to_load: count - 2,
                group: first,
                own: ahead.group,
                sums: Sums::default(),
            };
            ahead.group = self.next_group(layer, next, &at, next_first);
            let [mut even, mut odd] = ahead.steps;
            loop {
                self.multiply::<FROM>(layer, &even, &mut at.sums);
                even = self.refill(next, next_first, ahead, &mut at);
                if self.leave::<FROM>(layer, next, next_first, ahead, &mut at) {
                    // The next layer's first step was loaded last but one.
                    ahead.steps = [odd, even];
                    return;
                }
                self.multiply::<FROM>(layer, &odd, &mut at.sums);
                odd = self.refill(next, next_first, ahead, &mut at);
                if self.leave::<FROM>(layer, next, next_first, ahead, &mut at) {
                    ahead.steps = [even, odd];
                    return;
                }
            }
        }
    }

    /// Outputs and biases of the group after this one, in this layer or the next.
    ///
    /// # Safety
    /// The layers are there.
    #[inline(always)]
    unsafe fn next_group(&self, layer: &FusedLayer, next: &FusedLayer, at: &At, next_first: u32) -> Group {
        // SAFETY: as promised by the caller.
        unsafe { if at.groups > 1 { self.group(layer, at.group + 1) } else { self.group(next, next_first) } }
    }

    /// Loads the step after the next one.
    ///
    /// # Safety
    /// The layers are there.
    #[inline(always)]
    unsafe fn refill(&self, next: &FusedLayer, next_first: u32, ahead: &mut Ahead, at: &mut At) -> Step {
        if at.to_load == 0 {
            ahead.place = self.steps(next, next_first);
        }
        // Past 0 it wraps round, and is not 0 again.
        at.to_load = at.to_load.wrapping_sub(1);
        // SAFETY: as promised by the caller.
        unsafe { ahead.place.next(self.gpu) }
    }

    /// Counts a step; ends the group after its last. Whether that was the warp's last group.
    ///
    /// # Safety
    /// As [`compute`](Self::compute).
    #[inline(always)]
    unsafe fn leave<const FROM: u32>(
        &self,
        layer: &FusedLayer,
        next: &FusedLayer,
        next_first: u32,
        ahead: &mut Ahead,
        at: &mut At,
    ) -> bool {
        at.steps -= 1;
        if at.steps > 0 {
            return false;
        }
        // SAFETY: as promised by the caller.
        unsafe {
            self.finish::<FROM>(layer, &at.own, &at.sums);
            at.groups -= 1;
            if at.groups == 0 {
                return true;
            }
            (at.group, at.steps, at.sums) = (at.group + 1, layer.steps, Sums::default());
            at.own = ahead.group;
            ahead.group = self.next_group(layer, next, at, next_first);
        }
        false
    }

    /// Writes the outputs of a group.
    ///
    /// # Safety
    /// They are nobody else's.
    #[inline(always)]
    unsafe fn finish<const FROM: u32>(&self, layer: &FusedLayer, own: &Group, [a, b]: &Sums) {
        let limits = Limits { lo: f32::from_bits(layer.lo), hi: f32::from_bits(layer.hi) };
        let row = self.lane % OF_LANE * 16;
        let store = |place: u32, bias: f32, sums: [f32; 4]| {
            if place != NO_OUTPUT {
                let to = SharedPtr::from_offset((BUFFER_BYTES - FROM) + (place ^ row));
                // SAFETY: as promised by the caller.
                unsafe { self.gpu.shared_store(to, sums.map(|sum| limits.of(sum + bias))) };
            }
        };
        store(own.places[0], own.bias[0], [a[0], b[0], a[1], b[1]]);
        store(own.places[1], own.bias[1], [a[2], b[2], a[3], b[3]]);
    }

    /// Adds the products of a step.
    ///
    /// # Safety
    /// Nobody writes the buffer at `FROM`.
    #[inline(always)]
    unsafe fn multiply<const FROM: u32>(&self, layer: &FusedLayer, step: &Step, sums: &mut Sums) {
        let rows = self.lane / OF_LANE * 8;
        // SAFETY: inputs are places in a buffer.
        let load = |place: u32| unsafe {
            self.gpu.shared_load::<f32, 2>(SharedPtr::from_offset(FROM + (place ^ rows)))
        };
        let [a, b, c, d] = step.inputs.map(load);
        let (first, second) = ([a[0], b[0], c[0], d[0]], [a[1], b[1], c[1], d[1]]);
        if layer.bounded != 0 {
            sums[0] = add_products::<G, true>(self.gpu, step.a, first, sums[0]);
            sums[1] = add_products::<G, true>(self.gpu, step.a, second, sums[1]);
        } else {
            sums[0] = add_products::<G, false>(self.gpu, step.a, first, sums[0]);
            sums[1] = add_products::<G, false>(self.gpu, step.a, second, sums[1]);
        }
    }
}
