//! The accumulators of a warp, hidden while products of its warpgroup are being added to them.
//!
//! They stay here, and the thread has a [`poison`] in their place until a wait gives them back. It tells which array it stands for.
use lacuna_gpu::WARP;

use crate::execution::context::Context;
use crate::report::finding::FindingKind;
use crate::report::site::SiteId;
use crate::tensor::warpgroup::WarpgroupCall;

/// NaNs that no operation gives; the number of an array is added.
const POISON: u32 = 0x7fe5_a500;
/// Arrays to which products may be added at the same time.
const ARRAYS: u32 = 256;

/// What a thread sees in place of the sums of an array to which products are being added.
const fn poison(array: usize) -> f32 {
    f32::from_bits(POISON + array as u32)
}

/// The array that a number stands for.
fn array_of(sum: f32) -> Option<usize> {
    let number = sum.to_bits().wrapping_sub(POISON);
    (number < ARRAYS).then_some(number as usize)
}

#[derive(Debug, Default)]
pub(crate) struct Accumulators {
    arrays: Vec<Array>,
    /// The array to which the current product is added.
    current: usize,
    /// Whether lanes have begun to give the current product's sums; and whether these are of a new array.
    begun: bool,
    opens: bool,
    /// The array of each lane's last product: one lane may be at its next product before others have their sums hidden.
    of_lane: [usize; WARP as usize],
}

/// An array of sums.
#[derive(Debug, Default)]
struct Array {
    /// The warp's 16 rows, one after the other.
    sums: Vec<f32>,
    /// The group of the last product that was added to it.
    group: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum State {
    /// The threads have the sums.
    #[default]
    Free,
    /// Products have been added that the threads have not got yet.
    Hidden,
    /// A wait has retired the products; so many lanes have not got their sums yet.
    Over { left: u32 },
}

/// Row and column, among those of its warp, of a lane's sum `index`.
const fn position(lane: usize, index: usize) -> (usize, usize) {
    (lane / 4 + index / 2 % 2 * 8, index / 4 * 8 + lane % 4 * 2 + index % 2)
}

impl Accumulators {
    /// Takes the sums that a product is the first to be added to; others must be those that the products in flight hide.
    pub(crate) fn take(
        &mut self,
        context: &mut Context<'_>,
        (thread, site): (u32, SiteId),
        call: WarpgroupCall,
        sums: &[f32],
    ) {
        let Some(&first) = sums.first() else { return };
        let (lane, columns) = (thread as usize % 32, 2 * sums.len());
        let is_product = matches!(call, WarpgroupCall::Multiply(_));
        let array = sums.iter().find_map(|&sum| array_of(sum));
        let hidden =
            array.filter(|&array| self.arrays.get(array).is_some_and(|array| array.state == State::Hidden));
        let mut is_wrong = false;
        if let Some(array) = hidden {
            let is_poison = |sum: &f32| sum.to_bits() == first.to_bits();
            is_wrong = self.arrays[array].sums.len() != 16 * columns
                || !sums.iter().all(is_poison)
                || is_product && self.begun && array != self.current;
            if is_product && !self.begun {
                self.current = array;
            }
        } else if is_product && self.begun && !self.opens {
            is_wrong = true;
        } else if is_product {
            if !self.begun {
                self.opens = true;
                let free = self.arrays.iter().position(|array| array.state == State::Free);
                self.current = free.unwrap_or(self.arrays.len());
                if free.is_none() {
                    self.arrays.push(Array::default());
                }
            }
            let array = &mut self.arrays[self.current];
            array.sums.resize(16 * columns, 0.0);
            for (index, &sum) in sums.iter().enumerate() {
                let (row, column) = position(lane, index);
                array.sums[row * columns + column] = sum;
            }
        }
        if is_wrong {
            let detail = format!("{} with sums that are not those of the products in flight", call.name());
            context.report(FindingKind::SumsInFlight, site, thread, None, None, detail);
        }
        if is_product {
            self.begun = true;
            self.of_lane[lane] = self.current;
        }
    }

    /// A product of this group starts.
    pub(crate) fn start(&mut self, group: u32) {
        (self.begun, self.opens) = (false, false);
        let array = &mut self.arrays[self.current];
        (array.state, array.group) = (State::Hidden, group);
    }

    /// The sums to which the current product is added.
    pub(crate) fn sums(&mut self) -> &mut [f32] {
        &mut self.arrays[self.current].sums
    }

    /// What a thread sees in place of the sums of its last product.
    pub(crate) fn poison(&self, thread: u32) -> f32 {
        poison(self.of_lane[thread as usize % 32])
    }

    /// A wait ends that retires the groups below this one.
    pub(crate) fn wait(&mut self, retired: u32) {
        for array in &mut self.arrays {
            array.state = match array.state {
                State::Hidden if array.group < retired => State::Over { left: WARP },
                state => state,
            };
        }
    }

    /// Gives a thread its sums back, if the products that were added to them are over.
    pub(crate) fn give(&mut self, thread: u32, sums: &mut [f32]) {
        let (lane, columns) = (thread as usize % 32, 2 * sums.len());
        let Some(array) = sums.first().and_then(|&sum| self.arrays.get_mut(array_of(sum)?)) else { return };
        let State::Over { left } = array.state else { return };
        array.state = if left == 1 { State::Free } else { State::Over { left: left - 1 } };
        if array.sums.len() == 16 * columns {
            for (index, sum) in sums.iter_mut().enumerate() {
                let (row, column) = position(lane, index);
                *sum = array.sums[row * columns + column];
            }
        }
    }
}
