//! What convolutions are set against: cuDNN's fastest algorithms, and a plain copy where it is a matter of bytes.
use std::collections::{BTreeMap, HashMap};

use anyhow::Result;
use lacuna::conv::Shape;
use lacuna::{Buffer, Device, Stream};
use lacuna_cases::Number;
use lacuna_cases::maps::channels_last;
use lacuna_cases::number::rounded;
use lacuna_vendor::cudnn::{ConvProblem, ConvSizes, CuDnn, Handle, Math};
use lacuna_vendor::{DataType, Workspace};

use super::{How, Input};
use crate::copies::{self, COPY};
use crate::energy;
use crate::peers::{PRODUCTS, data_type};
use crate::record::PeerRecord;
use crate::timing::{Timing, time};

/// cuDNN in full fp32, the fastest of its algorithms in NCHW and NHWC.
pub const CUDNN_F32: &str = "cudnn_f32";
/// The same where it may round to TF32.
pub const CUDNN_TF32: &str = "cudnn_tf32";
/// cuDNN with values of 16 bits, on tensor cores.
pub const CUDNN_F16: &str = "cudnn_f16";
/// The same of bfloat16.
pub const CUDNN_BF16: &str = "cudnn_bf16";

/// What tables and pictures call a peer.
pub fn title(peer: &str) -> &str {
    match peer {
        CUDNN_F32 => "cuDNN fp32",
        CUDNN_TF32 => "cuDNN TF32",
        CUDNN_F16 => "cuDNN f16",
        CUDNN_BF16 => "cuDNN bf16",
        COPY => "a copy",
        other => PRODUCTS.iter().find(|(name, _)| *name == other).map_or(other, |(_, title)| title),
    }
}

/// cuDNN over many layers; its times do not depend on what maps hold, and are measured once a shape and type.
#[derive(Debug)]
pub struct Peers {
    // Dropped before the device, in whose context it lives.
    handle: Option<Handle>,
    library: Option<CuDnn>,
    known: HashMap<(Shape, DataType), BTreeMap<String, PeerRecord>>,
}

impl Peers {
    /// With the library, if it is there.
    pub fn new(library: Option<CuDnn>) -> Self {
        Self { handle: None, library, known: HashMap::new() }
    }

    /// The peers' times of a layer without bias and activation; with a counter also the energy of cuDNN's fastest algorithms.
    ///
    /// # Errors
    /// What the device says. What cuDNN cannot do has no time, with a word on stderr.
    pub fn measure<T: Number>(
        &mut self,
        device: &Device,
        input: &Input,
        how: How<'_>,
    ) -> Result<BTreeMap<String, PeerRecord>> {
        let key = (input.shape, data_type::<T>());
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let stream = device.stream()?;
        let mut records = BTreeMap::new();
        if input.shape.is_depthwise() {
            let elements = input.shape.input_len() + input.shape.output_len();
            records.insert(COPY.into(), copies::of_elements::<T>(device, &stream, elements, how.samples)?);
        }
        if let Some(library) = &self.library {
            let version = library.version()?.to_string();
            let handle = match &self.handle {
                Some(handle) => handle,
                None => self.handle.insert(library.handle()?),
            };
            let wanted: &[(&str, Math)] = match key.1 {
                DataType::F32 => &[(CUDNN_F32, Math::Fma), (CUDNN_TF32, Math::TensorCores)],
                DataType::F16 => &[(CUDNN_F16, Math::TensorCores)],
                DataType::Bf16 => &[(CUDNN_BF16, Math::TensorCores)],
            };
            for &(name, math) in wanted {
                let mut best: Option<Fastest> = None;
                for is_last in [false, true] {
                    match fastest::<T>(device, &stream, handle, input, math, is_last, how) {
                        Ok(found) => best = best.into_iter().chain(found).min_by(by_median),
                        Err(error) => eprintln!("{}: {name}: {error:#}", input.name),
                    }
                }
                if let Some(Fastest { algorithm, time, energy_mj }) = best {
                    let record = PeerRecord { energy_mj, ..record(time, algorithm, version.clone()) };
                    records.insert(name.into(), record);
                }
            }
        }
        self.known.insert(key, records.clone());
        Ok(records)
    }
}

/// How many times as long as the fastest an algorithm of cuDNN may take in its search, and how many milliseconds more.
const SLOWER: f32 = 10.0;
const SLOWER_MS: f32 = 0.1;

/// The fastest algorithm of cuDNN.
struct Fastest {
    algorithm: String,
    time: Timing,
    energy_mj: Option<f64>,
}

fn by_median(a: &Fastest, b: &Fastest) -> std::cmp::Ordering {
    a.time.median.total_cmp(&b.time.median)
}

fn record(time: Timing, algorithm: String, version: String) -> PeerRecord {
    PeerRecord {
        time,
        algorithm,
        version,
        error_over_bound: None,
        preprocess_us: None,
        energy_mj: None,
        measured_in: None,
    }
}

/// The fastest algorithm in a layout, by our clock, of those that cuDNN's own search finds.
fn fastest<T: Number>(
    device: &Device,
    stream: &Stream,
    handle: &Handle,
    input: &Input,
    math: Math,
    is_last: bool,
    how: How<'_>,
) -> Result<Option<Fastest>> {
    let shape = input.shape;
    let pixels = shape.size[0] * shape.size[1];
    let (channels, taps) = (shape.channels / shape.groups, shape.taps[0] * shape.taps[1]);
    let laid = |values: &[f32], rows, columns| {
        let values = rounded::<T>(values);
        if is_last { channels_last(&values, rows, columns) } else { values }
    };
    let x = device.upload(&laid(&input.input, shape.channels, pixels))?;
    let weights = device.upload(&laid(&input.weights, channels, taps))?;
    let out = device.zeros::<T>(shape.output_len())?;
    let sizes = ConvSizes {
        data_type: data_type::<T>(),
        batch: shape.batch,
        channels: shape.channels,
        size: shape.size,
        filters: shape.filters,
        taps: shape.taps,
        strides: shape.strides,
        padding: shape.padding,
        groups: shape.groups,
        channels_last: is_last,
    };
    let problem = ConvProblem {
        sizes,
        input: x.as_slice().address(),
        weights: weights.as_slice().address(),
        bias: None,
        relu: false,
        out: out.as_slice().address(),
        stream: stream.as_raw(),
    };
    let workspace = |bytes: usize| -> lacuna::Result<Workspace> {
        let buffer: Buffer<u32> = device.uninitialized(bytes.div_ceil(size_of::<u32>()))?;
        Ok(Workspace::new(buffer.as_slice().address(), buffer))
    };
    stream.synchronize()?;
    // SAFETY: the buffers have these lengths, and live until all work was waited for; nobody else uses them.
    let convolution = unsafe { handle.convolution(&problem, math, workspace) }?;
    let mut best = None;
    let all = convolution.algorithms()?;
    let least = all.iter().map(|found| found.time_ms).fold(f32::INFINITY, f32::min);
    // The search's own times are of single runs, and put others first from run to run. What took this much longer is never first; with a
    // filter a channel some algorithms take milliseconds, as they do one channel after another.
    for found in all.into_iter().filter(|found| found.time_ms <= SLOWER * least + SLOWER_MS) {
        let Ok(timed) = time(stream, how.samples, |_| Ok(convolution.run(&found)?)) else { continue };
        let so_far = best.map(|(_, best)| best);
        if so_far.is_none_or(|best: Timing| timed.median < best.median) {
            best = Some((found, timed));
        }
    }
    let Some((found, timed)) = best else { return Ok(None) };
    let energy_mj =
        energy::of_call(&input.name, stream, how.counter, timed.median, |_| Ok(convolution.run(&found)?));
    stream.synchronize()?;
    let layout = if is_last { "nhwc" } else { "nchw" };
    let algorithm = format!("{} {layout} {}", found.algorithm.name(), found.math_type.name());
    Ok(Some(Fastest { algorithm, time: timed, energy_mj }))
}
