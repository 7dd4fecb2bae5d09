//! One frame for all operations: from candle's storages to addresses, and back.
#[cfg(feature = "cuda")]
use std::sync::Arc;

use candle_core::{CpuStorage, DType, Device, Layout, Result, Shape, bail};
use lacuna::Stream;

use crate::dense::extent;
use crate::element::with_element;
use crate::{Backend, Element};

/// An operation of `N` tensors of one type, with one result of that type.
pub(crate) trait Operation<const N: usize> {
    /// What errors call it.
    const NAME: &'static str;

    fn backend(&self) -> &Backend;

    /// The result's shape, once the operands' are checked. Results are filled with zeros first where not all of them is written.
    fn result(&self, dtype: DType, operands: [&Layout; N]) -> Result<(Shape, Contents)>;

    /// Gives the work to the stream. Layouts are those that `result` has checked.
    ///
    /// # Safety
    /// The addresses are of live elements of `T` on the backend's device, as many as the layouts reach over, and as many as the result
    /// has; they stay until the stream has come to this, and nobody writes them, or reads the result, meanwhile.
    unsafe fn launch<T: Element>(
        &self,
        stream: &Stream,
        operands: [(u64, &Layout); N],
        result: u64,
    ) -> lacuna::Result<()>;
}

/// What a result holds before the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    Any,
    Zeros,
}

/// An error of Lacuna's as one of candle's.
pub(crate) fn wrap(error: lacuna::Error) -> candle_core::Error {
    candle_core::Error::wrap(error)
}

/// The type of all operands.
fn dtype_of<const N: usize>(operation: &str, types: [DType; N]) -> Result<DType> {
    match types.iter().find(|&&dtype| dtype != types[0]) {
        None => Ok(types[0]),
        Some(other) => {
            bail!("{operation}: tensors are of {:?} and of {other:?}, but one type is expected", types[0])
        }
    }
}

/// Tensors of the CPU: to the simulator and back.
pub(crate) fn on_cpu<const N: usize, O: Operation<N>>(
    operation: &O,
    operands: [(&CpuStorage, &Layout); N],
) -> Result<(CpuStorage, Shape)> {
    use candle_core::backend::BackendStorage as _;
    operation.backend().expect(O::NAME, Device::Cpu.location())?;
    let dtype = dtype_of(O::NAME, operands.map(|(storage, _)| storage.dtype()))?;
    with_element!(O::NAME, dtype, T => simulate::<T, N, O>(operation, operands))
}

fn simulate<T: Element, const N: usize, O: Operation<N>>(
    operation: &O,
    operands: [(&CpuStorage, &Layout); N],
) -> Result<(CpuStorage, Shape)> {
    let device = operation.backend().lacuna();
    let layouts = operands.map(|(_, layout)| layout);
    let (shape, _) = operation.result(T::DTYPE, layouts)?;
    let mut buffers = Vec::with_capacity(N);
    for (storage, layout) in operands {
        let start = layout.start_offset();
        let part = &T::cpu_storage_as_slice(storage)?[start..start + extent(layout)];
        buffers.push(device.upload(part).map_err(wrap)?);
    }
    let result = device.zeros::<T>(shape.elem_count()).map_err(wrap)?;
    let stream = device.stream().map_err(wrap)?;
    let addresses = std::array::from_fn(|i| (buffers[i].as_slice().address(), layouts[i]));
    // SAFETY: the buffers are as long as the layouts and the shape say, and nobody else has them; the download waits.
    unsafe { operation.launch::<T>(&stream, addresses, result.as_slice().address()).map_err(wrap)? };
    Ok((T::to_cpu_storage_owned(result.download(&stream).map_err(wrap)?), shape))
}

/// Candle's stream, as Lacuna's.
#[cfg(feature = "cuda")]
pub(crate) fn stream_of(
    device: &lacuna::Device,
    stream: &Arc<candle_core::cuda::cudarc::driver::CudaStream>,
) -> Result<Stream> {
    // SAFETY: candle's device keeps its stream, and who calls keeps the device longer than what this gives.
    unsafe { Stream::from_raw(device, stream.cu_stream().cast()).map_err(wrap) }
}

/// Tensors of a GPU: by their addresses.
#[cfg(feature = "cuda")]
pub(crate) fn on_gpu<const N: usize, O: Operation<N>>(
    operation: &O,
    operands: [(&candle_core::CudaStorage, &Layout); N],
) -> Result<(candle_core::CudaStorage, Shape)> {
    use candle_core::backend::{BackendDevice as _, BackendStorage as _};
    for (storage, _) in operands {
        operation.backend().expect(O::NAME, storage.device().location())?;
    }
    let dtype = dtype_of(O::NAME, operands.map(|(storage, _)| storage.dtype()))?;
    with_element!(O::NAME, dtype, T => launch::<T, N, O>(operation, operands))
}

#[cfg(feature = "cuda")]
fn launch<T: Element, const N: usize, O: Operation<N>>(
    operation: &O,
    operands: [(&candle_core::CudaStorage, &Layout); N],
) -> Result<(candle_core::CudaStorage, Shape)> {
    use candle_core::CudaStorage;
    use candle_core::cuda::cudarc::driver::{DevicePtr as _, DevicePtrMut as _};

    let device = operands[0].0.device.clone();
    let layouts = operands.map(|(_, layout)| layout);
    let (shape, contents) = operation.result(T::DTYPE, layouts)?;
    // The driver has no memory of no elements.
    let len = shape.elem_count().max(1);
    let mut result = match contents {
        Contents::Zeros => device.alloc_zeros::<T>(len)?,
        // SAFETY: the work writes all elements.
        Contents::Any => unsafe { device.alloc::<T>(len)? },
    };
    let on = device.cuda_stream();
    let stream = stream_of(operation.backend().lacuna(), &on)?;
    {
        // Candle's records of who reads and who writes end with these, after the work is given to the stream.
        let mut held = Vec::with_capacity(N);
        for (storage, layout) in operands {
            let (address, guard) = storage.as_cuda_slice::<T>()?.device_ptr(&on);
            held.push((address + (layout.start_offset() * size_of::<T>()) as u64, guard));
        }
        let (address, _guard) = result.device_ptr_mut(&on);
        let addresses = std::array::from_fn(|i| (held[i].0, layouts[i]));
        // SAFETY: the storages are of these types, and as long as their layouts say; candle frees memory in the order of the stream.
        unsafe { operation.launch::<T>(&stream, addresses, address).map_err(wrap)? };
    }
    Ok((CudaStorage::wrap_cuda_slice(result, device), shape))
}

/// The forward passes of a `CustomOp`, for an [`Operation`].
macro_rules! forward {
    ($($storage:ident $layout:ident),+) => {
        fn name(&self) -> &'static str {
            <Self as $crate::frame::Operation<_>>::NAME
        }
        fn cpu_fwd(
            &self,
            $($storage: &candle_core::CpuStorage, $layout: &candle_core::Layout),+
        ) -> candle_core::Result<(candle_core::CpuStorage, candle_core::Shape)> {
            $crate::frame::on_cpu(self, [$(($storage, $layout)),+])
        }
        #[cfg(feature = "cuda")]
        fn cuda_fwd(
            &self,
            $($storage: &candle_core::CudaStorage, $layout: &candle_core::Layout),+
        ) -> candle_core::Result<(candle_core::CudaStorage, candle_core::Shape)> {
            $crate::frame::on_gpu(self, [$(($storage, $layout)),+])
        }
    };
}
pub(crate) use forward;
