//! Poolings.
use lacuna::pool;

use super::only;
use crate::network::{Problem, Shape};

/// The greatest pixel or the mean of each window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// What is made of a window.
    pub mode: pool::Mode,
    /// Its windows.
    pub window: Window,
}

/// Windows of a pooling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// One, the map.
    Global,
    /// Several.
    Sliding {
        /// Rows and columns of a window.
        size: [usize; 2],
        /// Rows and columns from one window to the next.
        strides: [usize; 2],
        /// Rows above and below, and columns on both sides: at most half of a window.
        padding: [usize; 2],
    },
}

impl Pool {
    /// The greatest pixel of windows without padding.
    pub fn max(size: [usize; 2], strides: [usize; 2]) -> Self {
        let window = Window::Sliding { size, strides, padding: [0, 0] };
        Self { mode: pool::Mode::Max, window }
    }

    /// The mean of windows, the padding counted as PyTorch does, if there is some.
    pub fn average(size: [usize; 2], strides: [usize; 2]) -> Self {
        Self { mode: pool::Mode::AverageIncludePadding, ..Self::max(size, strides) }
    }

    /// The mean of whole maps.
    pub fn global_average() -> Self {
        Self { mode: pool::Mode::AverageIncludePadding, window: Window::Global }
    }

    /// With padding; whole maps have none.
    #[must_use]
    pub fn padding(self, padding: [usize; 2]) -> Self {
        let window = match self.window {
            Window::Sliding { size, strides, .. } => Window::Sliding { size, strides, padding },
            Window::Global => Window::Global,
        };
        Self { window, ..self }
    }

    /// As the library has it.
    pub fn shape(&self, input: Shape) -> pool::Shape {
        let Shape { images, channels, size: map } = input;
        let shape = match self.window {
            Window::Global => pool::Shape::global(channels, map),
            Window::Sliding { size, strides, padding } => {
                pool::Shape::new(channels, map, size).strides(strides).padding(padding)
            }
        };
        shape.batch(images)
    }

    pub(super) fn output(&self, inputs: &[Shape]) -> Result<Shape, Problem> {
        let input = only(inputs)?;
        let shape = self.shape(input);
        for (what, numbers) in [("the window", shape.window), ("strides", shape.strides)] {
            let are_there = numbers.iter().all(|&number| number > 0);
            Problem::expect_size(are_there, what, "at least 1", format!("{numbers:?}"))?;
        }
        let is_half = [0, 1].iter().all(|&d| shape.padding[d] <= shape.window[d] / 2);
        let expected = "at most half of the window";
        Problem::expect_size(is_half, "the padding", expected, format!("{:?}", shape.padding))?;
        let size = shape.out_size();
        let fits = size[0] > 0 && size[1] > 0;
        let got = || format!("{:?} on {input}", shape.window);
        Problem::expect_size(fits, "the window", "one within the padded map", got())?;
        Ok(Shape::maps(input.images, input.channels, size))
    }
}
