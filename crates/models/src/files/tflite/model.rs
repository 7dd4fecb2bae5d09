//! A network of TensorFlow Lite.
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use half::f16;
use lacuna_matrix::io::ReadError;

use super::flat::{Flat, Table};
use super::operator::{Operator, OperatorKind, Place, kind};
use super::sparsity::Sparsity;
use super::{TensorProblem, TfliteError};
use crate::files::FileError;
use crate::weights::{Tensor, fits_dense};

/// The type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Element {
    /// `f32`.
    F32,
    /// `f16`.
    F16,
    /// `i32`.
    I32,
    /// Another, by its code (`TensorType`).
    Other(i8),
}

/// A tensor of the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Its name.
    pub name: String,
    /// Its shape, the last dimension's elements side by side.
    pub shape: Vec<usize>,
    /// The type of its elements.
    pub element: Element,
    /// Its bytes in the file.
    values: Option<Range<usize>>,
    sparsity: Option<Sparsity>,
}

impl TensorInfo {
    /// Whether it has values in the file.
    pub fn is_constant(&self) -> bool {
        self.values.is_some()
    }

    /// Whether only some of its values are in the file.
    pub fn is_sparse(&self) -> bool {
        self.sparsity.is_some()
    }
}

/// A network of TensorFlow Lite, of one subgraph. It holds the file; values are converted when they are asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    bytes: Vec<u8>,
    path: Option<PathBuf>,
    tensors: Vec<TensorInfo>,
    operators: Vec<Operator>,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
}

impl Model {
    /// Reads a file.
    ///
    /// # Errors
    /// As [`new`](Self::new), with the path.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let failed = |source| FileError::Read(ReadError::Io { place: None, source }).in_file(path);
        let model = Self::new(std::fs::read(path).map_err(failed)?).map_err(|error| error.in_file(path))?;
        Ok(Self { path: Some(path.to_owned()), ..model })
    }

    /// Reads the bytes of a file: its tensors and operators, but no values.
    ///
    /// # Errors
    /// [`FileError::Tflite`] where they are no TFLite file, are damaged, or have not one subgraph; where a tensor has no shape, or an
    /// operator options that make no sense.
    pub fn new(bytes: Vec<u8>) -> Result<Self, FileError> {
        if bytes.get(4..8) != Some(b"TFL3") {
            return Err(TfliteError::OtherFile.into());
        }
        let mut model = read(&bytes)?;
        model.bytes = bytes;
        Ok(model)
    }

    /// The tensors of the graph. Operators name them by their numbers here.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The operators, in an order in which they can be run.
    pub fn operators(&self) -> &[Operator] {
        &self.operators
    }

    /// The tensors that the network is given.
    pub fn inputs(&self) -> &[usize] {
        &self.inputs
    }

    /// The tensors that it computes.
    pub fn outputs(&self) -> &[usize] {
        &self.outputs
    }

    /// The number of the tensor with values that an operator's input is made of by [`OperatorKind::Densify`] and
    /// [`OperatorKind::Dequantize`] alone: such a network has its weights sparse or as `f16` in the file. None where others compute it.
    ///
    /// # Panics
    /// If there is no such tensor.
    pub fn source(&self, mut tensor: usize) -> Option<usize> {
        // Each step goes to another operator, unless the graph has a circle.
        for _ in 0..=self.operators.len() {
            if self.tensors[tensor].is_constant() {
                return Some(tensor);
            }
            let makes = |operator: &&Operator| operator.outputs.contains(&tensor);
            let operator = self.operators.iter().find(makes)?;
            match operator.kind {
                OperatorKind::Densify | OperatorKind::Dequantize => tensor = (*operator.inputs.first()?)?,
                _ => return None,
            }
        }
        None
    }

    /// The values of a tensor of `f32` or `f16`; a sparse one is made dense.
    ///
    /// # Errors
    /// [`FileError::Tflite`] where it has no values in the file, or others; where their number, or the pattern of a sparse one, is not
    /// that of the shape; where a sparse one has more than 2²⁴ elements, and more than 4,096 for each value.
    ///
    /// # Panics
    /// If there is no such tensor.
    pub fn numbers(&self, tensor: usize) -> Result<Tensor, FileError> {
        let info = &self.tensors[tensor];
        let values = match info.element {
            Element::F32 => self.dense(info, f32::from_le_bytes),
            Element::F16 => self.dense(info, |bytes| f16::from_le_bytes(bytes).to_f32()),
            got => Err(TensorProblem::Type { expected: "f32 or f16", got }),
        };
        let values = values.map_err(|problem| self.failed(tensor, problem))?;
        Ok(Tensor::from_parts(info.shape.clone(), values))
    }

    /// The values of a tensor of `i32`, such as paddings, sizes and shapes.
    ///
    /// # Errors
    /// As [`numbers`](Self::numbers).
    ///
    /// # Panics
    /// If there is no such tensor.
    pub fn integers(&self, tensor: usize) -> Result<Vec<i32>, FileError> {
        let info = &self.tensors[tensor];
        let values = match info.element {
            Element::I32 => self.dense(info, i32::from_le_bytes),
            got => Err(TensorProblem::Type { expected: "i32", got }),
        };
        values.map_err(|problem| self.failed(tensor, problem))
    }

    /// Bytes of the file.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn failed(&self, index: usize, problem: TensorProblem) -> FileError {
        let name = self.tensors[index].name.clone();
        let error = FileError::from(TfliteError::Tensor { index, name, problem });
        match &self.path {
            Some(path) => error.in_file(path),
            None => error,
        }
    }

    fn dense<T: Copy + Default, const N: usize>(
        &self,
        info: &TensorInfo,
        convert: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>, TensorProblem> {
        let bytes = info.values.clone().and_then(|range| self.bytes.get(range));
        let (values, rest) = bytes.ok_or(TensorProblem::NotConstant)?.as_chunks::<N>();
        let elements = info.shape.iter().product();
        let wrong_number =
            |expected| TensorProblem::Values { expected, got: values.len() * N + rest.len(), size: N };
        let Some(sparsity) = &info.sparsity else {
            let fit = values.len() == elements && rest.is_empty();
            return if fit {
                Ok(values.iter().map(|bytes| convert(*bytes)).collect())
            } else {
                Err(wrong_number(elements))
            };
        };
        if !rest.is_empty() {
            return Err(wrong_number(values.len()));
        }
        if !fits_dense(elements, values.len()) {
            return Err(TensorProblem::MostlyEmpty { nnz: values.len(), elements });
        }
        let places = sparsity.places(&info.shape, values.len())?;
        let mut dense = vec![T::default(); elements];
        for (place, bytes) in places.into_iter().zip(values) {
            dense[place] = convert(*bytes);
        }
        Ok(dense)
    }
}

/// Reads all but the values.
fn read(bytes: &[u8]) -> Result<Model, TfliteError> {
    let flat = Flat::new(bytes);
    let root = flat.root()?;
    let graphs = root.tables(2)?;
    let [graph] = graphs[..] else { return Err(TfliteError::Graphs { got: graphs.len() }) };
    let buffers = root.tables(4)?;
    let tensors = graph.tables(0)?;
    let tensors: Vec<TensorInfo> = tensors
        .into_iter()
        .enumerate()
        .map(|(index, table)| tensor(index, table, &buffers, bytes.len()))
        .collect::<Result<_, _>>()?;
    let codes: Vec<(i32, Arc<str>)> = root.tables(1)?.into_iter().map(code).collect::<Result<_, _>>()?;
    let operators = graph.tables(3)?;
    let operators = operators
        .into_iter()
        .enumerate()
        .map(|(index, table)| operator(index, table, &codes, tensors.len()))
        .collect::<Result<_, _>>()?;
    let ends = |field| -> Result<Vec<usize>, TfliteError> {
        let numbers = graph.i32s(field)?.unwrap_or_default();
        numbers.into_iter().map(|got| number(got, tensors.len(), || "the subgraph".into())).collect()
    };
    let (inputs, outputs) = (ends(1)?, ends(2)?);
    Ok(Model { bytes: Vec::new(), path: None, tensors, operators, inputs, outputs })
}

fn tensor(
    index: usize,
    table: Table<'_>,
    buffers: &[Table<'_>],
    len: usize,
) -> Result<TensorInfo, TfliteError> {
    let name = table.string(3)?;
    let failed = |problem| TfliteError::Tensor { index, name: name.clone(), problem };
    let got = table.i32s(0)?.unwrap_or_default();
    let extents = got.iter().map(|&extent| usize::try_from(extent));
    let shape: Vec<usize> =
        extents.collect::<Result<_, _>>().map_err(|_| failed(TensorProblem::Shape { got: got.clone() }))?;
    // Without zeros, so that each part of the shape can be counted, too.
    let elements = shape.iter().try_fold(1, |product: usize, &extent| product.checked_mul(extent.max(1)));
    if elements.is_none() {
        return Err(failed(TensorProblem::Shape { got }));
    }
    let element = match table.i8(1)? {
        0 => Element::F32,
        1 => Element::F16,
        2 => Element::I32,
        code => Element::Other(code),
    };
    let got = table.u32(2)?;
    let no_buffer = || failed(TensorProblem::NoBuffer { got, count: buffers.len() });
    let buffer = buffers.get(got as usize).ok_or_else(no_buffer)?;
    let sparsity = table.table(6)?.map(Sparsity::read).transpose()?;
    Ok(TensorInfo { values: values(*buffer, len)?, name, shape, element, sparsity })
}

/// Where a buffer's bytes are. Empty ones are of tensors that are computed.
fn values(buffer: Table<'_>, len: usize) -> Result<Option<Range<usize>>, TfliteError> {
    if let Some(range) = buffer.bytes(0)? {
        return Ok(Some(range).filter(|range| !range.is_empty()));
    }
    // Files beyond 2 GiB have values after the tables; an offset of 1 is a mark without meaning.
    let (offset, size) = (buffer.u64(1)?, buffer.u64(2)?);
    if offset <= 1 || size == 0 {
        return Ok(None);
    }
    let ends =
        usize::try_from(offset).ok().zip(offset.checked_add(size).and_then(|end| usize::try_from(end).ok()));
    let (start, end) = ends.filter(|&(_, end)| end <= len).ok_or_else(|| TfliteError::Damaged {
        at: usize::try_from(offset).unwrap_or(usize::MAX),
        expected: "a buffer inside the file",
    })?;
    Ok(Some(start..end))
}

/// The code of an operator, and the name of a custom one.
fn code(table: Table<'_>) -> Result<(i32, Arc<str>), TfliteError> {
    // Old files have the first alone, and new ones both where the code fits.
    let code = i32::from(table.i8(0)?).max(table.i32(3, 0)?);
    Ok((code, table.string(1)?.into()))
}

fn operator(
    index: usize,
    table: Table<'_>,
    codes: &[(i32, Arc<str>)],
    count: usize,
) -> Result<Operator, TfliteError> {
    let got = table.u32(0)?;
    let (code, name) = codes.get(got as usize).ok_or_else(|| TfliteError::Operator {
        index,
        code: -1,
        expected: "the number of a code",
        got: got.to_string(),
    })?;
    let who = || format!("operator {index}");
    let inputs = table.i32s(1)?.unwrap_or_default().into_iter();
    let inputs = inputs.map(|got| (got != -1).then(|| number(got, count, who)).transpose());
    let outputs = table.i32s(2)?.unwrap_or_default().into_iter().map(|got| number(got, count, who));
    Ok(Operator {
        inputs: inputs.collect::<Result<_, _>>()?,
        outputs: outputs.collect::<Result<_, _>>()?,
        kind: kind(table, name, Place { index, code: *code })?,
    })
}

fn number(got: i32, count: usize, who: impl Fn() -> String) -> Result<usize, TfliteError> {
    let number = usize::try_from(got).ok().filter(|&number| number < count);
    number.ok_or_else(|| TfliteError::NoTensor { who: who(), got, count })
}
