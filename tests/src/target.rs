//! The devices to run on, by name.
use std::str::FromStr;

use lacuna::{Device, Error};

/// What `--device` may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceName {
    /// The simulator, and every GPU that can be used.
    All,
    /// The simulator.
    Simulator,
    /// A GPU, by the driver's index.
    Cuda(usize),
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "all" => return Ok(Self::All),
            "sim" => return Ok(Self::Simulator),
            _ => {}
        }
        let index = name.strip_prefix("cuda:").and_then(|index| index.parse().ok());
        index.map(Self::Cuda).ok_or_else(|| "expected `sim`, `cuda:INDEX` or `all`".into())
    }
}

/// A device under test.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name on the command line.
    pub name: String,
    /// The device.
    pub device: Device,
}

impl Target {
    /// A new simulator.
    pub fn simulator() -> Self {
        Self { name: "sim".into(), device: Device::simulator() }
    }

    fn cuda(index: usize) -> lacuna::Result<Self> {
        Ok(Self { name: format!("cuda:{index}"), device: Device::cuda(index)? })
    }
}

/// Opens the devices of these names, each once.
///
/// # Errors
/// Those of [`Device::cuda`]. For [`DeviceName::All`] the lack of a driver or of GPUs is none.
pub fn open(names: &[DeviceName]) -> lacuna::Result<Vec<Target>> {
    let mut targets: Vec<Target> = Vec::new();
    for name in names {
        let found = match *name {
            DeviceName::Simulator => vec![Target::simulator()],
            DeviceName::Cuda(index) => vec![Target::cuda(index)?],
            DeviceName::All => all()?,
        };
        for target in found {
            if targets.iter().all(|opened| opened.name != target.name) {
                targets.push(target);
            }
        }
    }
    Ok(targets)
}

fn all() -> lacuna::Result<Vec<Target>> {
    let mut targets = vec![Target::simulator()];
    for index in 0.. {
        match Target::cuda(index) {
            Ok(target) => targets.push(target),
            Err(Error::NoCuda | Error::NoDriver { .. } | Error::NoDevice { .. }) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!("all".parse(), Ok(DeviceName::All));
        assert_eq!("sim".parse(), Ok(DeviceName::Simulator));
        assert_eq!("cuda:3".parse(), Ok(DeviceName::Cuda(3)));
        for bad in ["", "cuda", "cuda:", "cuda:-1", "gpu", "cuda:0x"] {
            assert!(bad.parse::<DeviceName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_device_named_twice_is_opened_once() {
        let targets = open(&[DeviceName::Simulator, DeviceName::Simulator]).unwrap();
        assert_eq!(targets.len(), 1);
    }
}
