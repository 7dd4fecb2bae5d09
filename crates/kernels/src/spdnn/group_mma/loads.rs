//! Weights and features of steps on their way to registers.
use lacuna_gpu::{GlobalPtr, Gpu};

use super::{Group, Numbers, VECTOR, Work, first_row};
use crate::spdnn::exact::{NO_INPUT, OF_LANE, Steps};
use crate::spdnn::{LayerInput, TILE_ROWS};

/// A step on its way to registers.
pub(super) struct Data {
    pub(super) a: [u32; 4],
    pub(super) numbers: Numbers,
}

/// What is loaded next.
pub(super) struct Loads {
    tile: u32,
    step: u32,
    /// Steps of the layer.
    steps: u32,
    place: Steps,
    inputs: [u32; 4],
    /// The lane's four rows; of a tile that is not listed the first.
    rows: [GlobalPtr<f32>; VECTOR as usize],
}

impl<G: Gpu, X: LayerInput> Work<'_, G, X> {
    /// Begins with the loads of a group.
    ///
    /// # Safety
    /// The group is there.
    #[inline(always)]
    pub(super) unsafe fn loads(&self, group: &Group) -> Loads {
        let place = Steps::at(self.gpu, self.args.weights, self.args.inputs, group.step);
        // SAFETY: as promised by the caller.
        unsafe {
            let [steps] = self.gpu.load_readonly(self.args.starts.add(self.args.groups as usize));
            let inputs = place.inputs(self.gpu);
            Loads { tile: group.tile, step: group.step, steps, place, inputs, rows: self.rows(group.tile) }
        }
    }

    /// The lane's rows of a tile.
    ///
    /// # Safety
    /// The tile has rows.
    #[inline(always)]
    unsafe fn rows(&self, tile: u32) -> [GlobalPtr<f32>; VECTOR as usize] {
        let first = tile * TILE_ROWS + first_row(self.lane);
        let of = |row: u32| {
            let from = X::of_row(self.args.input, row, self.args.input_width);
            GlobalPtr::<f32>::from_address(from.address())
        };
        if X::BITS || self.args.rows.source.address() == 0 {
            return [of(first); VECTOR as usize];
        }
        let source = |row: u32| {
            let row = if row < self.rows { row } else { self.rows - 1 };
            // SAFETY: the row is one of those that there are.
            of(unsafe { self.args.rows.source(self.gpu, row) })
        };
        [source(first), source(first + 1), source(first + 2), source(first + 3)]
    }

    /// Loads a step, and goes on to the next, in the same tile or the next one. After the last tile the last comes again, which nobody
    /// uses.
    ///
    /// # Safety
    /// The step is there.
    #[inline(always)]
    pub(super) unsafe fn load(&self, at: &mut Loads) -> Data {
        // SAFETY: as promised by the caller.
        unsafe {
            let data = Data { a: at.place.weights(self.gpu), numbers: self.numbers(at) };
            at.step += 1;
            at.place.advance();
            if at.step == at.steps {
                at.step = 0;
                at.place = Steps::at(self.gpu, self.args.weights, self.args.inputs, 0);
                if at.tile + 1 < self.tiles {
                    at.tile += 1;
                    at.rows = self.rows(at.tile);
                }
            }
            at.inputs = at.place.inputs(self.gpu);
            data
        }
    }

    /// The features of a step. Of a tile of bits a lane has the words, as they are.
    ///
    /// # Safety
    /// The tile has rows; inputs are there.
    #[inline(always)]
    unsafe fn numbers(&self, at: &Loads) -> Numbers {
        let mut numbers = Numbers::default();
        // A step has its inputs first.
        let is_full = at.inputs[OF_LANE as usize - 1] != NO_INPUT;
        if is_full {
            for (numbers, &input) in numbers.iter_mut().zip(&at.inputs) {
                // SAFETY: as promised by the caller.
                unsafe { self.input(at, input, numbers) };
            }
        } else {
            for (numbers, &input) in numbers.iter_mut().zip(&at.inputs) {
                if input != NO_INPUT {
                    // SAFETY: as promised by the caller.
                    unsafe { self.input(at, input, numbers) };
                }
            }
        }
        numbers
    }

    /// The lane's rows of an input.
    ///
    /// # Safety
    /// The input is there; tiles that have rows have all their rows.
    #[inline(always)]
    unsafe fn input(&self, at: &Loads, input: u32, numbers: &mut [f32; VECTOR as usize]) {
        // SAFETY: as promised by the caller.
        unsafe {
            let load = |row: usize| {
                let [number] = self.gpu.load_readonly(at.rows[row].add_rows(input, X::INPUT_BYTES));
                number
            };
            if X::BITS {
                numbers[0] = load(0);
            } else if self.args.rows.source.address() == 0 {
                *numbers = self.gpu.load_readonly(at.rows[0].add_rows(input, X::INPUT_BYTES));
            } else {
                *numbers = [load(0), load(1), load(2), load(3)];
            }
        }
    }
}
