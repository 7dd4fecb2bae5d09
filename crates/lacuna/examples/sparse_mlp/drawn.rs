//! Drawn images that can be told apart: a stand-in for MNIST.
use std::f32::consts::TAU;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt as _, SeedableRng as _};

use crate::images::{CLASSES, Images};

/// Strokes of an image.
const STROKES: usize = 3;
/// The form of the classes is the same, whatever images are drawn.
const CLASS_SEED: u64 = 7;
/// Half of a stroke's width, of an image of side 1.
const WIDTH: f32 = 0.05;
/// How far an image is moved, in each direction.
const SHIFT: f32 = 0.08;

/// A line from here to there, in an image of side 1.
type Stroke = [[f32; 2]; 2];

/// So many images of `side` × `side` pixels. Each class is three strokes, and an image has them moved, turned a little, and
/// with noise.
pub(crate) fn images(side: usize, count: usize, seed: u64) -> Images {
    let classes = classes();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut pixels = Vec::with_capacity(count * side * side);
    let mut labels = Vec::with_capacity(count);
    for _ in 0..count {
        let label = random.random_range(0..CLASSES);
        let shift = [random.random_range(-SHIFT..SHIFT), random.random_range(-SHIFT..SHIFT)];
        let (sin, cos) = (TAU * random.random_range(-0.03..0.03_f32)).sin_cos();
        let moved = classes[label].map(|stroke| {
            stroke.map(|[x, y]| {
                let [x, y] = [x - 0.5, y - 0.5];
                [0.5 + cos * x - sin * y + shift[0], 0.5 + sin * x + cos * y + shift[1]]
            })
        });
        for pixel in 0..side * side {
            let at = [pixel % side, pixel / side].map(|at| (at as f32 + 0.5) / side as f32);
            let distance = moved.iter().map(|stroke| distance(at, stroke)).fold(f32::INFINITY, f32::min);
            let ink = (1.0 - (distance / WIDTH - 1.0)).clamp(0.0, 1.0);
            pixels.push((255.0 * ink * random.random_range(0.7..1.0_f32)) as u8);
        }
        labels.push(label as u8);
    }
    Images { inputs: side * side, pixels, labels }
}

/// The strokes of each class, between points of the middle part of an image.
fn classes() -> [[Stroke; STROKES]; CLASSES] {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(CLASS_SEED);
    let mut coordinate = move || random.random_range(0.2..0.8_f32);
    std::array::from_fn(|_| std::array::from_fn(|_| [(); 2].map(|()| [coordinate(), coordinate()])))
}

/// How far a point is from a stroke.
fn distance([x, y]: [f32; 2], [[ax, ay], [bx, by]]: &Stroke) -> f32 {
    let (dx, dy) = (bx - ax, by - ay);
    let along =
        (((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy).max(f32::MIN_POSITIVE)).clamp(0.0, 1.0);
    (x - ax - along * dx).hypot(y - ay - along * dy)
}
