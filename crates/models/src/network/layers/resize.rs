//! Maps of another size.
use super::only;
use crate::network::{Problem, Shape};

/// Bilinear interpolation to another size of maps, as TensorFlow has it. Beyond the outermost pixels' centres these are the nearest, and go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resize {
    /// Rows and columns of the result.
    pub size: [usize; 2],
    /// Where its pixels lie in the map.
    pub sampling: Sampling,
}

/// Where pixel i of m lies among n pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// At (i + ½)·n/m − ½: pixels are squares.
    HalfPixel,
    /// At i·(n − 1)/(m − 1): the outermost pixels stay where they are.
    AlignCorners,
    /// At i·n/m.
    Asymmetric,
}

impl Resize {
    /// To this size.
    pub fn bilinear(size: [usize; 2], sampling: Sampling) -> Self {
        Self { size, sampling }
    }

    pub(super) fn output(&self, inputs: &[Shape]) -> Result<Shape, Problem> {
        let input = only(inputs)?;
        let are_there = input.size.iter().chain(&self.size).all(|&extent| extent > 0);
        let got = || format!("{:?} of {input}", self.size);
        Problem::expect_size(are_there, "the size", "at least a pixel, of maps with some", got())?;
        Ok(Shape { size: self.size, ..input })
    }

    /// What pixel `at` of the result is made of in dimension `d`, for maps of so many pixels there: two neighbours with their factors, which add
    /// up to 1. The second has 0 where the first is all.
    pub(crate) fn neighbours(&self, d: usize, pixels: usize, at: usize) -> [(usize, f64); 2] {
        let (from, to, at) = (pixels as f64, self.size[d] as f64, at as f64);
        let position = match self.sampling {
            Sampling::HalfPixel => (at + 0.5) * from / to - 0.5,
            Sampling::AlignCorners if self.size[d] > 1 => at * (from - 1.0) / (to - 1.0),
            Sampling::AlignCorners | Sampling::Asymmetric => at * from / to,
        };
        let position = position.clamp(0.0, from - 1.0);
        let first = position.floor();
        let part = position - first;
        let second = if part > 0.0 { first + 1.0 } else { first };
        [(first as usize, 1.0 - part), (second as usize, part)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As TensorFlow's `tf.image.resize` and LiteRT have it.
    #[test]
    fn positions_are_tensorflows() {
        let of = |sampling, from, to| {
            let resize = Resize::bilinear([to, 1], sampling);
            let position = |at| {
                let [(first, a), (second, b)] = resize.neighbours(0, from, at);
                assert!(first < from && second < from && a + b == 1.0);
                first as f64 * a + second as f64 * b
            };
            (0..to).map(position).collect::<Vec<f64>>()
        };
        assert_eq!(of(Sampling::HalfPixel, 2, 4), [0.0, 0.25, 0.75, 1.0]);
        assert_eq!(of(Sampling::HalfPixel, 4, 2), [0.5, 2.5]);
        assert_eq!(of(Sampling::AlignCorners, 3, 5), [0.0, 0.5, 1.0, 1.5, 2.0]);
        assert_eq!(of(Sampling::AlignCorners, 3, 1), [0.0]);
        assert_eq!(of(Sampling::Asymmetric, 2, 4), [0.0, 0.5, 1.0, 1.0]);
    }

    #[test]
    fn sizes_without_pixels_are_refused() {
        let resize = |size, of| Resize::bilinear(size, Sampling::HalfPixel).output(&[of]);
        assert_eq!(resize([4, 5], Shape::maps(2, 3, [2, 2])), Ok(Shape::maps(2, 3, [4, 5])));
        assert!(matches!(resize([0, 5], Shape::maps(2, 3, [2, 2])), Err(Problem::Size { .. })));
        assert!(matches!(resize([4, 5], Shape::maps(2, 3, [0, 2])), Err(Problem::Size { .. })));
    }
}
