//! Plans: what is worked out once for a shape.
use std::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::pool::{ChannelPoolArgs, PlanePoolArgs, Scheme, Tile, WindowPoolArgs};
use lacuna_kernels::{Entry, Map};

use super::choose::{BLOCK, Cut};
use super::{Choice, MapLayout, Mode, OPERATION, Options, Problem, Shape};
use crate::op::{
    Layout, MAX_GRID_X, Selection, launch, planes, spans, strides, tells_choice, tunes_selection, widest,
    with_planes,
};
use crate::tune::{Tunable, drawn};
use crate::{Buffer, Device, Result, Slice, SliceMut, Stream, Value};

/// The most threads with work in a launch: kernels count them in 32 bits.
const MAX_THREADS: usize = i32::MAX as usize;

/// Pooling of feature maps: the greatest pixel of each window, or the mean of its pixels.
///
/// Maps are NCHW or NHWC, of any size; windows, strides and padding are any, but for padding of more than half a window, which is refused.
/// A window as large as the map ([`Shape::global`]) has kernels of its own. Values are `f32`, `f16` or `bf16`; they are joined in `f32` and
/// rounded once. A maximum is exact, and NaN where one of its pixels is NaN. Sums are in an order that the plan determines: the same
/// operands give the same bits in every run. What is not finite flows as IEEE 754 says, and only into the windows that it is in.
///
/// ```
/// use lacuna::pool::{Operands, Options, Shape};
/// use lacuna::{Device, Pool};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let stream = device.stream()?;
/// let shape = Shape::new(1, [2, 4], [2, 2]);
/// let plan = Pool::plan(&device, shape, Options::default())?;
/// let x = device.upload(&[1.0_f32, 2.0, 5.0, 4.0, /* row 1: */ 3.0, -1.0, 0.0, 6.0])?;
/// let mut out = device.zeros::<f32>(shape.output_len())?;
/// plan.run(&stream, Operands { input: x.as_slice(), out: out.as_slice_mut() })?;
/// assert_eq!(out.download(&stream)?, [3.0, 6.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Pool<T: Value = f32> {
    device: Device,
    shape: Shape,
    options: Options,
    /// How the input lies, where there are gaps between channels.
    planes: Option<Layout>,
    selection: Selection<Problem>,
    values: PhantomData<T>,
}

/// What a run works on.
#[derive(Debug)]
pub struct Operands<'o, T: Value = f32> {
    /// x: [`Pool::input_len`] elements.
    pub input: Slice<'o, T>,
    /// The result: [`Shape::output_len`] elements, which lie as x does.
    pub out: SliceMut<'o, T>,
}

impl<T: Value> Pool<T> {
    /// A plan for a shape.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) for maps, windows or strides of 0, padding of more than half a window, and channels that overlap or have strides in NHWC; [`Error::TooLarge`](crate::Error::TooLarge) for images of
    /// 2 GiB, and other sizes that 32 bits cannot count; [`Error::Illegal`](crate::Error::Illegal) for an algorithm that cannot do the shape in this layout.
    pub fn plan(device: &Device, shape: Shape, options: Options) -> Result<Self> {
        shape.check(size_of::<T>())?;
        let sizes = [shape.channels, shape.size[0] * shape.size[1]];
        let of = |stride| strides!(OPERATION, "the input", "H·W", Some(stride), shape.batch, None);
        let planes = options
            .input_channel_stride
            .map(|stride| planes(options.layout, sizes, T::TYPE.bytes(), of(stride)));
        let planes = planes.transpose()?;
        let info = device.info();
        let problem_at = |vector| Problem {
            shape,
            layout: options.layout,
            vector: widest(|allowed| allowed <= vector && planes.is_none_or(|planes| planes.allows(allowed))),
            value: T::TYPE,
            multiprocessors: info.multiprocessors,
            sm: info.sm,
        };
        let selection = Selection::new(options.algorithm, T::TYPE.bytes(), problem_at)
            .expect_some(|| format!("{} values, {shape:?}, {:?}", T::TYPE, options.layout))?;
        Ok(Self { device: device.clone(), shape, options, planes, selection, values: PhantomData })
    }

    /// Elements that the input must have, up to the last of the last image. The gap after it may be there too.
    pub fn input_len(&self) -> usize {
        self.planes.map_or_else(|| self.shape.input_len(), |planes| planes.len())
    }

    /// The sizes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Gives the work to the stream, and returns at once. It can be recorded in a graph.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length) and [`Error::OtherDevice`](crate::Error::OtherDevice) for operands that do not fit; [`Error::Illegal`](crate::Error::Illegal) where the algorithm asked for needs
    /// other alignment; [`Error::Launch`](crate::Error::Launch) or, on the simulator, its findings.
    pub fn run(&self, stream: &Stream, operands: Operands<'_, T>) -> Result<()> {
        let Operands { input, out } = operands;
        let (device, shape) = (&self.device, &self.shape);
        device.expect_same(OPERATION, "the stream", stream.device())?;
        let of_maps = |[rows, columns]: [usize; 2]| {
            let Shape { batch, channels, .. } = *shape;
            move || format!("{batch} maps of {channels}×{rows}×{columns}")
        };
        match self.planes {
            Some(planes) => planes.check("the input", device, input)?,
            None => device.expect_operand(
                OPERATION,
                "the input",
                input,
                of_maps(shape.size),
                shape.input_len(),
            )?,
        }
        let of_out = of_maps(shape.out_size());
        device.expect_operand(OPERATION, "the result", out.as_slice(), of_out, shape.output_len())?;
        if shape.output_len() == 0 {
            return Ok(());
        }
        let entry = self.selection.at(input.address() | out.address(), "the maps are")?.entry;
        let (input, out) = (input.pointer(), out.pointer());
        match entry.tile.scheme {
            Scheme::Planes => self.launch_planes(stream, entry, input, out),
            Scheme::Channels => self.launch_channels(stream, entry, input, out),
            Scheme::Window { .. } | Scheme::Any => {
                let map = |size| self.options.layout.map(shape.channels, size, size_of::<T>());
                let from = with_planes(map(shape.size), self.planes);
                self.launch_windows(stream, entry, input, out, [from, map(shape.out_size())])
            }
        }
    }

    /// As [`run`](Self::run), of maps that may have gaps: `maps` says how input and result lie, in the plan's layout. The algorithm must be
    /// one for windows, by single elements; there must be results, and nobody checks the operands again.
    pub(crate) fn run_views(
        &self,
        stream: &Stream,
        input: GlobalPtr<T::Device>,
        out: GlobalMut<T::Device>,
        maps: [Map; 2],
    ) -> Result<()> {
        self.launch_windows(stream, self.selection.best().entry, input, out, maps)
    }

    fn launch_windows(
        &self,
        stream: &Stream,
        entry: &Entry<Tile>,
        input: GlobalPtr<T::Device>,
        out: GlobalMut<T::Device>,
        [map, out_map]: [Map; 2],
    ) -> Result<()> {
        let (shape, layout) = (&self.shape, self.options.layout);
        let u32s = |numbers: [usize; 2]| numbers.map(|number| number as u32);
        let images = |map: &Map, count: usize| count as u64 * u64::from(map.image_bytes);
        let Cut { threads, strips, .. } = self.selection.problem().cut(entry);
        for span in spans(shape.batch, (MAX_THREADS / threads).max(1)) {
            let count = span.len() * threads;
            let args = WindowPoolArgs::<T::Device> {
                input: input.add_bytes(images(&map, span.start)),
                out: out.add_bytes(images(&out_map, span.start)),
                map,
                out_map,
                window: u32s(shape.window),
                strides: u32s(shape.strides),
                padding: u32s(shape.padding),
                mode: self.options.mode.to_device(shape),
                channels_last: u32::from(layout == MapLayout::Nhwc),
                count: count as u32,
                strips: strips as u32,
            };
            launch(stream, entry, [count.div_ceil(entry.threads as usize) as u32, 1, 1], &args)?;
        }
        Ok(())
    }

    fn launch_planes(
        &self,
        stream: &Stream,
        entry: &Entry<Tile>,
        input: GlobalPtr<T::Device>,
        out: GlobalMut<T::Device>,
    ) -> Result<()> {
        let pixels = self.shape.size[0] * self.shape.size[1];
        let stride = self.planes.map_or(pixels, |planes| planes.stride);
        let lanes_log2 = self.selection.problem().cut(entry).lanes_log2;
        for span in spans(self.shape.batch * self.shape.channels, MAX_THREADS >> lanes_log2) {
            let args = PlanePoolArgs::<T::Device> {
                input: input.add(span.start * stride),
                out: out.add(span.start),
                planes: span.len() as u32,
                plane_bytes: (stride * size_of::<T>()) as u32,
                pixels: pixels as u32,
                lanes_log2,
                mode: self.options.mode.to_device(&self.shape),
            };
            let grid = [(span.len() << lanes_log2).div_ceil(BLOCK) as u32, 1, 1];
            launch(stream, entry, grid, &args)?;
        }
        Ok(())
    }

    fn launch_channels(
        &self,
        stream: &Stream,
        entry: &Entry<Tile>,
        input: GlobalPtr<T::Device>,
        out: GlobalMut<T::Device>,
    ) -> Result<()> {
        let Shape { batch, channels, size, .. } = self.shape;
        let (pixels, bytes) = (size[0] * size[1], channels * size_of::<T>());
        let Cut { threads, lanes_log2, .. } = self.selection.problem().cut(entry);
        let parts = threads / BLOCK;
        for span in spans(batch, MAX_GRID_X / parts) {
            let args = ChannelPoolArgs::<T::Device> {
                input: input.add(span.start * pixels * channels),
                out: out.add(span.start * channels),
                channels: channels as u32,
                pixels: pixels as u32,
                pixel_bytes: bytes as u32,
                image_bytes: (pixels * bytes) as u32,
                lanes_log2,
                parts: parts as u32,
                mode: self.options.mode.to_device(&self.shape),
            };
            launch(stream, entry, [(span.len() * parts) as u32, 1, 1], &args)?;
        }
        Ok(())
    }
}

tells_choice!(Pool<T: Value>);

impl<T: Value> Tunable for Pool<T> {
    type Subject = ();
    /// x and the result.
    type Scratch = (Buffer<T>, Buffer<T>);
    const NAME: &'static str = "pool";

    fn device(&self) -> &Device {
        &self.device
    }
    fn describe(&self, _nothing: &()) -> Option<String> {
        if !self.selection.is_auto() || self.shape.output_len() == 0 {
            return None;
        }
        let Shape { batch, channels, size, window, strides, padding } = self.shape;
        let mode = if self.options.mode == Mode::Max { "max" } else { "average" };
        let layout = self.options.layout;
        let apart = self.planes.map_or_else(String::new, |planes| format!(", {} apart", planes.stride));
        Some(format!(
            "{} {layout:?} {mode} {batch}×{channels}, {size:?}, {window:?}, {strides:?}, {padding:?}{apart}",
            T::TYPE
        ))
    }
    tunes_selection!();
    fn with_candidate(&self, _nothing: &(), name: &str) -> Result<Self> {
        let algorithm = self.selection.algorithm_of(name);
        Self::plan(&self.device, self.shape, Options { algorithm, ..self.options })
    }
    fn scratch(&self, _nothing: &()) -> Result<Self::Scratch> {
        let [input, out] = [self.input_len(), self.shape.output_len()];
        Ok((drawn(&self.device, input)?, self.device.zeros(out)?))
    }
    fn run_on(&self, stream: &Stream, _nothing: &(), (input, out): &mut Self::Scratch) -> Result<()> {
        self.run(stream, Operands { input: input.as_slice(), out: out.as_slice_mut() })
    }
}
