//! The head of a file: all but the words.
use std::io::{self, Read};

use lacuna_kernels::spdnn::{Limits, Tile};
use lacuna_kernels::{Entry, ValueType, entries};
use lacuna_matrix::io::scan::shorten;
use lacuna_matrix::io::{Place, ReadError};
use rayon::prelude::*;

use super::super::layer::MAX_WIDTH;
use super::super::network::{Layers, expect_runs_on};
use super::super::packed::Arrays;
use super::super::prepared::Prepared;
use super::super::{Algorithm, Choice, Options, Problem};
use super::layout::{self, Sizes};
use super::words::{self, Sum};
use crate::op::Problem as _;
use crate::{DeviceInfo, Error, Precision};

/// What a file begins with.
const MAGIC: [u8; 8] = *b"\x8fspdnn\r\n";
/// The version that is written, and the only one that is read. A change of meaning is a new number.
const VERSION: u64 = 2;
const SUPPORTED: &str = "version 2; pack the network again, or use the library that packed it";
const KERNELS: &str = "the kernels of this version of the library; pack the network again";
/// Bytes of a number.
const NUMBER: usize = 8;
/// Magic, version, and bytes of the body.
const START: usize = 3 * NUMBER;
/// The longest body that is written or read: that of some 300,000 layers.
const MOST_BODY: u64 = 64 << 20;
/// The longest name that is read.
const MOST_NAME: u64 = 256;

/// What the head says.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) layers: Layers,
    pub(super) records: Vec<Record>,
    /// Bytes of the file.
    pub(super) end: u64,
}

/// What it says of a layer's words.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) sizes: Sizes,
    /// Where they begin, in bytes of the file.
    pub(super) start: u64,
    pub(super) words: u64,
    pub(super) sum: Sum,
}

/// The head of a network's file.
pub(super) fn write(layers: &Layers, arrays: &[Arrays]) -> io::Result<Vec<u8>> {
    let sums: Vec<Sum> = arrays.par_iter().map(|arrays| words::sum(&arrays.words)).collect();
    let Options { algorithm, precision, prune } = layers.options;
    let mut body = Vec::new();
    put(&mut body, &number_of(algorithm));
    put(&mut body, &[precision_number(precision), prune.into(), layers.layers.len() as u64]);
    for ((layer, arrays), sum) in layers.layers.iter().zip(arrays).zip(sums) {
        let name = layer.choice.entry.name;
        put(&mut body, &[name.len() as u64]);
        body.extend_from_slice(name.as_bytes());
        let Limits { lo, hi } = layer.limits;
        put(&mut body, &[layer.inputs, layer.outputs, layer.edges].map(|size| size as u64));
        put(&mut body, &[layer.choice.cost.to_bits(), lo.to_bits().into(), hi.to_bits().into()]);
        put(&mut body, &[layer.keeps_zero.into()]);
        put(&mut body, &layout::sizes(layer, &arrays.words));
        put(&mut body, &[arrays.words.len() as u64]);
        body.extend_from_slice(&sum);
    }
    if body.len() as u64 > MOST_BODY {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the network has too many layers for the format",
        ));
    }
    let mut head = MAGIC.to_vec();
    put(&mut head, &[VERSION, body.len() as u64]);
    head.append(&mut body);
    let sum = words::sum_of_bytes(&head);
    head.extend_from_slice(&sum);
    Ok(head)
}

fn put(bytes: &mut Vec<u8>, numbers: &[u64]) {
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

/// Precisions, each at its number.
const PRECISIONS: [Precision; 3] = [Precision::Single, Precision::Fma, Precision::Tf32];

fn precision_number(precision: Precision) -> u64 {
    PRECISIONS.iter().position(|&of| of == precision).unwrap_or(0) as u64
}

/// An algorithm as its number, and its outputs and tiles.
fn number_of(algorithm: Algorithm) -> [u64; 3] {
    match algorithm {
        Algorithm::Auto => [0; 3],
        Algorithm::InputGroups { outputs, tiles } => [1, outputs.into(), tiles.into()],
        Algorithm::GroupTiles { outputs, tiles } => [2, outputs.into(), tiles.into()],
        Algorithm::Baseline => [3, 0, 0],
        Algorithm::StagedEll => [4, 0, 0],
        Algorithm::GroupMma => [5, 0, 0],
        Algorithm::FusedLayers => [6, 0, 0],
    }
}

fn algorithm_of([number, outputs, tiles]: [u64; 3]) -> Option<Algorithm> {
    let (outputs, tiles) = (outputs.try_into().ok()?, tiles.try_into().ok()?);
    let groups = [Algorithm::InputGroups { outputs, tiles }, Algorithm::GroupTiles { outputs, tiles }];
    let others = [Algorithm::Auto, Algorithm::Baseline, Algorithm::StagedEll];
    let on_tensor_cores = [Algorithm::GroupMma, Algorithm::FusedLayers];
    let mut all = groups.into_iter().chain(others).chain(on_tensor_cores);
    all.find(|&algorithm| number_of(algorithm) == [number, outputs.into(), tiles.into()])
}

/// Reads a head, and checks all that can be without the words.
pub(super) fn read(reader: &mut impl Read, info: &DeviceInfo) -> Result<Head, Error> {
    let mut bytes = words::up_to(reader, START, 0)?;
    if !bytes.starts_with(&MAGIC) {
        let expected = "the start of a packed network".into();
        return Err(ReadError::Syntax { place: Place::Byte(0), expected, got: shorten(&bytes) }.into());
    }
    let mut start = Fields { bytes: &bytes, at: NUMBER };
    let [version] = start.numbers()?;
    if version != VERSION {
        let (place, got) = (Place::Byte(NUMBER as u64), format!("version {version}"));
        return Err(ReadError::Unsupported { place, got, supported: SUPPORTED }.into());
    }
    let [body] = start.numbers()?;
    if body > MOST_BODY {
        return Err(start.wrong(format!("a head of at most {MOST_BODY} bytes"), body).into());
    }
    let end = START + body as usize;
    bytes.append(&mut words::up_to(reader, body as usize + size_of::<Sum>(), START as u64)?);
    if bytes.len() < end + size_of::<Sum>() {
        let (place, got) = (Place::Byte(bytes.len() as u64), "less".into());
        return Err(ReadError::Count { place, what: "bytes of the head", expected: body, got }.into());
    }
    if words::sum_of_bytes(&bytes[..end]) != bytes[end..] {
        return Err(ReadError::Checksum { place: Place::Byte(0), what: "the head".into() }.into());
    }
    let mut fields = Fields { bytes: &bytes[..end], at: START };
    let (options, layers) = fields.options()?;
    let (mut prepared, mut records) = (Vec::new(), Vec::new());
    let mut next = bytes.len() as u64;
    for at in 0..layers {
        let (layer, record) = fields.layer(at, next, options, info)?;
        let end = record.words.checked_mul(4).and_then(|bytes| next.checked_add(bytes));
        next = end.ok_or_else(|| fields.wrong("less than 2⁶⁴ bytes of words".into(), "more"))?;
        prepared.push(layer);
        records.push(record);
    }
    if fields.at != end {
        return Err(fields.wrong("the end of the head".into(), "more").into());
    }
    Ok(Head { layers: Layers::new(prepared, options)?, records, end: next })
}

/// Fields of a head, one after another.
struct Fields<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Fields<'_> {
    fn wrong(&self, expected: String, got: impl ToString) -> ReadError {
        ReadError::Syntax { place: Place::Byte(self.at as u64), expected, got: got.to_string() }
    }

    fn bytes(&mut self, len: usize) -> Result<&[u8], ReadError> {
        let left = self.bytes.len() - self.at;
        if left < len {
            return Err(self.wrong(format!("{len} bytes more of the head"), left));
        }
        self.at += len;
        Ok(&self.bytes[self.at - len..self.at])
    }

    fn numbers<const N: usize>(&mut self) -> Result<[u64; N], ReadError> {
        let mut numbers = [0; N];
        let bytes = self.bytes(N * NUMBER)?.as_chunks::<NUMBER>().0;
        for (number, bytes) in numbers.iter_mut().zip(bytes) {
            *number = u64::from_le_bytes(*bytes);
        }
        Ok(numbers)
    }

    /// The options, and how many layers there are.
    fn options(&mut self) -> Result<(Options, u64), ReadError> {
        let algorithm = self.numbers()?;
        let known = algorithm_of(algorithm);
        let algorithm = known.ok_or_else(|| self.wrong("an algorithm".into(), format!("{algorithm:?}")))?;
        let [precision, prune, layers] = self.numbers()?;
        let known = usize::try_from(precision).ok().and_then(|number| PRECISIONS.get(number));
        let &precision = known.ok_or_else(|| self.wrong("a precision".into(), precision))?;
        let options = Options::default().algorithm(algorithm).precision(precision);
        Ok((options.prune(self.flag(prune)?), layers))
    }

    fn flag(&self, number: u64) -> Result<bool, ReadError> {
        match number {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.wrong("0 or 1".into(), number)),
        }
    }

    /// A layer, whose words begin at byte `start` of the file.
    fn layer(
        &mut self,
        at: u64,
        start: u64,
        options: Options,
        info: &DeviceInfo,
    ) -> Result<(Prepared, Record), Error> {
        let entry = self.entry(at, info)?;
        let [inputs, outputs, edges] = self.numbers()?;
        let fits = |width| width <= MAX_WIDTH as u64;
        if !fits(inputs) || !fits(outputs) {
            let expected = format!("at most {MAX_WIDTH} inputs and outputs of layer {at}");
            return Err(self.wrong(expected, format!("{inputs} and {outputs}")).into());
        }
        let (inputs, outputs) = (inputs as usize, outputs as usize);
        // The problem as far as it decides what is possible.
        let f16_weights = entry.tile.weights == ValueType::F16;
        let problem = Problem {
            inputs,
            outputs,
            f16_weights,
            exact_bf16: true,
            precision: options.precision,
            block_shared_bytes: info.block_shared_bytes,
            sm: info.sm,
            ..Problem::default()
        };
        let algorithm = problem.algorithms(entry).into_iter().next();
        let is_wanted = |algorithm: &Algorithm| match options.algorithm {
            Algorithm::Auto => algorithm.is_tiled(),
            wanted => *algorithm == wanted,
        };
        let Some(algorithm) = algorithm.filter(is_wanted) else {
            let expected = format!(
                "a kernel of algorithm {:?} for the {inputs} inputs of layer {at}",
                options.algorithm
            );
            return Err(self.wrong(expected, entry.name).into());
        };
        let [cost, lo, hi, keeps_zero] = self.numbers()?;
        let limits = self.limits(lo, hi)?;
        let (sizes, [words]) = (self.numbers()?, self.numbers()?);
        let placed = layout::places(entry.tile, outputs, edges, sizes).filter(|&(_, end)| end == words);
        let Some((places, _)) = placed else {
            let got = format!("sizes {sizes:?} and {words} words");
            return Err(self.wrong(format!("sizes that make up layer {at}"), got).into());
        };
        let choice = Choice { entry, algorithm, cost: f64::from_bits(cost) };
        let (edges, keeps_zero) = (edges as usize, self.flag(keeps_zero)?);
        let prepared = Prepared { choice, places, inputs, outputs, edges, limits, keeps_zero };
        let mut sum = Sum::default();
        sum.copy_from_slice(self.bytes(size_of::<Sum>())?);
        Ok((prepared, Record { sizes, start, words, sum }))
    }

    /// The kernel of a layer.
    fn entry(&mut self, at: u64, info: &DeviceInfo) -> Result<&'static Entry<Tile>, Error> {
        let place = Place::Byte(self.at as u64);
        let [len] = self.numbers()?;
        if len > MOST_NAME {
            return Err(self.wrong(format!("a name of at most {MOST_NAME} bytes"), len).into());
        }
        let name = self.bytes(len as usize)?;
        let Some(entry) = entries::spdnn().iter().find(|entry| entry.name.as_bytes() == name) else {
            let got = format!("layer {at}'s kernel {}", shorten(name));
            return Err(ReadError::Unsupported { place, got, supported: KERNELS }.into());
        };
        expect_runs_on(entry, info)?;
        Ok(entry)
    }

    fn limits(&self, lo: u64, hi: u64) -> Result<Limits, ReadError> {
        let wrong = || self.wrong("limits lo <= hi, neither of them NaN".into(), format!("{lo:#x}, {hi:#x}"));
        let number = |bits: u64| u32::try_from(bits).map(f32::from_bits).map_err(|_| wrong());
        let limits = Limits { lo: number(lo)?, hi: number(hi)? };
        if limits.lo <= limits.hi { Ok(limits) } else { Err(wrong()) }
    }
}
