//! The machine that a suite is for: which sizes, and whose model on the simulator.
use lacuna::Device;

use lacuna_cases::exit::Usage;

/// A machine that the papers or we measure on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    name: &'static str,
    memory_bytes: f64,
}

const GIB: f64 = (1_u64 << 30) as f64;
/// The part of the memory that problems may take.
const USABLE: f64 = 0.9;

const PROFILES: [Profile; 3] = [
    Profile { name: "V100", memory_bytes: 16.0 * GIB },
    Profile { name: "A100", memory_bytes: 40.0 * GIB },
    Profile { name: "H200", memory_bytes: 141.0 * GIB },
];

impl Profile {
    /// The profile of a name: `v100`, `a100` or `h200`.
    ///
    /// # Errors
    /// [`Usage`] for another name.
    pub fn named(name: &str) -> Result<Self, Usage> {
        let found = PROFILES.into_iter().find(|profile| profile.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            Usage(format!(
                "there is no profile `{name}`: expected `v100`, `a100`, `h200` or, to measure, `auto`"
            ))
        })
    }

    /// The profile of a name; `auto` is the device's own, or of those the one that is most like it: H200 for the
    /// simulator and for GPUs without one. No profile has more memory than a GPU has.
    ///
    /// # Errors
    /// [`Usage`] for another name.
    pub fn find(name: &str, device: &Device) -> Result<Self, Usage> {
        let info = device.info();
        let mut profile = match name {
            "auto" => PROFILES.into_iter().find(|profile| info.name.contains(profile.name)),
            _ => Some(Self::named(name)?),
        }
        .unwrap_or(PROFILES[PROFILES.len() - 1]);
        if !device.is_simulator() {
            profile.memory_bytes = profile.memory_bytes.min(info.memory_bytes as f64);
        }
        Ok(profile)
    }

    /// The machine's name, as the simulator's model has it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Bytes that a problem may take on it.
    pub(crate) fn usable_bytes(&self) -> f64 {
        USABLE * self.memory_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(Profile::named("V100").unwrap().name(), "V100");
        assert!(Profile::named("tpu").unwrap_err().to_string().contains("a100"));
        assert_eq!(Profile::find("auto", &Device::simulator()).unwrap().name(), "H200");
        assert_eq!(Profile::find("a100", &Device::simulator()).unwrap().name(), "A100");
    }
}
