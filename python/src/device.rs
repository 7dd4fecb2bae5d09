//! Devices, streams, and memory of the simulator.
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use lacuna::Stream;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{input, raise};
use crate::plans::Plans;

/// A GPU with its primary context, or the simulator.
#[pyclass(frozen)]
pub(crate) struct Device {
    pub(crate) inner: lacuna::Device,
    /// Plans that belong to no pattern.
    pub(crate) plans: Plans,
    /// Its number among GPUs; none of a simulator.
    pub(crate) index: Option<i32>,
}

impl Device {
    fn new(inner: lacuna::Device, index: Option<i32>) -> Self {
        Self { inner, plans: Plans::default(), index }
    }
}

#[pymethods]
impl Device {
    /// GPU `index`, by the driver's numbers.
    #[staticmethod]
    fn cuda(py: Python<'_>, index: usize) -> PyResult<Self> {
        let made = py.detach(|| lacuna::Device::cuda(index)).map_err(|error| raise(&error))?;
        Ok(Self::new(made, i32::try_from(index).ok()))
    }

    /// A new simulator.
    #[staticmethod]
    fn simulator() -> Self {
        Self::new(lacuna::Device::simulator(), None)
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.info().name
    }

    /// Compute capability as one number: 90 is 9.0.
    #[getter]
    fn sm(&self) -> u32 {
        self.inner.info().sm
    }

    /// Whether it is the simulator.
    #[getter]
    fn is_simulator(&self) -> bool {
        self.inner.is_simulator()
    }

    /// So many bytes of zeros, in the library's own memory.
    fn memory(&self, py: Python<'_>, bytes: usize) -> PyResult<Memory> {
        let buffer = py.detach(|| self.inner.zeros::<u8>(bytes)).map_err(|error| raise(&error))?;
        Ok(Memory { buffer: Mutex::new(buffer) })
    }
}

/// Memory that the library made: the simulator's, which works on no other.
#[pyclass(frozen)]
pub(crate) struct Memory {
    buffer: Mutex<lacuna::Buffer<u8>>,
}

#[pymethods]
impl Memory {
    /// The device's address of the first byte, a multiple of 256.
    #[getter]
    fn address(&self) -> u64 {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner).as_slice().address()
    }

    /// Replaces the first bytes.
    fn upload(&self, bytes: &[u8]) -> PyResult<()> {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut part = buffer.slice_mut(..bytes.len()).map_err(|error| raise(&error))?;
        part.upload(bytes).map_err(|error| raise(&error))
    }

    /// The first `bytes` bytes, after all work.
    fn download<'py>(&self, py: Python<'py>, bytes: usize) -> PyResult<Bound<'py, PyBytes>> {
        let contents = py.detach(|| {
            let buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
            buffer.slice(..bytes)?.download(&buffer.device().stream()?)
        });
        Ok(PyBytes::new(py, &contents.map_err(|error| raise(&error))?))
    }
}

/// The caller's stream, by its handle.
///
/// # Safety
/// The stream is live as long as what this gives.
pub(crate) unsafe fn stream(device: &lacuna::Device, handle: usize) -> lacuna::Result<Stream> {
    // SAFETY: as promised by the caller.
    unsafe { Stream::from_raw(device, handle as *mut c_void) }
}

/// The type of values, by its place in the Python files' list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Dtype {
    F32,
    F16,
    Bf16,
}

impl Dtype {
    /// Of a value.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Dtype {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<u8>()? {
            0 => Ok(Self::F32),
            1 => Ok(Self::F16),
            2 => Ok(Self::Bf16),
            other => Err(input(format!("there is no type {other} of values"))),
        }
    }
}

/// Calls a block with a name for the type that a [`Dtype`] stands for.
macro_rules! with_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::device::Dtype::F32 => {
                type $T = f32;
                $body
            }
            $crate::device::Dtype::F16 => {
                type $T = half::f16;
                $body
            }
            $crate::device::Dtype::Bf16 => {
                type $T = half::bf16;
                $body
            }
        }
    };
}
pub(crate) use with_type;
