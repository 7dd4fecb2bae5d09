//! What a network is given: a row of numbers for each sample.
use std::ops::Range;

use lacuna_kernels::entries;
use lacuna_kernels::spdnn::{
    ArrangeArgs, ArrangeRows, ExpandBits, ExpandBitsArgs, ScatterArgs, ScatterValues, TILE_ROWS,
};
use lacuna_matrix::{Csr, Pattern};

use super::OPERATION;
use crate::op::{MAX_GRID_YZ, launch_kernel};
use crate::{Buffer, Device, Error, HostBuffer, Result, Slice, Stream};

const TILE: usize = TILE_ROWS as usize;
/// Kernels count bytes of tiles in 32 bits.
pub(super) const MAX_ROWS: usize = (1 << 30) - 1;

/// Samples on the host.
#[derive(Clone, Debug)]
pub struct Features {
    rows: usize,
    inputs: usize,
    numbers: Numbers,
}

#[derive(Clone, Debug)]
enum Numbers {
    /// For each 32 samples and each input a word, with a bit a sample.
    Bits(Vec<u32>),
    Sparse(Csr<f32>),
    Dense(Vec<f32>),
}

impl Features {
    /// Samples of zeros and ones: row `i` of the pattern has the inputs of sample `i` that are 1. They take a bit each, on the host,
    /// on the way, and on the device.
    pub fn binary(ones: &Pattern) -> Self {
        let (rows, inputs) = (ones.rows(), ones.cols());
        let mut words = vec![0; rows.div_ceil(TILE) * inputs];
        for row in 0..rows {
            let tile = &mut words[row / TILE * inputs..][..inputs];
            for &input in ones.row_columns(row) {
                tile[input as usize] |= 1 << (row % TILE);
            }
        }
        Self { rows, inputs, numbers: Numbers::Bits(words) }
    }

    /// Samples of any numbers, most of them zero: a row a sample. The numbers are sent as they are, and put to their places on the
    /// device.
    pub fn sparse(samples: Csr<f32>) -> Self {
        Self { rows: samples.rows(), inputs: samples.cols(), numbers: Numbers::Sparse(samples) }
    }

    /// Samples of any numbers, one after another.
    ///
    /// # Errors
    /// [`Error::Length`] where `samples` are not `rows` times `inputs`.
    pub fn dense(rows: usize, inputs: usize, samples: Vec<f32>) -> Result<Self> {
        let shape = || format!("{rows}×{inputs}");
        let expected = rows.saturating_mul(inputs);
        Error::expect_len(OPERATION, "the samples", shape, expected, samples.len())?;
        Ok(Self { rows, inputs, numbers: Numbers::Dense(samples) })
    }

    /// Samples.
    pub fn rows(&self) -> usize {
        self.rows
    }
    /// Numbers of a sample.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Some of the samples, the first a multiple of 32.
    pub(super) fn part(&self, part: Range<usize>) -> Result<Self> {
        self.blocks(&[part])
    }

    /// The samples of some ranges, one after another. Each begins at a multiple of 32, and each but the last has a multiple of 32.
    pub(super) fn blocks(&self, blocks: &[Range<usize>]) -> Result<Self> {
        let (rows, inputs) = (blocks.iter().map(ExactSizeIterator::len).sum(), self.inputs);
        let numbers = match &self.numbers {
            Numbers::Bits(words) => {
                let tiles = |block: &Range<usize>| {
                    &words[block.start / TILE * inputs..block.end.div_ceil(TILE) * inputs]
                };
                Numbers::Bits(blocks.iter().map(tiles).collect::<Vec<_>>().concat())
            }
            Numbers::Dense(numbers) => {
                let of_block = |block: &Range<usize>| &numbers[block.start * inputs..block.end * inputs];
                Numbers::Dense(blocks.iter().map(of_block).collect::<Vec<_>>().concat())
            }
            Numbers::Sparse(samples) => {
                Numbers::Sparse(samples.select_rows(blocks.iter().flat_map(Clone::clone))?)
            }
        };
        Ok(Self { rows, inputs, numbers })
    }

    /// Whether they are zeros and ones, of which each takes a bit.
    pub fn is_binary(&self) -> bool {
        matches!(self.numbers, Numbers::Bits(_))
    }

    /// Bytes of a device's memory that so many of these samples take at most; a multiple of 32.
    pub(super) fn device_bytes(&self, rows: usize, tiled: bool) -> usize {
        let numbers = rows.saturating_mul(self.inputs);
        match &self.numbers {
            // Those of one part, and of the last.
            Numbers::Bits(_) if tiled => numbers / 4,
            // As they are sent, and as they are arranged.
            Numbers::Bits(_) | Numbers::Dense(_) => numbers.saturating_mul(8),
            Numbers::Sparse(samples) => {
                let longest = samples.row_lengths().max().unwrap_or(0) as usize;
                numbers.saturating_mul(4).saturating_add(rows.saturating_mul(8 * longest + 4))
            }
        }
    }
}

/// Binary samples in page-locked memory, which a stream sends while the host goes on.
#[derive(Debug)]
pub struct PinnedFeatures {
    rows: usize,
    inputs: usize,
    bits: HostBuffer<u32>,
}

impl Features {
    /// The same samples, binary ones, in page-locked memory for this device.
    ///
    /// # Errors
    /// [`Error::Parameter`] where they are not binary; what the driver says.
    pub fn pin(&self, device: &Device) -> Result<PinnedFeatures> {
        let Numbers::Bits(words) = &self.numbers else {
            return Err(Error::parameter(OPERATION, "the kind of samples to pin", "binary", "another"));
        };
        let mut bits = device.host_buffer(words.len())?;
        bits.copy_from_slice(words);
        Ok(PinnedFeatures { rows: self.rows, inputs: self.inputs, bits })
    }
}

/// Samples on a device, as a network reads them.
#[derive(Debug)]
pub struct DeviceFeatures {
    pub(super) rows: usize,
    pub(super) inputs: usize,
    /// Whether they lie in tiles.
    pub(super) tiled: bool,
    numbers: DeviceNumbers,
    /// One number: the rows.
    pub(super) count: Buffer<u32>,
}

#[derive(Debug)]
enum DeviceNumbers {
    Bits(Buffer<u32>),
    Numbers(Buffer<f32>),
}

impl DeviceFeatures {
    /// Sends samples to the device, and arranges them: in tiles, or row by row.
    pub(super) fn upload(stream: &Stream, features: &Features, tiled: bool) -> Result<Self> {
        let &Features { rows, inputs, .. } = features;
        let device = stream.device();
        Error::expect_at_most("the number of samples", MAX_ROWS, rows)?;
        let numbers = match &features.numbers {
            Numbers::Bits(words) => {
                let bits = device.upload(words)?;
                if tiled { DeviceNumbers::Bits(bits) } else { expand(stream, &bits, rows, inputs)? }
            }
            Numbers::Sparse(samples) => scatter(stream, samples, tiled)?,
            Numbers::Dense(numbers) => {
                let numbers = device.upload(numbers)?;
                if tiled {
                    DeviceNumbers::Numbers(arrange(stream, numbers.as_slice(), rows, inputs)?)
                } else {
                    DeviceNumbers::Numbers(numbers)
                }
            }
        };
        Ok(Self { rows, inputs, tiled, numbers, count: device.upload(&[rows as u32])? })
    }

    /// Arranges samples that are on the device, row by row, and waits: any stream may use the result.
    pub(super) fn of_device(
        stream: &Stream,
        rows: usize,
        inputs: usize,
        samples: Slice<'_, f32>,
        tiled: bool,
    ) -> Result<Self> {
        let device = stream.device();
        Error::expect_at_most("the number of samples", MAX_ROWS, rows)?;
        let expected = rows.saturating_mul(inputs);
        device.expect_operand(OPERATION, "the samples", samples, || format!("{rows}×{inputs}"), expected)?;
        let numbers = if tiled {
            arrange(stream, samples, rows, inputs)?
        } else {
            let mut copy = device.uninitialized(samples.len())?;
            stream.copy(samples, copy.as_slice_mut())?;
            stream.synchronize()?;
            copy
        };
        let numbers = DeviceNumbers::Numbers(numbers);
        Ok(Self { rows, inputs, tiled, numbers, count: device.upload(&[rows as u32])? })
    }

    /// Replaces the samples by others of the same number and kind, in the same memory: binary ones, or dense ones that lie row
    /// by row.
    ///
    /// # Errors
    /// [`Error::Parameter`] where these samples are of another shape or kind, or cannot be replaced.
    pub fn replace(&mut self, features: &Features) -> Result<()> {
        self.expect_shape(features.rows, features.inputs)?;
        match (&mut self.numbers, &features.numbers) {
            (DeviceNumbers::Bits(bits), Numbers::Bits(words)) => bits.upload(words),
            (DeviceNumbers::Numbers(own), Numbers::Dense(numbers)) if !self.tiled => own.upload(numbers),
            _ => Err(other_kind()),
        }
    }

    /// Replaces binary samples by others of the same number, when `stream` comes to this. Returns at once.
    ///
    /// # Errors
    /// As [`replace`](Self::replace); [`Error::OtherDevice`].
    pub fn send(&mut self, stream: &Stream, features: &PinnedFeatures) -> Result<()> {
        self.expect_shape(features.rows, features.inputs)?;
        let DeviceNumbers::Bits(bits) = &mut self.numbers else { return Err(other_kind()) };
        stream.upload(&features.bits, 0..features.bits.len(), bits.as_slice_mut())
    }

    fn expect_shape(&self, rows: usize, inputs: usize) -> Result<()> {
        let is_same = self.rows == rows && self.inputs == inputs;
        let expected = || format!("{}×{}", self.rows, self.inputs);
        let got = format_args!("{rows}×{inputs}");
        Error::expect(is_same, OPERATION, "the shape of the samples", expected, got)
    }

    /// The device that holds them.
    pub fn device(&self) -> &Device {
        self.count.device()
    }
    /// Samples.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether they take a bit a number.
    pub fn is_binary(&self) -> bool {
        matches!(self.numbers, DeviceNumbers::Bits(_))
    }

    /// Their address, and whether they are bits.
    pub(super) fn address(&self) -> (u64, bool) {
        match &self.numbers {
            DeviceNumbers::Bits(bits) => (bits.as_slice().address(), true),
            DeviceNumbers::Numbers(numbers) => (numbers.as_slice().address(), false),
        }
    }
}

fn other_kind() -> Error {
    Error::parameter(OPERATION, "the kind of the samples", "that of those there", "another")
}

/// Numbers, row by row, of bits in tiles.
fn expand(stream: &Stream, bits: &Buffer<u32>, rows: usize, inputs: usize) -> Result<DeviceNumbers> {
    let mut numbers = stream.device().uninitialized::<f32>(rows * inputs)?;
    if !numbers.is_empty() {
        let args = ExpandBitsArgs {
            bits: bits.as_slice().pointer(),
            out: numbers.as_slice_mut().pointer(),
            rows: rows as u32,
            inputs: inputs as u32,
        };
        let grid = [rows.div_ceil(TILE) as u32, 1, 1];
        launch_kernel::<ExpandBits>(stream, entries::spdnn(), |_| grid, &args)?;
        stream.synchronize()?;
    }
    Ok(DeviceNumbers::Numbers(numbers))
}

/// Samples in tiles, of samples row by row.
fn arrange(stream: &Stream, samples: Slice<'_, f32>, rows: usize, inputs: usize) -> Result<Buffer<f32>> {
    let mut tiles = stream.device().zeros::<f32>(rows.next_multiple_of(TILE) * inputs)?;
    if !tiles.is_empty() {
        let args = ArrangeArgs {
            from: samples.pointer(),
            to: tiles.as_slice_mut().pointer(),
            rows: rows as u32,
            width: inputs as u32,
        };
        let grid = [rows.div_ceil(TILE) as u32, inputs.div_ceil(TILE).min(MAX_GRID_YZ) as u32, 1];
        launch_kernel::<ArrangeRows>(stream, entries::spdnn(), |_| grid, &args)?;
        stream.synchronize()?;
    }
    Ok(tiles)
}

/// Samples of listed numbers.
fn scatter(stream: &Stream, samples: &Csr<f32>, tiled: bool) -> Result<DeviceNumbers> {
    let device = stream.device();
    let (rows, width) = (samples.rows(), samples.cols());
    let mut numbers = device.zeros::<f32>(rows.next_multiple_of(TILE) * width)?;
    let offsets = device.upload(samples.row_offsets())?;
    let inputs = device.upload(samples.col_indices())?;
    let values = device.upload(samples.values())?;
    if samples.nnz() > 0 {
        let args = ScatterArgs {
            offsets: offsets.as_slice().pointer(),
            inputs: inputs.as_slice().pointer(),
            values: values.as_slice().pointer(),
            out: numbers.as_slice_mut().pointer(),
            rows: rows as u32,
            width: width as u32,
        };
        let grid = |threads: u32| [(rows as u32).div_ceil(threads / TILE_ROWS), 1, 1];
        let table = entries::spdnn();
        if tiled {
            launch_kernel::<ScatterValues<true>>(stream, table, |entry| grid(entry.threads), &args)?;
        } else {
            launch_kernel::<ScatterValues<false>>(stream, table, |entry| grid(entry.threads), &args)?;
        }
        stream.synchronize()?;
    }
    Ok(DeviceNumbers::Numbers(numbers))
}
