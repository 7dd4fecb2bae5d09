//! The GPU generations that PTX is built for.
use std::fmt;
use std::str::FromStr;

/// A generation of NVIDIA GPUs. PTX for one runs on every newer GPU too, but for PTX of [`Sm90a`](Target::Sm90a).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Volta: V100.
    Sm70,
    /// Ampere: A100. Adds asynchronous copies to shared memory.
    Sm80,
    /// Hopper: H100, H200. Adds products of warpgroups. For compute capability 9.0 only: newer GPUs do not take it.
    Sm90a,
}

/// What one streaming multiprocessor (SM) of a target has to share among its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmLimits {
    /// Registers of 32 bits.
    pub registers: u32,
    /// Resident threads.
    pub threads: u32,
    /// Resident blocks.
    pub blocks: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
    /// Bytes of shared memory that the system takes for each block.
    pub shared_reserved: u32,
    /// Shared memory is handed out in multiples of this many bytes.
    pub shared_granularity: u32,
}

impl Target {
    /// Every target, oldest first.
    pub const ALL: [Self; 3] = [Self::Sm70, Self::Sm80, Self::Sm90a];

    /// The compiler's name of the target, as in `sm_80`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sm70 => "sm_70",
            Self::Sm80 => "sm_80",
            Self::Sm90a => "sm_90a",
        }
    }

    /// The compute capability times ten, as in 80.
    pub const fn level(self) -> u32 {
        match self {
            Self::Sm70 => 70,
            Self::Sm80 => 80,
            Self::Sm90a => 90,
        }
    }

    /// The PTX version that is asked for: the oldest that has all the instructions we use, so that old drivers
    /// take it. 7.4 brings cache hints on loads (CUDA 11.4); `sm_90a` begins with 8.0 (CUDA 12.0).
    pub const fn ptx_feature(self) -> &'static str {
        match self {
            Self::Sm70 | Self::Sm80 => "+ptx74",
            Self::Sm90a => "+ptx80",
        }
    }

    /// What an SM of this target has.
    pub const fn limits(self) -> SmLimits {
        let (shared_kib, shared_reserved, shared_granularity) = match self {
            Self::Sm70 => (96, 0, 256),
            Self::Sm80 => (164, 1024, 128),
            Self::Sm90a => (228, 1024, 128),
        };
        SmLimits {
            registers: 65_536,
            threads: 2_048,
            blocks: 32,
            shared_bytes: shared_kib * 1024,
            shared_reserved,
            shared_granularity,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no [`Target`]'s.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown target `{0}`: expected one of sm_70, sm_80, sm_90a")]
pub struct ParseTargetError(pub String);

impl FromStr for Target {
    type Err = ParseTargetError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|target| target.name() == name)
            .ok_or_else(|| ParseTargetError(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for target in Target::ALL {
            assert_eq!(target.name().parse(), Ok(target));
            let family = target.name().trim_end_matches('a');
            assert_eq!(family, format!("sm_{}", target.level()));
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        for name in ["sm_75", "sm_90"] {
            let error = name.parse::<Target>().unwrap_err();
            let expected = format!("unknown target `{name}`: expected one of sm_70, sm_80, sm_90a");
            assert_eq!(error.to_string(), expected);
        }
    }
}
