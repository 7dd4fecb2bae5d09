//! What direct calls ask of PyTorch: whether its dispatcher may be left out, where tensors lie, and room for results.
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyTuple};
use pyo3::{ffi, intern};

use crate::device::Dtype;

/// PyTorch's functions, from when its half of the package was imported on.
static TORCH: PyOnceLock<Torch> = PyOnceLock::new();

/// Bytes of a GPU's memory that are mapped together, at least.
const PAGE: u64 = 4096;

/// Axes that an operand may have: samples, heads, rows and columns.
const MOST_AXES: usize = 4;

struct Torch {
    /// Types of tensors that have no behaviour of their own.
    plain: Vec<Py<PyAny>>,
    /// Those of values, in the order of [`Dtype`], and that of indices.
    dtypes: [Py<PyAny>; 4],
    is_grad_enabled: Py<PyAny>,
    /// Each is true where somebody wants to see calls: modes, transformations of functions.
    watchers: Vec<Py<PyAny>>,
    /// The module of derivatives that are computed forward, which tells how many levels of them are open.
    forward_ad: Py<PyAny>,
    current_stream: Py<PyAny>,
    /// Sizes, strides and type to a new tensor on the current device.
    empty: Py<PyAny>,
    /// A tensor, sizes, strides and an offset to one of the same memory.
    reinterpret: Py<PyAny>,
    /// How tensors are read without Python, where PyTorch offers that (2.10 and newer).
    read: Option<Read>,
    /// The kind of device that the library's memory is on, in DLPack's numbers.
    device_type: i32,
}

/// Tells the module of PyTorch; the first call counts.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "they are PyTorch's functions")]
pub(crate) fn connect(
    py: Python<'_>,
    plain: Vec<Py<PyAny>>,
    dtypes: [Py<PyAny>; 4],
    is_grad_enabled: Py<PyAny>,
    watchers: Vec<Py<PyAny>>,
    current_stream: Py<PyAny>,
    of_memory: (Py<PyAny>, Py<PyAny>),
    exchange: Option<Bound<'_, PyAny>>,
    device_type: i32,
    forward_ad: Py<PyAny>,
) -> PyResult<()> {
    let read = exchange.map(|capsule| Read::of(&capsule)).transpose()?.flatten();
    let (empty, reinterpret) = of_memory;
    let torch = Torch {
        plain,
        dtypes,
        is_grad_enabled,
        watchers,
        forward_ad,
        current_stream,
        empty,
        reinterpret,
        read,
        device_type,
    };
    // A second one would be the same.
    let _ = TORCH.set(py, torch);
    Ok(())
}

/// Calls `work` where the dispatcher may be left out: PyTorch is there, all of `tensors` are plain ones of values, nothing
/// watches, and nothing is to be learned. Gives its result; `True` where all that is in the way is that a gradient is wanted;
/// and `None` where another way must be gone: the one that PyTorch's dispatcher and the Python files' checks are on.
pub(crate) fn direct<'py>(
    py: Python<'py>,
    index: Option<i32>,
    tensors: &[&Bound<'py, PyAny>],
    work: impl FnOnce(&Call<'py>) -> PyResult<Option<Bound<'py, PyAny>>>,
) -> PyResult<Bound<'py, PyAny>> {
    let none = || Ok(py.None().into_bound(py));
    let (Some(torch), Some(index)) = (TORCH.get(py), index) else { return none() };
    let is_plain = |tensor: &&Bound<'py, PyAny>| {
        let kind = tensor.get_type_ptr().cast();
        torch.plain.iter().any(|plain| plain.as_ptr() == kind)
    };
    if !tensors.iter().all(is_plain) {
        return none();
    }
    for watcher in &torch.watchers {
        if watcher.bind(py).call0()?.is_truthy()? {
            return none();
        }
    }
    let level = torch.forward_ad.bind(py).getattr(intern!(py, "_current_level"));
    if level.and_then(|level| level.extract::<i64>()).is_ok_and(|level| level >= 0) {
        return none();
    }
    let mut may_learn = false;
    for tensor in tensors {
        may_learn = may_learn || tensor.getattr(intern!(py, "requires_grad"))?.is_truthy()?;
    }
    if may_learn && torch.is_grad_enabled.bind(py).call0()?.is_truthy()? {
        return Ok(PyBool::new(py, true).to_owned().into_any());
    }
    let stream = torch.current_stream.bind(py).call1((index,))?.extract()?;
    let call = Call { py, torch, index, stream };
    Ok(work(&call)?.unwrap_or_else(|| py.None().into_bound(py)))
}

/// A call that goes past the dispatcher.
pub(crate) struct Call<'py> {
    pub(crate) py: Python<'py>,
    torch: &'py Torch,
    index: i32,
    pub(crate) stream: usize,
}

/// A tensor of values, as kernels see it: sizes and strides in elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    pub(crate) address: u64,
    pub(crate) dtype: Dtype,
    axes: usize,
    shape: [usize; MOST_AXES],
    strides: [usize; MOST_AXES],
}

impl Operand {
    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape[..self.axes]
    }

    pub(crate) fn strides(&self) -> &[usize] {
        &self.strides[..self.axes]
    }

    /// Whether it has no gaps, and its last axis is the fastest.
    pub(crate) fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        self.shape().iter().zip(self.strides()).rev().all(|(&size, &stride)| {
            let is_right = size <= 1 || stride == expected;
            expected *= size;
            is_right
        })
    }

    /// The matrices that it is: None, or how many of a batch. Of other axes nothing.
    pub(crate) fn matrices(&self) -> Option<Option<usize>> {
        match *self.shape() {
            [_, _] => Some(None),
            [batch, _, _] if batch > 0 => Some(Some(batch)),
            _ => None,
        }
    }

    /// Address, elements from row to row, and elements from matrix to matrix, if it is a matrix of these sizes, or so many, whose rows
    /// are in one piece each and do not overlap.
    pub(crate) fn rows(
        &self,
        batch: Option<usize>,
        rows: usize,
        columns: usize,
    ) -> Option<(u64, usize, usize)> {
        let is_expected = match (batch, self.shape()) {
            (None, shape) => shape == [rows, columns],
            (Some(batch), shape) => shape == [batch, rows, columns],
        };
        let [.., row_stride, stride] = *self.strides() else { return None };
        // Of one row at most it says nothing, and plans are not to depend on it.
        let row_stride = if rows <= 1 { columns } else { row_stride };
        if !is_expected || (columns > 1 && stride != 1) || row_stride < columns {
            return None;
        }
        let apart = if batch.is_some_and(|batch| batch > 1) { self.strides[0] } else { rows * row_stride };
        Some((self.address, row_stride, apart))
    }

    /// Samples × heads as heads, if all are equally far apart.
    pub(crate) fn merged(self) -> Option<Self> {
        let ([samples, heads, tokens, dim], [of_sample, of_head, of_token, one]) = (self.shape, self.strides);
        if self.axes != 4 {
            return Some(self);
        }
        if samples > 1 && heads > 1 && of_sample != heads * of_head {
            return None;
        }
        let apart = if heads > 1 { of_head } else { of_sample };
        let (shape, strides) = ([samples * heads, tokens, dim, 0], [apart, of_token, one, 0]);
        Some(Self { axes: 3, shape, strides, ..self })
    }
}

impl<'py> Call<'py> {
    /// Where a tensor lies, if it is one of values on the call's GPU.
    pub(crate) fn operand(&self, tensor: &Bound<'py, PyAny>) -> PyResult<Option<Operand>> {
        match &self.torch.read {
            Some(read) => read.operand(tensor, [self.torch.device_type, self.index]),
            // What has no strides, say: the other way explains it.
            None => Ok(self.operand_by_attributes(tensor).unwrap_or(None)),
        }
    }

    fn operand_by_attributes(&self, tensor: &Bound<'py, PyAny>) -> PyResult<Option<Operand>> {
        let py = self.py;
        if tensor.call_method0(intern!(py, "get_device"))?.extract::<i32>()? != self.index {
            return Ok(None);
        }
        let dtype = tensor.getattr(intern!(py, "dtype"))?;
        let place = self.torch.dtypes.iter().position(|known| known.as_ptr() == dtype.as_ptr());
        let values = [Dtype::F32, Dtype::F16, Dtype::Bf16];
        let Some(&dtype) = place.and_then(|place| values.get(place)) else {
            return Ok(None);
        };
        let sizes = tensor.getattr(intern!(py, "shape"))?.extract::<Vec<usize>>()?;
        let steps = tensor.call_method0(intern!(py, "stride"))?.extract::<Vec<usize>>()?;
        if sizes.len() > MOST_AXES {
            return Ok(None);
        }
        let (mut shape, mut strides) = ([0; MOST_AXES], [0; MOST_AXES]);
        shape[..sizes.len()].copy_from_slice(&sizes);
        strides[..steps.len()].copy_from_slice(&steps);
        let address = tensor.call_method0(intern!(py, "data_ptr"))?.extract()?;
        Ok(Some(Operand { address, dtype, axes: sizes.len(), shape, strides }))
    }

    /// Values of a pattern with `nnz` nonzeros, if they are; one each, or `batch` times. And if kernels may read them where they are: aligned, in a row, and
    /// with memory up to `stride` elements: theirs, or of the same page.
    pub(crate) fn values(
        &self,
        tensor: &Bound<'py, PyAny>,
        [nnz, stride]: [usize; 2],
    ) -> PyResult<Option<(Operand, Option<usize>)>> {
        let Some(values) = self.operand(tensor)? else { return Ok(None) };
        let batch = match *values.shape() {
            [one] if one == nnz => None,
            [batch, one] if one == nnz && batch > 0 => Some(batch),
            _ => return Ok(None),
        };
        let step = values.strides[values.axes - 1];
        let apart = batch.is_none_or(|batch| batch == 1 || values.strides[0] == stride);
        if (nnz > 1 && step != 1) || !apart || !values.address.is_multiple_of(16) {
            return Ok(None);
        }
        let all = batch.unwrap_or(1) * stride;
        // Pages are there or not as a whole. A look at the storage takes longer than all other checks.
        let page_of =
            |elements: usize| (values.address + (elements * values.dtype.bytes()) as u64 - 1) / PAGE;
        if nnz > 0 && page_of(all - stride + nnz) == page_of(all) {
            return Ok(Some((values, batch)));
        }
        let py = self.py;
        let storage = tensor.call_method0(intern!(py, "untyped_storage"))?;
        let bytes = storage.call_method0(intern!(py, "nbytes"))?.extract::<usize>()?;
        let offset = tensor.call_method0(intern!(py, "storage_offset"))?.extract::<usize>()?;
        let room = (bytes / values.dtype.bytes()).saturating_sub(offset);
        Ok((room >= all).then_some((values, batch)))
    }

    /// A new tensor without gaps, and its address; nothing if another GPU than the call's is the current one, where such tensors are made.
    pub(crate) fn empty(&self, shape: &[usize], dtype: Dtype) -> PyResult<Option<(Bound<'py, PyAny>, u64)>> {
        let tensor = self.empty_of(shape, dtype as usize)?;
        let address = self.operand(&tensor)?.map(|operand| operand.address);
        Ok(address.map(|address| (tensor, address)))
    }

    /// The same for indices of 32 bits.
    pub(crate) fn empty_indices(&self, shape: &[usize]) -> PyResult<(Bound<'py, PyAny>, u64)> {
        let tensor = self.empty_of(shape, self.torch.dtypes.len() - 1)?;
        let address = tensor.call_method0(intern!(self.py, "data_ptr"))?.extract()?;
        Ok((tensor, address))
    }

    /// A new tensor of one of the types.
    fn empty_of(&self, shape: &[usize], dtype: usize) -> PyResult<Bound<'py, PyAny>> {
        let mut strides = [1; MOST_AXES];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis].max(1);
        }
        let sizes = (PyTuple::new(self.py, shape)?, PyTuple::new(self.py, &strides[..shape.len()])?);
        let dtype = self.torch.dtypes[dtype].bind(self.py);
        self.torch.empty.bind(self.py).call1((sizes.0, sizes.1, dtype))
    }

    /// A new tensor for values, with room after them, and its address.
    pub(crate) fn empty_values(
        &self,
        batch: Option<usize>,
        [nnz, stride]: [usize; 2],
        dtype: Dtype,
    ) -> PyResult<Option<(Bound<'py, PyAny>, u64)>> {
        let Some((room, address)) = self.empty(&[batch.unwrap_or(1) * stride], dtype)? else {
            return Ok(None);
        };
        let reinterpret = self.torch.reinterpret.bind(self.py);
        let values = match batch {
            None => reinterpret.call1((room, (nnz,), (1,), 0)),
            Some(batch) => reinterpret.call1((room, (batch, nnz), (stride, 1), 0)),
        };
        Ok(Some((values?, address)))
    }
}

/// DLPack's `DLDataType`.
#[repr(C)]
struct DlDataType {
    kind: u8,
    bits: u8,
    lanes: u16,
}

/// DLPack's `DLTensor`, as its header has it.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: [i32; 2],
    axes: i32,
    dtype: DlDataType,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// DLPack's `DLPackExchangeAPI`, major version 1.
#[repr(C)]
struct ExchangeApi {
    version: [u32; 2],
    previous: *const c_void,
    unused: [*const c_void; 3],
    read: Option<unsafe extern "C" fn(*mut c_void, *mut DlTensor) -> c_int>,
}

/// PyTorch's function that says where a tensor lies.
#[derive(Clone, Copy)]
struct Read(unsafe extern "C" fn(*mut c_void, *mut DlTensor) -> c_int);

impl Read {
    /// The function in a capsule `dlpack_exchange_api`, if its version is known here.
    fn of(capsule: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        // SAFETY: the name ends with a zero; the capsule's type and name are checked by the call.
        let api = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), c"dlpack_exchange_api".as_ptr()) };
        if api.is_null() {
            return Err(PyErr::take(capsule.py())
                .unwrap_or_else(|| PyTypeError::new_err("the capsule holds no table of functions")));
        }
        // SAFETY: a capsule of this name points to such a table, which stays as long as the process; its head is the same in all versions.
        let api = unsafe { &*api.cast::<ExchangeApi>() };
        Ok(if api.version[0] == 1 { api.read.map(Self) } else { None })
    }

    fn operand(self, tensor: &Bound<'_, PyAny>, device: [i32; 2]) -> PyResult<Option<Operand>> {
        let mut found = MaybeUninit::<DlTensor>::uninit();
        // SAFETY: the type of `tensor` is one that the function is for, Python's lock is held, and the place is live.
        let status = unsafe { (self.0)(tensor.as_ptr().cast(), found.as_mut_ptr()) };
        if status != 0 {
            // What has no memory, say: the other way explains it.
            drop(PyErr::take(tensor.py()));
            return Ok(None);
        }
        // SAFETY: where the status is 0, the function has written all of it.
        let found = unsafe { found.assume_init() };
        let DlDataType { kind, bits, lanes } = found.dtype;
        let dtype = match (kind, bits, lanes) {
            (2, 32, 1) => Dtype::F32,
            (2, 16, 1) => Dtype::F16,
            (4, 16, 1) => Dtype::Bf16,
            _ => return Ok(None),
        };
        let axes = usize::try_from(found.axes).unwrap_or(usize::MAX);
        if found.device != device || axes > MOST_AXES || found.strides.is_null() || found.shape.is_null() {
            return Ok(None);
        }
        let (mut shape, mut strides) = ([0; MOST_AXES], [0; MOST_AXES]);
        for axis in 0..axes {
            // SAFETY: both arrays have as many numbers as the tensor has axes, and are the tensor's, which is alive.
            let (size, step) = unsafe { (*found.shape.add(axis), *found.strides.add(axis)) };
            (shape[axis], strides[axis]) = (size as usize, step as usize);
        }
        let address = found.data as u64 + found.byte_offset;
        Ok(Some(Operand { address, dtype, axes, shape, strides }))
    }
}
