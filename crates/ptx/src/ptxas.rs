//! ptxas, NVIDIA's assembler: finds it, runs it, reads its report.
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{BuildError, Cache, EntryPtx, Target, cache};

/// A ptxas on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptxas {
    /// The program.
    pub path: PathBuf,
    /// Its release, as in `12.9`.
    pub version: String,
}

/// What ptxas says of one entry, in bytes but for the registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Registers of a thread.
    pub(crate) registers: u32,
    /// Static shared memory of a block.
    pub(crate) shared: u32,
    /// Stack frame of a thread.
    pub(crate) stack: u32,
    pub(crate) spill_stores: u32,
    pub(crate) spill_loads: u32,
}

impl Ptxas {
    /// Looks for ptxas: the one named in `LACUNA_PTXAS`; the one in the cache, whose version is the one that the
    /// committed resource table was made with; one on the `PATH`; one in `/usr/local/cuda`.
    ///
    /// # Errors
    /// [`BuildError::UnusablePtxas`] when the one named in the environment does not run.
    pub fn find(cache: &Cache) -> Result<Option<Self>, BuildError> {
        if let Some(path) = env::var_os("LACUNA_PTXAS").filter(|path| !path.is_empty()) {
            let path = PathBuf::from(path);
            return Self::probe(&path).map(Some).map_err(|reason| BuildError::UnusablePtxas { path, reason });
        }
        let on_path = env::var_os("PATH").unwrap_or_default();
        let places = std::iter::once(Self::in_cache(cache))
            .chain(env::split_paths(&on_path).map(|folder| folder.join("ptxas")))
            .chain(["/usr/local/cuda/bin/ptxas".into()]);
        Ok(places.filter(|path| path.is_file()).find_map(|path| Self::probe(&path).ok()))
    }

    /// Where `cargo xtask setup` unpacks it.
    pub fn in_cache(cache: &Cache) -> PathBuf {
        cache.ptxas_root().join("nvidia/cuda_nvcc/bin/ptxas")
    }

    fn probe(path: &Path) -> Result<Self, String> {
        let output = Command::new(path).arg("--version").output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text
            .split_once("release ")
            .and_then(|(_, rest)| rest.split([',', ' ', '\n']).next())
            .ok_or_else(|| format!("it prints `{}` for its version", text.trim()))?;
        Ok(Self { path: path.into(), version: version.into() })
    }

    /// Whether this ptxas knows the target: from release 13 on, `sm_70` is gone.
    pub fn supports(&self, target: Target) -> bool {
        let release = self.version.split('.').next().and_then(|major| major.parse().ok());
        target >= Target::Sm80 || release.is_some_and(|release: u32| release < 13)
    }

    /// Assembles the module of an entry and tells what the entry takes. A report that does not tell it is an error: it
    /// would hide a spill.
    pub(crate) fn usage(&self, cache: &Cache, target: Target, entry: &EntryPtx) -> Result<Usage, BuildError> {
        let key = cache::digest([&*self.version, target.name(), &entry.ptx]);
        let kept = cache.get("reports", &key);
        if let Some(usage) = kept.and_then(|report| usage_of(&entry.name, &report)) {
            return Ok(usage);
        }
        let report = self.run(target, &entry.ptx)?;
        let usage = usage_of(&entry.name, &report).ok_or_else(|| BuildError::PtxasReport {
            target,
            version: self.version.clone(),
            entry: entry.name.clone(),
            output: report.trim().to_owned(),
        })?;
        cache.put("reports", &key, &report)?;
        Ok(usage)
    }

    fn run(&self, target: Target, ptx: &str) -> Result<String, BuildError> {
        let scratch = tempfile::tempdir().map_err(BuildError::io("write", env::temp_dir()))?;
        let source = scratch.path().join("module.ptx");
        std::fs::write(&source, ptx).map_err(BuildError::io("write", &source))?;
        let output = Command::new(&self.path)
            .args(["-v", "-arch", target.name(), "-o"])
            .arg(scratch.path().join("module.cubin"))
            .arg(&source)
            .output()
            .map_err(BuildError::io("run", &self.path))?;
        let report = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            return Ok(report);
        }
        // What ptxas says before it fails goes to either stream.
        let output = format!("{}{report}", String::from_utf8_lossy(&output.stdout)).trim().to_owned();
        Err(BuildError::PtxasRefused { target, version: self.version.clone(), output })
    }
}

/// What a report says of an entry; nothing if it leaves the entry or its registers out.
fn usage_of(entry: &str, report: &str) -> Option<Usage> {
    parse_report(report).remove(entry).filter(|usage| usage.registers > 0)
}

/// Reads the lines of `ptxas -v`. What the report leaves out is 0.
fn parse_report(report: &str) -> BTreeMap<String, Usage> {
    let mut entries: BTreeMap<String, Usage> = BTreeMap::new();
    let mut current = None;
    for line in report.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            current = rest.split('\'').next().map(str::to_owned);
            entries.entry(current.clone().unwrap_or_default()).or_default();
        }
        let Some(usage) = current.as_ref().and_then(|name| entries.get_mut(name)) else { continue };
        let line = line.trim();
        let facts = line.strip_prefix("ptxas info    : ").unwrap_or(line);
        for fact in facts.split(", ") {
            let fact = fact.strip_prefix("Used ").unwrap_or(fact);
            let Some((number, what)) = fact.split_once(' ') else { continue };
            let Ok(number) = number.parse() else { continue };
            match what {
                "registers" => usage.registers = number,
                "bytes smem" => usage.shared = number,
                "bytes stack frame" => usage.stack = number,
                "bytes spill stores" => usage.spill_stores = number,
                "bytes spill loads" => usage.spill_loads = number,
                _ => {}
            }
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'wide' for 'sm_80'
ptxas info    : Function properties for wide
    24 bytes stack frame, 20 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 24 bytes cumulative stack size, 4096 bytes smem, 408 bytes cmem[0]
ptxas info    : Compile time = 29.619 ms
ptxas info    : Compiling entry function 'narrow' for 'sm_80'
ptxas info    : Function properties for narrow
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers, 408 bytes cmem[0]
";

    #[test]
    fn a_report_is_read() {
        let usage = parse_report(REPORT);
        let wide = Usage { registers: 255, shared: 4096, stack: 24, spill_stores: 20, spill_loads: 16 };
        assert_eq!(usage["wide"], wide);
        assert_eq!(usage["narrow"], Usage { registers: 12, ..Usage::default() });
        assert_eq!(usage.len(), 2);
    }

    #[test]
    fn other_text_is_no_report() {
        assert!(parse_report("Used 12 registers\n'").is_empty());
    }

    #[test]
    fn a_report_must_name_the_entry_and_its_registers() {
        assert_eq!(usage_of("narrow", REPORT).map(|usage| usage.registers), Some(12));
        assert_eq!(usage_of("other", REPORT), None);
        assert_eq!(usage_of("narrow", &REPORT.replace("Used 12 registers", "Used many")), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_ptxas_that_reports_nothing_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let silent = Ptxas { path: "true".into(), version: "12.9".into() };
        let entry = EntryPtx { name: "k".into(), ptx: String::new(), bounds: None };
        // The second time, too: such a report is not kept.
        for _ in 0..2 {
            let error = silent.usage(&Cache::at(dir.path()), Target::Sm80, &entry).unwrap_err();
            assert!(matches!(&error, BuildError::PtxasReport { entry, .. } if entry == "k"), "{error}");
        }
    }

    #[test]
    fn release_13_dropped_volta() {
        let ptxas = |version: &str| Ptxas { path: "ptxas".into(), version: version.into() };
        assert!(ptxas("12.9").supports(Target::Sm70));
        assert!(!ptxas("13.0").supports(Target::Sm70));
        assert!(ptxas("13.0").supports(Target::Sm80));
    }
}
