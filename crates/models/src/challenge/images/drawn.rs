//! Images that are drawn from a seed, for where there is no MNIST.

use super::MAX_SIDE;
use super::interpolate::join;
use crate::challenge::ChallengeError;
use lacuna_matrix::Pattern;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use rayon::prelude::*;

/// Images made by one task.
const TASK: usize = 64;

/// Points of a stroke at which the pen is put down: close enough that they make a line.
const POINTS: usize = 24;

/// Draws `images` images of `side` × `side` pixels: `images` × `side`² elements, pixel (x, y) at column x · side + y.
///
/// They are *not* the challenge's: an image has one to four curved strokes of one pen, at random. Like its digits they are
/// connected, in the middle, the same picture at any side, 10.5 % ones (the challenge's: 10.4 %), some much more and some
/// much less. So a network of the challenge leaves a few images of many, as fast: of 60,000, seed 1, 1,024 neurons and
/// 120 layers leave 3.4 % (the challenge's: 3.0 %), and 5.6 % are active on average (4.9 %). The same arguments give the same images on every
/// platform, and the first images are the same however many there are.
///
/// # Errors
/// If `side` is not of 4 to 256, or if there are more ones, or images, than fit `u32`.
pub fn drawn(images: usize, side: usize, seed: u64) -> Result<Pattern, ChallengeError> {
    if !(4..=MAX_SIDE).contains(&side) {
        return Err(ChallengeError::Side { expected: "4 to 256", got: side });
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let seeds: Vec<u64> = (0..images).map(|_| random.next_u64()).collect();
    let part = |seeds: &[u64]| {
        let (mut lengths, mut indices) = (Vec::new(), Vec::new());
        let mut paper = Paper::new(side);
        for &seed in seeds {
            let before = indices.len();
            paper.draw(&mut Random(Xoshiro256PlusPlus::seed_from_u64(seed)));
            indices.extend(paper.take_ones());
            lengths.push((indices.len() - before) as u32);
        }
        (lengths, indices)
    };
    join(seeds.par_chunks(TASK).map(part).collect(), images, side * side)
}

/// Reals made of the generator's bits in a way that no other crate can change.
struct Random(Xoshiro256PlusPlus);

impl Random {
    /// A real in [low, high).
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.0.next_u64() >> 11) as f64 * 2f64.powi(-53))
    }

    /// A point in the middle of the paper, whose sides are 1.
    fn point(&mut self) -> (f64, f64) {
        (self.between(0.2, 0.8), self.between(0.08, 0.92))
    }
}

/// One image, a column of pixels after another.
struct Paper {
    side: usize,
    ink: Vec<bool>,
}

impl Paper {
    fn new(side: usize) -> Self {
        Self { side, ink: vec![false; side * side] }
    }

    fn draw(&mut self, random: &mut Random) {
        let strokes = random.between(1.5, 4.2) as usize;
        let pen = random.between(0.038, 0.062);
        let mut start = random.point();
        for _ in 0..strokes {
            // A quadratic Bézier curve. The next one starts where it ends.
            let (bend, end) = (random.point(), random.point());
            for point in 0..=POINTS {
                let t = point as f64 / POINTS as f64;
                let along = |a: f64, b: f64, c: f64| (1.0 - t) * ((1.0 - t) * a + 2.0 * t * b) + t * t * c;
                self.dot(along(start.0, bend.0, end.0), along(start.1, bend.1, end.1), pen);
            }
            start = end;
        }
    }

    /// Inks the pixels whose middle is within `pen` of a point. Square roots are exact to the last bit everywhere.
    fn dot(&mut self, x: f64, y: f64, pen: f64) {
        let side = self.side as f64;
        let pixels = |from: f64, to: f64| {
            let first = (from * side - 0.5).ceil().max(0.0);
            let end = (to * side - 0.5).floor().min(side - 1.0) + 1.0;
            first as usize..end.max(0.0) as usize
        };
        for column in pixels(x - pen, x + pen) {
            let off = (column as f64 + 0.5) / side - x;
            let reach = (pen * pen - off * off).max(0.0).sqrt();
            for row in pixels(y - reach, y + reach) {
                self.ink[column * self.side + row] = true;
            }
        }
    }

    /// The inked pixels, ascending; the paper is blank again when they are taken.
    fn take_ones(&mut self) -> impl Iterator<Item = u32> {
        self.ink.iter_mut().zip(0..).filter_map(|(ink, pixel)| std::mem::take(ink).then_some(pixel))
    }
}
