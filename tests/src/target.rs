//! The devices to run on, by name.
use std::str::FromStr;

use lacuna::{Device, Error};
use lacuna_cases::device::DeviceName;

/// What `--device` may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Devices {
    /// The simulator, and every GPU that can be used.
    All,
    /// This one.
    One(DeviceName),
}

impl FromStr for Devices {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == "all" {
            return Ok(Self::All);
        }
        DeviceName::parse(name).map(Self::One).ok_or_else(|| "expected `sim`, `cuda:INDEX` or `all`".into())
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

    fn named(name: DeviceName) -> lacuna::Result<Self> {
        Ok(Self { name: name.to_string(), device: name.open()? })
    }
}

/// Opens the devices of these names, each once.
///
/// # Errors
/// Those of [`Device::cuda`]. For [`Devices::All`] the lack of a driver or of GPUs is none, and a GPU that is too old
/// gives a note on stderr.
pub fn open(names: &[Devices]) -> lacuna::Result<Vec<Target>> {
    let mut targets: Vec<Target> = Vec::new();
    for name in names {
        let found = match *name {
            Devices::One(name) => vec![Target::named(name)?],
            Devices::All => all(
                |index| Target::named(DeviceName::Cuda(index)),
                |note| eprintln!("lacuna-verify: {note}"),
            )?,
        };
        for target in found {
            if targets.iter().all(|opened| opened.name != target.name) {
                targets.push(target);
            }
        }
    }
    Ok(targets)
}

/// The simulator, and the GPUs that `open` gives for one index after another. A GPU that is too old is left out, with a
/// word to `note`; a driver that is there and does not work is an error.
fn all(open: impl Fn(usize) -> lacuna::Result<Target>, note: impl Fn(&str)) -> lacuna::Result<Vec<Target>> {
    let mut targets = vec![Target::simulator()];
    for index in 0.. {
        match open(index) {
            Ok(target) => targets.push(target),
            Err(error @ Error::OldGpu { .. }) => note(&format!("cuda:{index} is left out: {error}")),
            Err(Error::NoCuda | Error::NoDriver { .. } | Error::NoDevice { .. }) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn names() {
        assert_eq!("all".parse(), Ok(Devices::All));
        assert_eq!("cuda:3".parse(), Ok(Devices::One(DeviceName::Cuda(3))));
        for bad in ["", "cuda", "cuda:", "cuda:-1", "gpu", "cuda:0x"] {
            assert!(bad.parse::<Devices>().is_err(), "{bad}");
        }
    }

    #[test]
    fn all_are_those_that_can_be_used() {
        let names = |open: fn(usize) -> lacuna::Result<Target>, notes: &RefCell<Vec<String>>| {
            let targets = all(open, |note| notes.borrow_mut().push(note.into()))?;
            Ok::<_, Error>(targets.into_iter().map(|target| target.name).collect::<Vec<_>>())
        };
        let none = RefCell::default();
        assert_eq!(names(|_| Err(Error::NoCuda), &none).unwrap(), ["sim"]);
        assert_eq!(names(|_| Err(Error::NoDriver { why: "none".into() }), &none).unwrap(), ["sim"]);
        assert_eq!(names(|index| Err(Error::NoDevice { index, count: 0 }), &none).unwrap(), ["sim"]);
        let broken = names(|_| Err(Error::BrokenDriver { why: "reset it".into() }), &none);
        assert!(matches!(broken, Err(Error::BrokenDriver { .. })));
        assert!(none.borrow().is_empty());

        // An old GPU, a good one, and no more.
        let mixed = |index| match index {
            0 => Err(Error::OldGpu { name: "K80".into(), major: 3, minor: 7, needed: "7.0".into() }),
            1 => Ok(Target { name: "cuda:1".into(), device: Device::simulator() }),
            _ => Err(Error::NoDevice { index, count: 2 }),
        };
        let notes = RefCell::default();
        assert_eq!(names(mixed, &notes).unwrap(), ["sim", "cuda:1"]);
        let notes = notes.into_inner();
        assert!(notes.len() == 1 && notes[0].contains("cuda:0") && notes[0].contains("K80"), "{notes:?}");
    }

    #[test]
    fn a_device_named_twice_is_opened_once() {
        let targets = open(&[Devices::One(DeviceName::Simulator); 2]).unwrap();
        assert_eq!(targets.len(), 1);
    }
}
