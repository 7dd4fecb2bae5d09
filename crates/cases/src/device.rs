//! Names of devices on the command line.
use lacuna::Device;

/// One device, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceName {
    /// `sim`: the simulator.
    Simulator,
    /// `cuda:INDEX`: a GPU, by the driver's index.
    Cuda(usize),
}

impl DeviceName {
    /// The device of a name; none for another name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "sim" => Some(Self::Simulator),
            _ => name.strip_prefix("cuda:")?.parse().ok().map(Self::Cuda),
        }
    }

    /// Opens the device.
    ///
    /// # Errors
    /// Those of [`Device::cuda`].
    pub fn open(self) -> lacuna::Result<Device> {
        match self {
            Self::Simulator => Ok(Device::simulator()),
            Self::Cuda(index) => Device::cuda(index),
        }
    }
}

impl std::fmt::Display for DeviceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Simulator => f.write_str("sim"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in ["sim", "cuda:0", "cuda:13"] {
            assert_eq!(DeviceName::parse(name).unwrap().to_string(), name);
        }
        for name in ["", "auto", "all", "cuda", "cuda:", "cuda:x", "sim:0"] {
            assert_eq!(DeviceName::parse(name), None, "{name}");
        }
    }
}
