//! What a case is.
use std::fmt;

use lacuna::{Device, Stream};

use crate::Options;

/// One thing that must hold on every device.
pub struct Case {
    name: String,
    about: String,
    effort: Effort,
    body: Body,
}

/// Where and when a case is worth its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Everywhere.
    Quick,
    /// Everywhere, but not with `--quick`, which is for runs under compute-sanitizer: it takes long there, or provokes
    /// an error of the driver, which that tool reports.
    Slow,
    /// On a GPU only, and not with `--quick`: it is too large for the simulator.
    Gpu,
}

/// Where a case runs.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The device under test.
    pub device: &'a Device,
    /// A stream of that device.
    pub stream: &'a Stream,
    /// The seed of this case's inputs.
    pub seed: u64,
}

/// An error of a case that found out that it cannot run here: why. It is skipped then.
#[derive(Debug)]
pub struct NotRun(pub String);

impl fmt::Display for NotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotRun {}

/// What a case does: gives the largest error over its bound, 0 where nothing was rounded, or what is wrong.
type Check = dyn Fn(&Context<'_>) -> anyhow::Result<f64> + Send + Sync;

enum Body {
    Check(Box<Check>),
    /// The case cannot run: why.
    Missing(String),
    /// The case stands for those of a data folder that is still packed.
    Packed(&'static str),
}

impl Case {
    /// A case that runs everywhere. Its name has the form `operation/group/case`; `about` tells in a few words what
    /// is checked. `check` gives the largest error over its bound, 0 where nothing was rounded.
    pub fn new(
        name: impl Into<String>,
        about: impl Into<String>,
        check: impl Fn(&Context<'_>) -> anyhow::Result<f64> + Send + Sync + 'static,
    ) -> Self {
        Self::of(name, about, Effort::Quick, Body::Check(Box::new(check)))
    }

    /// Cases `group/0`, `group/1` and so on, on what is drawn by the seed: so many on the simulator and on a GPU, unless
    /// `options` ask for another number.
    pub(crate) fn random(
        options: Options,
        [simulated, usual]: [usize; 2],
        group: &str,
        about: &str,
        check: impl Fn(&Context<'_>) -> anyhow::Result<f64> + Copy + Send + Sync + 'static,
    ) -> Vec<Self> {
        let case = |i: usize| {
            let few_enough = options.random.is_some() || i < simulated;
            let effort = if few_enough { Effort::Quick } else { Effort::Gpu };
            Self::new(format!("{group}/{i}"), about, check).effort(effort)
        };
        (0..options.random.unwrap_or(usual)).map(case).collect()
    }

    /// A case that stands for others that cannot run, and says why.
    pub fn missing(name: impl Into<String>, about: impl Into<String>, why: impl Into<String>) -> Self {
        Self::of(name, about, Effort::Quick, Body::Missing(why.into()))
    }

    /// A case that stands for others on the data of `folder` until that is unpacked. It is no quick one: nor are they.
    pub fn packed(name: impl Into<String>, about: impl Into<String>, folder: &'static str) -> Self {
        Self::of(name, about, Effort::Slow, Body::Packed(folder))
    }

    fn of(name: impl Into<String>, about: impl Into<String>, effort: Effort, body: Body) -> Self {
        Self { name: name.into(), about: about.into(), effort, body }
    }

    /// The same case, marked with its effort.
    #[must_use]
    pub fn effort(mut self, effort: Effort) -> Self {
        self.effort = effort;
        self
    }

    /// Its name: `operation/group/case`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name's first two parts.
    pub fn group(&self) -> &str {
        group_of(&self.name)
    }

    /// What it checks, in a few words.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Where and when it is worth its time.
    pub fn needs(&self) -> Effort {
        self.effort
    }

    /// The data folder to unpack for the cases that this one stands for.
    pub fn needs_unpacked(&self) -> Option<&'static str> {
        match self.body {
            Body::Packed(folder) => Some(folder),
            _ => None,
        }
    }

    /// Why it does not run on `device`; `None` if it does.
    pub fn skipped_on(&self, device: &Device) -> Option<&str> {
        match &self.body {
            Body::Missing(why) => Some(why),
            Body::Packed(_) => Some("its data is packed"),
            Body::Check(_) if self.effort == Effort::Gpu && device.is_simulator() => Some("for a GPU only"),
            Body::Check(_) => None,
        }
    }

    /// Runs it: gives the largest error over its bound, 0 where nothing was rounded.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self, context: &Context<'_>) -> anyhow::Result<f64> {
        match &self.body {
            Body::Check(check) => check(context),
            Body::Missing(why) => Err(anyhow::anyhow!("cannot run: {why}")),
            Body::Packed(folder) => Err(anyhow::anyhow!("cannot run: {folder} is packed")),
        }
    }

    /// The seed of this case's inputs in a run seeded with `seed`: another for each case, and the same whichever other
    /// cases run.
    pub fn seed(&self, seed: u64) -> u64 {
        // FNV-1a, over the run's seed and the name.
        let bytes = seed.to_le_bytes().into_iter().chain(self.name.bytes());
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("name", &self.name).field("effort", &self.effort).finish_non_exhaustive()
    }
}

/// The first two parts of a case's name.
pub(crate) fn group_of(name: &str) -> &str {
    name.match_indices('/').nth(1).map_or(name, |(end, _)| &name[..end])
}
