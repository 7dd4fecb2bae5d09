//! Plans: what is worked out once for a shape.
use std::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::conv::{
    DirectConvArgs, MMA_SIDE, MmaConvArgs, ReduceSplits, ReduceSplitsArgs, Scheme, Source, SparseConvArgs,
    Target,
};
use lacuna_kernels::{Map, entries};

use super::choose::{Cut, MMA_CHANNELS};
use super::filters::Packing;
use super::model::CostModel;
use super::planes::planes_of;
use super::{Choice, Filters, MapLayout, OPERATION, Operands, Options, Problem, Shape};
use crate::backend::BackendConv;
use crate::op::{
    Layout, MAX_GRID_X, MAX_GRID_YZ, Selection, launch, launch_kernel, tells_choice, widest, with_planes,
};
use crate::{Buffer, Device, Error, Result, Slice, Stream, Value};

/// Threads of the kernels that pack filters, add splits, and finish what cuDNN did.
pub(super) const THREADS: usize = 256;

/// out = act(conv(x, w) + bias + residual) of feature maps, of which zeros are left out: for maps after a ReLU.
///
/// Maps are NCHW or NHWC, of any size; filters of any shape. Values are `f32`, `f16` or `bf16`, and sums are `f32`,
/// in an order that depends on the plan alone: the same operands give the same bits in every run. Zeros of x take no part: a NaN or an
/// infinity of a filter shows where a nonzero meets it. Everything else flows as IEEE 754 says. The source is the paper on cuSNN (PACT 2022).
///
/// [`Algorithm::CuDnn`](super::Algorithm::CuDnn) leaves the sums to cuDNN: zeros of x hide nothing then.
///
/// A plan has memory of its own for partial sums ([`workspace_bytes`](Self::workspace_bytes)): runs of one plan belong on one stream at a time.
///
/// ```
/// use lacuna::conv::{Operands, Options, Shape};
/// use lacuna::{Conv, Device};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let stream = device.stream()?;
/// let shape = Shape::new(1, [3, 3], 1, [3, 3]).padding([1, 1]);
/// let plan = Conv::plan(&device, shape, Options::default().relu())?;
/// let filters = plan.pack(&stream, device.upload(&[0.0_f32, 1.0, 0.0, 1.0, -4.0, 1.0, 0.0, 1.0, 0.0])?.as_slice())?;
/// let x = device.upload(&[0.0_f32, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0])?;
/// let mut out = device.zeros::<f32>(shape.output_len())?;
/// plan.run(&stream, Operands::new(x.as_slice(), &filters, out.as_slice_mut()))?;
/// assert_eq!(out.download(&stream)?, [0.0, 2.0, 0.0, 2.0, 0.0, 2.0, 0.0, 2.0, 0.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Conv<T: Value = f32> {
    pub(super) device: Device,
    pub(super) shape: Shape,
    options: Options,
    /// How input and result lie, where there are gaps between channels.
    planes: Option<[Layout; 2]>,
    selection: Selection<Problem>,
    cut: Cut,
    pub(super) packing: Packing,
    /// Elements of the partial sums of a split.
    elements: usize,
    /// cuDNN's part, where it was asked for. Dropped before its workspace, after its work.
    cudnn: Option<Box<dyn BackendConv>>,
    /// Partial sums, or cuDNN's.
    workspace: Buffer<f32>,
    values: PhantomData<T>,
}

impl<T: Value> Conv<T> {
    /// A plan for a shape.
    ///
    /// # Errors
    /// [`Error::Parameter`] for taps or strides of 0, 0 splits, a clamp's limits out of order, a part of zeros outside of 0 to 1, and channels that overlap or have strides in NHWC; [`Error::TooLarge`] for images of 2 GiB, and other sizes
    /// that 32 bits cannot count; [`Error::Illegal`] for an algorithm that cannot do the shape, and for values that no kernel takes;
    /// what the device says where there is no room for partial sums. With [`Algorithm::CuDnn`](super::Algorithm::CuDnn): [`Error::NoLibrary`] where there is no
    /// cuDNN, [`Error::Unsupported`] on the simulator, [`Error::Library`] where it fails.
    pub fn plan(device: &Device, shape: Shape, options: Options) -> Result<Self> {
        shape.check(size_of::<T>())?;
        options.activation.check(OPERATION)?;
        let is_part = (0.0..=1.0).contains(&options.zeros);
        Error::expect(is_part, OPERATION, "the part of zeros", || "0 to 1", options.zeros)?;
        let splits = options.splits.unwrap_or(1);
        Error::expect(splits > 0, OPERATION, "the number of splits", || "at least 1", splits)?;
        let planes = planes_of(&shape, &options, T::TYPE.bytes())?;
        let info = device.info();
        let problem_at = |vector| Problem {
            shape,
            zeros: options.zeros,
            precision: options.precision,
            splits: options.splits,
            layout: options.layout,
            has_gaps: planes.is_some(),
            vector: widest(|allowed| {
                allowed <= vector && planes.iter().flatten().all(|planes| planes.allows(allowed))
            }),
            value: T::TYPE,
            multiprocessors: info.multiprocessors,
            block_shared_bytes: info.block_shared_bytes,
            sm: info.sm,
        };
        let selection = Selection::new(options.algorithm, T::TYPE.bytes(), problem_at)
            .expect_some(|| format!("{} values, {shape:?} and channels that lie so", T::TYPE))?;
        let entry = selection.best().entry;
        let cut = selection.problem().cut(CostModel::hopper(), entry);
        let (packing, of_tile) = match entry.tile.scheme {
            Scheme::SparseTile { tile, filters, .. } => {
                (Packing::Lanes(filters), tile[0] * tile[1] * 32 * filters)
            }
            Scheme::MmaTile { filters, .. }
            | Scheme::WgmmaTile { filters, .. }
            | Scheme::WgmmaPointwise { filters, .. } => {
                (Packing::Mma(filters / 8), MMA_SIDE * MMA_SIDE * filters)
            }
            Scheme::WgmmaPanels { pixels, filters } => (Packing::Panels(filters / 8), pixels * filters),
            Scheme::PointwiseTile { pixels, filters, .. } => {
                (Packing::Pointwise(filters / 8), pixels * filters)
            }
            Scheme::FewChannelsMma { filters, .. } => (Packing::FewChannels(filters / 8), 0),
            Scheme::Finish if !shape.is_depthwise() && options.layout == MapLayout::Nhwc => {
                (Packing::ChannelsLast, 0)
            }
            Scheme::Finish => (Packing::AsGiven, 0),
            // Kernels of any alignment read the same.
            _ if shape.is_depthwise() && options.layout == MapLayout::Nchw => (Packing::AsGiven, 0),
            _ => (Packing::Lanes(1), 0),
        };
        Error::expect_at_most("the groups of filters", MAX_GRID_YZ, cut.groups)?;
        Error::expect_at_most("the tiles of all images", MAX_GRID_X, cut.images * cut.tiles)?;
        let elements = cut.images * cut.tiles * cut.groups * of_tile as usize;
        let is_cudnn = entry.tile.scheme == Scheme::Finish;
        let cudnn = is_cudnn.then(|| device.backend().conv(selection.problem())).transpose()?;
        let partial = if cut.splits > 1 { cut.splits * elements } else { 0 };
        let of_cudnn = cudnn.as_ref().map(|conv| conv.workspace_bytes().div_ceil(size_of::<f32>()));
        let workspace = device.uninitialized(of_cudnn.unwrap_or(partial))?;
        let device = device.clone();
        let values = PhantomData;
        Ok(Self {
            device,
            shape,
            options,
            planes,
            selection,
            cut,
            packing,
            elements,
            cudnn,
            workspace,
            values,
        })
    }

    /// Elements that the input must have, up to the last of the last image. The gap after it may be there too.
    pub fn input_len(&self) -> usize {
        self.planes.map_or_else(|| self.shape.input_len(), |[input, _]| input.len())
    }

    /// The same of the result.
    pub fn output_len(&self) -> usize {
        self.planes.map_or_else(|| self.shape.output_len(), |[_, out]| out.len())
    }

    /// The sizes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Over how many blocks the channels of a tile are split, or its channels and taps.
    pub fn splits(&self) -> usize {
        self.cut.splits
    }

    /// Bytes of the plan's own memory on the device.
    pub fn workspace_bytes(&self) -> usize {
        self.workspace.len() * size_of::<f32>()
    }

    /// The algorithm that cuDNN's heuristic chose, by a short name as `implicit_gemm`; nothing unless [`Algorithm::CuDnn`](super::Algorithm::CuDnn) was asked for.
    pub fn cudnn_algorithm(&self) -> Option<&'static str> {
        Some(self.cudnn.as_ref()?.algorithm())
    }

    /// Gives the work to the stream, and returns at once. It can be recorded in a graph.
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::OtherDevice`] for operands that do not fit; [`Error::Parameter`] for filters that were packed for another shape or kernel;
    /// [`Error::Illegal`] for maps that are not aligned as an algorithm that was asked for needs them; [`Error::Launch`] or, on the simulator, its findings; [`Error::Library`].
    pub fn run(&self, stream: &Stream, operands: Operands<'_, T>) -> Result<()> {
        let Operands { input, filters, bias, residual, out, nonzeros } = operands;
        let (device, shape) = (&self.device, &self.shape);
        device.expect_same(OPERATION, "the stream", stream.device())?;
        let of_maps = |channels, [rows, columns]: [usize; 2]| {
            let batch = shape.batch;
            move || format!("{batch} maps of {channels}×{rows}×{columns}")
        };
        let (of_input, of_out) =
            (of_maps(shape.channels, shape.size), of_maps(shape.filters, shape.out_size()));
        let [of_planes, of_out_planes] = self.planes.map_or([None; 2], |planes| planes.map(Some));
        let expect = |what, operand, planes: Option<Layout>, shape: &dyn Fn() -> String, len| match planes {
            Some(planes) => planes.check(what, device, operand),
            None => device.expect_operand(OPERATION, what, operand, shape, len),
        };
        expect("the input", input, of_planes, &of_input, shape.input_len())?;
        expect("the result", out.as_slice(), of_out_planes, &of_out, shape.output_len())?;
        device.expect_same(OPERATION, "the filters", filters.values.device())?;
        let sizes = [shape.filters, shape.filter_channels(), shape.taps[0] * shape.taps[1]];
        let expected = || format!("{sizes:?}, {:?}", self.packing);
        let got = format_args!("{:?}, {:?}", filters.sizes, filters.packing);
        let are_same = (filters.sizes, filters.packing) == (sizes, self.packing);
        Error::expect(
            are_same,
            OPERATION,
            "filters, channels and taps of the packed filters",
            expected,
            got,
        )?;
        if let Some(bias) = &bias {
            device.expect_operand(OPERATION, "the bias", *bias, || "one a filter".into(), shape.filters)?;
        }
        if let Some(residual) = &residual {
            expect("the residual", *residual, of_out_planes, &of_out, shape.output_len())?;
        }
        if let Some(nonzeros) = &nonzeros {
            device.expect_operand(OPERATION, "the counter", nonzeros.as_slice(), || "1".into(), 1)?;
        }
        if shape.output_len() == 0 {
            return Ok(());
        }
        let address = |operand: Option<Slice<'_, T>>| operand.map_or(0, |operand| operand.address());
        let [lo, hi] = self.options.activation.limits();
        let target = Target::<T::Device> {
            out: GlobalMut::from_address(out.address()),
            residual: GlobalPtr::from_address(address(residual)),
            bias: GlobalPtr::from_address(address(bias)),
            nonzeros: GlobalMut::from_address(nonzeros.map_or(0, |nonzeros| nonzeros.address())),
            map: self.map(shape.filters, self.out_size(), of_out_planes),
            lo,
            hi,
            tiles_x: self.cut.tiles_x as u32,
            tiles: self.cut.tiles as u32,
            channels_last: u32::from(self.options.layout == MapLayout::Nhwc),
        };
        match &self.cudnn {
            Some(conv) => self.run_cudnn(stream, &**conv, input, filters, target),
            None => self.launch(stream, input, filters, target),
        }
    }

    fn launch(
        &self,
        stream: &Stream,
        input: Slice<'_, T>,
        filters: &Filters<T>,
        target: Target<T::Device>,
    ) -> Result<()> {
        let Cut { images, tiles, groups, splits, .. } = self.cut;
        let addresses = input.address() | target.out.address() | target.residual.address();
        let choice = self.selection.at(addresses, "the maps are")?;
        let entry = choice.entry;
        let shape = &self.shape;
        let u32s = |numbers: [usize; 2]| numbers.map(|number| number as u32);
        let mut source = Source::<T::Device> {
            input: input.pointer(),
            map: self.map(shape.channels, self.joined().size, self.planes.map(|[input, _]| input)),
            filters: GlobalPtr::from_address(0),
            out_height: self.joined().out_size()[0] as u32,
            taps: u32s(shape.taps),
            strides: u32s(shape.strides),
            padding: u32s(shape.padding),
        };
        let values = filters.values.as_slice().pointer();
        let all_tiles = (images * tiles) as u32;
        let grid = [all_tiles, groups as u32, splits as u32];
        let partial = GlobalMut::from_address(self.workspace.as_slice().address());
        let (of_tile, [rows, columns]) = match entry.tile.scheme {
            _ if shape.is_depthwise() => {
                source.filters = values;
                return self.launch_depthwise(stream, choice, source, target);
            }
            Scheme::SparseTile { tile, filters: of_lane, .. } => {
                let split_channels = self.selection.problem().split_channels(splits) as u32;
                let args = SparseConvArgs { source, filters: values, split_channels, partial, target };
                launch(stream, entry, grid, &args)?;
                (32 * of_lane, tile)
            }
            Scheme::MmaTile { filters: of_tile, .. }
            | Scheme::WgmmaTile { filters: of_tile, .. }
            | Scheme::WgmmaPointwise { filters: of_tile, .. }
            | Scheme::WgmmaPanels { filters: of_tile, .. }
            | Scheme::FewChannelsMma { filters: of_tile, .. }
            | Scheme::PointwiseTile { filters: of_tile, .. } => {
                source.filters = values;
                let problem = self.selection.problem();
                let [chunks, split_chunks] = match entry.tile.scheme {
                    Scheme::WgmmaPanels { .. } => [problem.panel_steps(), problem.panel_split(splits)],
                    _ => [shape.channels.div_ceil(MMA_CHANNELS), problem.split_chunks(splits)],
                };
                let args = MmaConvArgs {
                    source,
                    filters: filters.words(),
                    chunks: chunks as u32,
                    split_chunks: split_chunks as u32,
                    partial,
                    tiles: all_tiles,
                    target,
                };
                let blocks = match entry.tile.scheme {
                    Scheme::WgmmaTile { tiles, .. } | Scheme::WgmmaPointwise { tiles, .. } => {
                        all_tiles.div_ceil(tiles)
                    }
                    Scheme::WgmmaPanels { .. } | Scheme::FewChannelsMma { .. } => {
                        problem.panel_blocks(entry, images * tiles, groups * splits) as u32
                    }
                    _ => all_tiles,
                };
                launch(stream, entry, [blocks, grid[1], grid[2]], &args)?;
                let sides = match entry.tile.scheme {
                    Scheme::PointwiseTile { pixels, .. } | Scheme::WgmmaPanels { pixels, .. } => [1, pixels],
                    _ => [MMA_SIDE; 2],
                };
                (of_tile, sides)
            }
            scheme => {
                let args = DirectConvArgs { source, filters: values, runs: all_tiles, target };
                // Of the direct kernel each warp has a run of pixels.
                let of_block = if scheme == Scheme::Direct { entry.threads / 32 } else { 1 };
                return launch(stream, entry, [all_tiles.div_ceil(of_block), groups as u32, 1], &args);
            }
        };
        if splits == 1 {
            return Ok(());
        }
        let args = ReduceSplitsArgs {
            partial: self.workspace.as_slice().pointer(),
            splits: splits as u32,
            elements: self.elements as u32,
            tiles: all_tiles,
            filters: of_tile,
            rows,
            columns,
            by_lanes: u32::from(matches!(entry.tile.scheme, Scheme::WgmmaPanels { .. })),
            source,
            target,
        };
        let grid = [self.elements.div_ceil(THREADS) as u32, 1, 1];
        launch_kernel::<ReduceSplits<T::Device>>(stream, entries::conv(), |_| grid, &args)
    }

    pub(super) fn workspace(&self) -> Slice<'_, f32> {
        self.workspace.as_slice()
    }

    pub(super) fn selection(&self) -> &Selection<Problem> {
        &self.selection
    }

    /// The shape as the kernel sees it.
    fn joined(&self) -> Shape {
        let problem = self.selection.problem();
        if self.selection.best().entry.tile.scheme.is_pointwise() { problem.joined() } else { self.shape }
    }

    /// Rows and columns of the result, as the kernel sees it.
    fn out_size(&self) -> [usize; 2] {
        let [rows, columns] = self.joined().out_size();
        match self.selection.best().entry.tile.scheme {
            // Rows are counted through the images.
            Scheme::WgmmaPanels { .. } => [self.shape.batch * rows, columns],
            _ => [rows, columns],
        }
    }

    /// How maps of so many channels lie, whose planes may lie apart.
    fn map(&self, channels: usize, size: [usize; 2], planes: Option<Layout>) -> Map {
        with_planes(self.options.layout.map(channels, size, size_of::<T>()), planes)
    }
}

tells_choice!(Conv<T: Value>);
