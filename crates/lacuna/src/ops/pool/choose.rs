//! Which kernel suits a pooling: a pure function of the problem shape.
use lacuna_kernels::pool::{Scheme, Tile};
use lacuna_kernels::{Entry, ValueType, entries};

use super::{MapLayout, OPERATION, Shape};
use crate::op;

/// The problem shape: all that the heuristic sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The sizes.
    pub shape: Shape,
    /// How maps lie.
    pub layout: MapLayout,
    /// Elements that addresses allow to load at once (1, 2, 4 or 8).
    pub vector: u32,
    /// Type of the values.
    pub value: ValueType,
    /// Streaming multiprocessors of the GPU.
    pub multiprocessors: u32,
    /// The GPU's compute capability, 90 for 9.0.
    pub sm: u32,
}

impl Problem {
    /// A pooling of `f32` in NCHW, on an H200.
    pub fn new(shape: Shape) -> Self {
        let (layout, value) = (MapLayout::Nchw, ValueType::F32);
        Self { shape, layout, vector: 8, value, multiprocessors: 132, sm: 90 }
    }
}

/// How a pooling is computed. `vector` is how many elements a thread loads at once: 16 bytes, or one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// The library chooses.
    #[default]
    Auto,
    /// A window as large as the map, in NCHW: a group of lanes has the plane of a channel.
    Planes {
        /// Pixels that a thread loads at once.
        vector: u32,
    },
    /// A window as large as the map, in NHWC: the warps of a block share the pixels.
    Channels {
        /// Channels that a thread loads at once.
        vector: u32,
    },
    /// Windows of 2 × 2 pixels two apart, or 3 × 3 pixels one or two apart: a thread has results one below another.
    Window {
        /// Channels that a thread loads at once.
        vector: u32,
    },
    /// Any windows: a result a thread.
    Any {
        /// Channels that a thread loads at once.
        vector: u32,
    },
}

/// A kernel, and what the heuristic thinks of it.
pub type Choice = op::Choice<Algorithm, Tile>;

/// How a kernel's work is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Threads with work, of an image.
    pub(super) threads: usize,
    /// Strips of rows of an image's results.
    pub(super) strips: usize,
    /// Lanes of a group, of windows as large as the map: 2 to the power of this.
    pub(super) lanes_log2: u32,
    /// Loads of a thread.
    loads: usize,
    /// Of them those that are under way at once.
    at_once: usize,
}

impl op::Problem for Problem {
    const OPERATION: &'static str = OPERATION;
    type Algorithm = Algorithm;
    type Tile = Tile;
    const ENTRIES: fn() -> &'static [Entry<Tile>] = entries::pool;

    fn algorithms(&self, entry: &'static Entry<Tile>) -> impl IntoIterator<Item = Algorithm> {
        let Tile { scheme, vector, value } = entry.tile;
        let Shape { channels, size, window, strides, .. } = self.shape;
        let is_last = self.layout == MapLayout::Nhwc;
        let are_whole = |elements: usize| elements.is_multiple_of(vector as usize);
        let (algorithm, is_legal) = match scheme {
            Scheme::Planes => {
                let is_legal = !is_last && self.shape.is_global() && are_whole(size[0] * size[1]);
                (Algorithm::Planes { vector }, is_legal)
            }
            Scheme::Channels => {
                let is_legal = is_last && self.shape.is_global() && are_whole(channels);
                (Algorithm::Channels { vector }, is_legal)
            }
            Scheme::Window { window: extent, stride, .. } => {
                let is_of = |numbers: [usize; 2], number: u32| numbers == [number as usize; 2];
                let is_legal = is_of(window, extent) && is_of(strides, stride);
                (Algorithm::Window { vector }, is_legal && (vector == 1 || is_last) && are_whole(channels))
            }
            Scheme::Any => (Algorithm::Any { vector }, (vector == 1 || is_last) && are_whole(channels)),
        };
        let is_able = value == self.value && vector <= self.vector && entry.runs_on(self.sm);
        (is_able && is_legal).then_some(algorithm)
    }

    /// Cycles: those of the loads that a thread waits for, one chunk after another; and the most of what instructions, requests to L1
    /// and bytes of memory take.
    fn cost(&self, entry: &'static Entry<Tile>, _algorithm: Algorithm) -> f64 {
        let Cut { threads, loads, at_once, .. } = self.cut(entry);
        let (vector, bytes) = (f64::from(entry.tile.vector), f64::from(self.value.bytes()));
        let warps = (self.shape.batch * threads) as f64 / 32.0;
        let warps = (warps / f64::from(self.multiprocessors)).max(1.0);
        let loads_of = loads as f64;
        let instructions = warps * (START + loads_of * (LOAD + JOIN * vector)) / SCHEDULERS;
        let lines = warps * loads_of * self.lines(entry.tile.scheme, vector * bytes);
        let elements = (self.shape.input_len() + self.shape.output_len()) as f64;
        let memory = elements * bytes / (f64::from(self.multiprocessors) * BYTES);
        loads.div_ceil(at_once) as f64 * LATENCY + instructions.max(lines).max(memory)
    }
}

impl Problem {
    /// How a kernel's work is cut.
    pub(super) fn cut(&self, entry: &Entry<Tile>) -> Cut {
        let Shape { batch, channels, size, window, .. } = self.shape;
        let [rows, columns] = self.shape.out_size();
        let vector = entry.tile.vector as usize;
        let vectors = channels.div_ceil(vector);
        let base = Cut { threads: 0, strips: rows, lanes_log2: 0, loads: 0, at_once: CHUNK };
        match entry.tile.scheme {
            Scheme::Planes => {
                // Two chunks of loads a lane.
                let of_plane = (size[0] * size[1]).div_ceil(vector);
                let lanes = of_plane.div_ceil(2 * CHUNK).next_power_of_two().min(BLOCK);
                let loads = of_plane.div_ceil(lanes);
                Cut { threads: channels * lanes, lanes_log2: lanes.ilog2(), loads, ..base }
            }
            Scheme::Channels => {
                // Fewer lanes where that makes more blocks, but whole sectors.
                let sector = (SECTOR / (vector * self.value.bytes() as usize)).max(1);
                let mut lanes = vectors.next_power_of_two().min(WARP);
                while lanes > sector && batch * vectors.div_ceil(lanes) < self.multiprocessors as usize {
                    lanes /= 2;
                }
                let loads = (size[0] * size[1]).div_ceil(BLOCK / lanes);
                let threads = vectors.div_ceil(lanes) * BLOCK;
                Cut { threads, lanes_log2: lanes.ilog2(), loads, ..base }
            }
            Scheme::Window { window, stride, rows: of_thread } => {
                let strips = rows.div_ceil(of_thread as usize);
                let loads = (((of_thread - 1) * stride + window) * window) as usize;
                Cut { threads: strips * columns * vectors, strips, loads, at_once: loads, ..base }
            }
            Scheme::Any => {
                let pixels = window[0].min(size[0]) * window[1].min(size[1]);
                Cut { threads: rows * columns * vectors, loads: pixels.next_multiple_of(CHUNK), ..base }
            }
        }
    }

    /// Lines of 128 bytes that a warp's load meets, of so many bytes a lane.
    fn lines(&self, scheme: Scheme, bytes: f64) -> f64 {
        let is_plane_apart = self.shape.out_size()[1] == 1;
        let apart = match (scheme, self.layout) {
            (Scheme::Planes | Scheme::Channels, _) | (_, MapLayout::Nhwc) => 1.0,
            _ if is_plane_apart => (self.shape.size[0] * self.shape.size[1]) as f64,
            _ => self.shape.strides[1] as f64,
        };
        (32.0 * apart * bytes / 128.0).clamp(1.0, 32.0)
    }
}

/// The kernels that can do this problem, the best first. Never empty: [`Algorithm::Any`] by single elements is always legal.
pub fn choose(problem: &Problem) -> Vec<Choice> {
    op::choose(problem)
}

/// Loads that kernels for windows of any size have under way at once.
const CHUNK: usize = 4;
/// Threads of a block of the kernels for windows as large as the map.
pub(super) const BLOCK: usize = 256;
/// Lanes of a warp.
const WARP: usize = 32;
/// Bytes that memory moves at least.
const SECTOR: usize = 32;

/// Instructions of a thread that are none of its loads.
const START: f64 = 100.0;
/// Of a load, and of joining one of its numbers.
const LOAD: f64 = 4.0;
const JOIN: f64 = 4.0;
/// Instructions of warps in a cycle of a multiprocessor.
const SCHEDULERS: f64 = 4.0;
/// Bytes of memory in a cycle of a multiprocessor: an H200's 4.8 TB/s at 1.8 GHz.
const BYTES: f64 = 20.0;
/// Cycles until a load from memory is there.
const LATENCY: f64 = 600.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn best(shape: Shape, layout: MapLayout) -> &'static str {
        choose(&Problem { layout, ..Problem::new(shape) })[0].entry.name
    }

    #[test]
    fn known_windows_have_kernels_of_their_own() {
        use MapLayout::{Nchw, Nhwc};
        let stem = Shape::new(64, [112, 112], [3, 3]).strides([2, 2]).padding([1, 1]).batch(16);
        assert_eq!(best(stem, Nchw), "pool_f32_window_3x3_s2_r4_v1");
        assert_eq!(best(stem, Nhwc), "pool_f32_window_3x3_s2_r1_v4");
        assert_eq!(best(Shape::new(64, [224, 224], [2, 2]), Nchw), "pool_f32_window_2x2_s2_r4_v1");
        let same = Shape::new(192, [28, 28], [3, 3]).strides([1, 1]).padding([1, 1]);
        assert_eq!(best(same, Nhwc), "pool_f32_window_3x3_s1_r2_v4");
        assert_eq!(best(Shape::new(191, [28, 28], [2, 2]), Nhwc), "pool_f32_window_2x2_s2_r4_v1");
        assert_eq!(best(same.strides([1, 2]), Nhwc), "pool_f32_any_v4");
        assert_eq!(best(Shape::new(192, [28, 28], [5, 5]), Nchw), "pool_f32_any_v1");
    }

    #[test]
    fn windows_as_large_as_the_map_have_many_threads() {
        use MapLayout::{Nchw, Nhwc};
        assert!(best(Shape::global(2048, [7, 7]), Nhwc).starts_with("pool_f32_channels"));
        for batch in [16, 64, 1024] {
            let shape = |size| Shape::global(2048, size).batch(batch);
            assert_eq!(best(shape([7, 7]), Nchw), "pool_f32_planes_v1");
            assert_eq!(best(shape([14, 14]), Nchw), "pool_f32_planes_v4");
            assert_eq!(best(shape([7, 7]), Nhwc), "pool_f32_channels_v4");
        }
    }

    #[test]
    fn groups_of_lanes_suit_the_plane_and_the_gpu() {
        let lanes = |shape, layout| {
            let problem = Problem { layout, ..Problem::new(shape) };
            1 << problem.cut(choose(&problem)[0].entry).lanes_log2
        };
        let nchw = [[1, 1], [7, 7], [14, 14], [56, 56], [111, 111]];
        let planes = nchw.map(|size| lanes(Shape::global(64, size).batch(64), MapLayout::Nchw));
        assert_eq!(planes, [1, 8, 8, 128, 256]);
        // Whole warps side by side, but for few blocks.
        let channels =
            [1, 8, 64].map(|batch| lanes(Shape::global(512, [7, 7]).batch(batch), MapLayout::Nhwc));
        assert_eq!(channels, [8, 4, 32]);
        assert_eq!(lanes(Shape::global(5, [7, 7]).batch(500), MapLayout::Nhwc), 8);
    }

    #[test]
    fn every_type_and_any_shape_have_a_kernel() {
        for value in [ValueType::F32, ValueType::F16, ValueType::Bf16] {
            for (layout, vector) in
                [(MapLayout::Nchw, 8), (MapLayout::Nchw, 1), (MapLayout::Nhwc, 8), (MapLayout::Nhwc, 1)]
            {
                for channels in [0, 1, 3, 8, 31] {
                    for (size, window) in
                        [([1, 1], [1, 1]), ([9, 7], [3, 3]), ([5, 8], [5, 8]), ([2, 2], [3, 1])]
                    {
                        let shape = Shape::new(channels, size, window);
                        let problem = Problem { value, layout, vector, sm: 70, ..Problem::new(shape) };
                        for choice in choose(&problem) {
                            assert_eq!(op::find(&problem, choice.algorithm), Some(choice));
                            assert!(choice.cost.is_finite());
                        }
                        assert!(!choose(&problem).is_empty());
                    }
                }
            }
        }
    }
}
