//! A layer as a kernel reads it, and its launch.
use lacuna_gpu::{F16, GlobalMut, GlobalPtr};
use lacuna_kernels::spdnn::{
    BaselineArgs, GroupMmaArgs, GroupsArgs, Limits, Rows, Scheme, StagedArgs, TILE_ROWS, Tile,
};
use lacuna_kernels::{Entry, ValueType, entries};

use super::csr::CsrLayer;
use super::groups::{Classes, Groups};
use super::packed::{Arrays, at};
use super::staged::StagedLayer;
use super::steps::Steps;
use super::{Choice, Layer, Options, Problem};
use crate::op::{MAX_GRID_YZ, find, illegal, launch};
use crate::{DeviceInfo, Result, Stream};

/// Threads that a multiprocessor holds at most.
const RESIDENT_THREADS: u32 = 2048;

/// Where a layer's arrays are, by the kernel that reads them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Places {
    Groups(Groups),
    Csr(CsrLayer),
    Staged(StagedLayer),
    Steps(Steps),
}

/// What is known of a layer beside its arrays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prepared {
    pub(super) choice: Choice,
    pub(super) places: Places,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) edges: usize,
    pub(super) limits: Limits,
    pub(super) keeps_zero: bool,
}

/// What a layer works on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operands {
    pub(super) rows: Rows,
    /// Rows that there may be.
    pub(super) capacity: usize,
    /// Address of the input.
    pub(super) input: u64,
    /// Whether the input is a bit a number.
    pub(super) input_bits: bool,
    /// Whether no feature is infinite.
    pub(super) bounded: bool,
    /// Address of the result.
    pub(super) out: u64,
}

impl Prepared {
    /// Chooses the kernel of a layer, for so many samples, which come by a list or not, and packs its arrays.
    pub(super) fn new(
        layer: &Layer,
        options: Options,
        info: &DeviceInfo,
        rows: usize,
        listed: bool,
    ) -> Result<(Self, Arrays)> {
        let wanted = options.algorithm;
        let classes = if wanted.is_tiled() { Classes::of(layer) } else { Classes::default() };
        let problem = Problem {
            rows,
            inputs: layer.inputs(),
            outputs: layer.outputs(),
            edges: layer.weights().nnz(),
            classes: classes.sizes(layer),
            f16_weights: layer.weight_type() == ValueType::F16,
            exact_bf16: layer.is_exact_in_bf16(),
            precision: options.precision,
            listed,
            block_shared_bytes: info.block_shared_bytes,
            multiprocessors: info.multiprocessors,
            sm: info.sm,
        };
        let why = || format!("no kernel of this name can do a layer of {} inputs", layer.inputs());
        let choice = find(&problem, wanted).ok_or_else(|| illegal(&problem, wanted, why()))?;
        let mut arrays = Arrays::default();
        let places = match choice.entry.tile.scheme {
            Scheme::InputGroups { outputs, .. } | Scheme::GroupTiles { outputs, .. } => {
                Places::Groups(classes.pack(layer, outputs as usize, &mut arrays))
            }
            Scheme::GroupMma => Places::Steps(Steps::pack(&classes, layer, false, &mut arrays)),
            Scheme::FusedLayers => Places::Steps(Steps::pack(&classes, layer, true, &mut arrays)),
            Scheme::StagedEll { outputs, inputs, .. } => {
                Places::Staged(StagedLayer::pack(layer, outputs as usize, inputs as usize, &mut arrays))
            }
            _ => Places::Csr(CsrLayer::pack(layer, &mut arrays)),
        };
        let prepared = Self {
            choice,
            places,
            inputs: layer.inputs(),
            outputs: layer.outputs(),
            edges: problem.edges,
            limits: {
                let [lo, hi] = layer.activation().limits();
                Limits { lo, hi }
            },
            keeps_zero: layer.keeps_zero(),
        };
        Ok((prepared, arrays))
    }

    /// Places for weights, padding among them.
    pub(super) fn padded(&self) -> usize {
        match &self.places {
            Places::Groups(groups) => groups.padded,
            Places::Staged(staged) => staged.padded,
            Places::Steps(steps) => steps.padded(),
            Places::Csr(_) => self.edges,
        }
    }

    /// Launches the layer, whose arrays begin at address `base`.
    pub(super) fn launch(&self, stream: &Stream, base: u64, operands: &Operands) -> Result<()> {
        let &Operands { rows, capacity, input, input_bits, bounded, out } = operands;
        if capacity == 0 || self.outputs == 0 {
            return Ok(());
        }
        let (limits, out) = (self.limits, GlobalMut::from_address(out));
        let (input_width, output_width) = (self.inputs as u32, self.outputs as u32);
        let entry = self.entry(input_bits);
        let resident = resident(entry, stream);
        match (self.places, entry.tile.scheme) {
            (
                Places::Groups(groups),
                Scheme::InputGroups { tiles, .. } | Scheme::GroupTiles { tiles, .. },
            ) => {
                let spans = capacity.div_ceil((TILE_ROWS * tiles) as usize);
                let warps = spans.saturating_mul(groups.groups as usize);
                let grid = [warps.div_ceil((entry.threads / TILE_ROWS) as usize).min(resident) as u32, 1, 1];
                // The addresses are typed by what the kernel takes.
                macro_rules! args {
                    ($element:ty, $weight:ty) => {
                        GroupsArgs::<$element, $weight> {
                            rows,
                            input: GlobalPtr::from_address(input),
                            out,
                            starts: at(base, groups.starts),
                            counts: at(base, groups.counts),
                            inputs: at(base, groups.inputs),
                            weights: at(base, groups.weights),
                            outputs: at(base, groups.outputs),
                            bias: at(base, groups.bias),
                            groups: groups.groups,
                            input_width,
                            output_width,
                            limits,
                        }
                    };
                }
                match (input_bits, entry.tile.weights) {
                    (false, ValueType::F16) => launch(stream, entry, grid, &args!(f32, F16)),
                    (true, ValueType::F16) => launch(stream, entry, grid, &args!(u32, F16)),
                    (false, _) => launch(stream, entry, grid, &args!(f32, f32)),
                    (true, _) => launch(stream, entry, grid, &args!(u32, f32)),
                }
            }
            (Places::Steps(steps), Scheme::GroupMma) => {
                let warps = capacity.div_ceil(TILE_ROWS as usize).saturating_mul(steps.groups as usize);
                let grid = [warps.div_ceil((entry.threads / TILE_ROWS) as usize).min(resident) as u32, 1, 1];
                macro_rules! args {
                    ($element:ty) => {
                        GroupMmaArgs::<$element> {
                            rows,
                            input: GlobalPtr::from_address(input),
                            out,
                            starts: at(base, steps.starts),
                            inputs: at(base, steps.inputs),
                            weights: at(base, steps.weights),
                            outputs: at(base, steps.outputs),
                            bias: at(base, steps.bias),
                            groups: steps.groups,
                            input_width,
                            output_width,
                            bounded: bounded.into(),
                            limits,
                        }
                    };
                }
                if input_bits {
                    launch(stream, entry, grid, &args!(u32))
                } else {
                    launch(stream, entry, grid, &args!(f32))
                }
            }
            (Places::Staged(staged), Scheme::StagedEll { outputs, rows: batch, .. }) => {
                let blocks = self.outputs.div_ceil(outputs as usize);
                let grid = by_rows(blocks, capacity.div_ceil(batch as usize), resident);
                let args = StagedArgs {
                    rows,
                    input: GlobalPtr::from_address(input),
                    out,
                    stages: at(base, staged.stages),
                    map_starts: at(base, staged.map_starts),
                    map: at(base, staged.map),
                    steps: at(base, staged.steps),
                    places: at(base, staged.places),
                    weights: at(base, staged.weights),
                    bias: at(base, staged.bias),
                    input_width,
                    output_width,
                    limits,
                };
                launch(stream, entry, grid, &args)
            }
            (Places::Csr(csr), _) => {
                let blocks = self.outputs.div_ceil(entry.threads as usize);
                let args = BaselineArgs {
                    rows,
                    input: GlobalPtr::from_address(input),
                    out,
                    offsets: at(base, csr.offsets),
                    inputs: at(base, csr.inputs),
                    weights: at(base, csr.weights),
                    bias: at(base, csr.bias),
                    input_width,
                    output_width,
                    limits,
                };
                launch(stream, entry, by_rows(blocks, capacity, resident), &args)
            }
            _ => unreachable!("a layer is packed for its kernel"),
        }
    }

    /// The kernel for this kind of input. Those that read bits have the shapes of the others.
    pub(super) fn entry(&self, input_bits: bool) -> &'static Entry<Tile> {
        let chosen = self.choice.entry;
        if !input_bits {
            return chosen;
        }
        let wanted = Tile { input_bits, ..chosen.tile };
        let found = entries::spdnn().iter().find(|entry| entry.tile == wanted);
        found.expect("the list has each shape of groups for both inputs")
    }
}

/// Thread blocks of a kernel that the GPU holds at once.
pub(super) fn resident(entry: &Entry<Tile>, stream: &Stream) -> usize {
    let blocks =
        if entry.bounds.min_blocks > 0 { entry.bounds.min_blocks } else { RESIDENT_THREADS / entry.threads };
    (stream.device().info().multiprocessors * blocks) as usize
}

/// A grid of blocks of outputs by blocks of rows: no more than the GPU holds.
fn by_rows(blocks: usize, rows: usize, resident: usize) -> [u32; 3] {
    let along = resident.div_ceil(blocks).min(rows).min(MAX_GRID_YZ);
    [blocks as u32, along as u32, 1]
}
