//! What the measurements ran on.
use std::process::Command;
use std::sync::LazyLock;

use anyhow::Result;
use lacuna::{Device, Error};
use lacuna_cases::device::DeviceName;
use lacuna_cases::exit::Usage;
use serde::{Deserialize, Serialize};

/// The device by its name on the command line.
///
/// # Errors
/// [`Usage`] for another name; the library's error for a device that is not there.
pub fn device(name: &str) -> Result<Device> {
    if name == "auto" {
        return Ok(Device::best()?);
    }
    let wrong =
        || Usage(format!("there is no device `{name}`: expected `auto`, `sim` or `cuda:0`, `cuda:1`, …"));
    Ok(DeviceName::parse(name).ok_or_else(wrong)?.open()?)
}

/// As [`device`], for one of several processes on a host, by its number among them: `cuda` and `auto` are the GPU of that number,
/// from the first again where there are more processes than GPUs.
///
/// # Errors
/// As [`device`].
pub fn device_of(name: &str, process: usize) -> Result<Device> {
    if !["auto", "cuda"].contains(&name) {
        return device(name);
    }
    let gpu = match Device::cuda(process) {
        Err(Error::NoDevice { count, .. }) if count > 0 => Device::cuda(process % count),
        other => other,
    };
    match gpu {
        Err(Error::NoCuda | Error::NoDriver { .. } | Error::NoDevice { .. }) if name == "auto" => {
            Ok(Device::simulator())
        }
        other => Ok(other?),
    }
}

/// The machine, as every record names it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct MachineRecord {
    /// The device's name.
    pub device: String,
    /// Its compute capability, 90 for 9.0; none in records of before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm: Option<u32>,
    /// Its multiprocessors; none in records of before they were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiprocessors: Option<u32>,
    /// The newest CUDA that the driver offers.
    pub driver: String,
    /// SM and memory clocks of the first GPU as `nvidia-smi` shows them at the start, and their limits; none without it.
    pub clocks: Option<String>,
    /// The git revision of the program.
    pub revision: String,
}

impl MachineRecord {
    /// The machine that `device` is part of.
    pub fn of(device: &Device) -> Self {
        let info = device.info();
        Self {
            device: info.name.clone(),
            sm: Some(info.sm),
            multiprocessors: Some(info.multiprocessors),
            driver: info.driver.clone(),
            clocks: if device.is_simulator() { None } else { CLOCKS.clone() },
            revision: env!("LACUNA_REVISION").into(),
        }
    }
}

/// The clocks when the first record was begun.
static CLOCKS: LazyLock<Option<String>> = LazyLock::new(clocks);

fn clocks() -> Option<String> {
    let query = "--query-gpu=clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem";
    let output = Command::new("nvidia-smi").args([query, "--format=csv,noheader"]).output().ok()?;
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.lines().next()?.trim().to_string())
}
