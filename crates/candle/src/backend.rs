//! Where sparse operations run.
use candle_core::{Device, DeviceLocation, Result, bail};

use crate::frame::wrap;

/// A GPU of candle's; or Lacuna's simulator, for tensors on the CPU. Clones are the same. What is made on one cannot be used with
/// another: make one, and keep it.
#[derive(Clone, Debug)]
pub struct Backend {
    device: Device,
    lacuna: lacuna::Device,
}

impl Backend {
    /// The GPU of this device.
    ///
    /// # Errors
    /// For the CPU: there are no sparse kernels for it. [`Backend::simulator`] has to be asked for by its name, as it is made to
    /// check kernels, and takes thousands of times as long as a CPU needs. For Metal. What the driver says.
    pub fn of(device: &Device) -> Result<Self> {
        match device.location() {
            DeviceLocation::Cuda { gpu_id } => {
                // Both have the GPU's primary context, by the driver's number of it.
                Ok(Self { device: device.clone(), lacuna: lacuna::Device::cuda(gpu_id).map_err(wrap)? })
            }
            other => bail!(
                "a CUDA device is expected, but got {other:?}: there are no sparse kernels for it; Backend::simulator() runs \
                 those of GPUs on tensors of the CPU, to test, and slowly"
            ),
        }
    }

    /// Lacuna's simulator, for tensors on the CPU: the GPU's kernels, step by step, with every access checked. To test what will run
    /// on a GPU. Tensors are copied there and back.
    pub fn simulator() -> Self {
        Self { device: Device::Cpu, lacuna: lacuna::Device::simulator() }
    }

    /// Where its tensors are.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Lacuna's device.
    pub fn lacuna(&self) -> &lacuna::Device {
        &self.lacuna
    }

    /// The stream of candle's device.
    pub(crate) fn stream(&self) -> Result<lacuna::Stream> {
        match &self.device {
            #[cfg(feature = "cuda")]
            Device::Cuda(device) => crate::frame::stream_of(&self.lacuna, &device.cuda_stream()),
            _ => self.lacuna.stream().map_err(wrap),
        }
    }

    /// An error unless tensors of `got` are this one's.
    pub(crate) fn expect(&self, operation: &str, got: DeviceLocation) -> Result<()> {
        let expected = self.device.location();
        if got == expected {
            return Ok(());
        }
        let hint = match expected {
            DeviceLocation::Cpu => "the pattern is on the simulator, which takes tensors of the CPU",
            _ => "move the tensors there, or make the pattern where they are",
        };
        bail!("{operation}: tensors on {expected:?} are expected, but got {got:?}: {hint}")
    }
}
