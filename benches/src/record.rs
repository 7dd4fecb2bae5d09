//! One measurement, as a JSON object.
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use anyhow::{Context, Result};
use lacuna_cases::exit::Usage;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::machine::MachineRecord;
use crate::timing::Timing;

/// One case, measured on a GPU or modelled on the simulator.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Record {
    /// The suite, or `run`.
    pub suite: String,
    /// The operation.
    pub op: String,
    /// The problem's name, where it has one: a file, or a row of a table.
    pub case: String,
    /// The part of the suite that it is summed up with, where it has one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The part of zeros that the suite means, where it names one; `sparsity` is what the matrix has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<f64>,
    /// The coefficient of variation of the row lengths that the suite means, where it names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cov: Option<f64>,
    /// The kernel's entry point.
    pub algorithm: String,
    /// Whether the library's heuristic takes this kernel. Records made before this field was there have one kernel a case.
    #[serde(default = "yes")]
    pub chosen: bool,
    /// The type of the values.
    pub dtype: String,
    /// The type of the column indices.
    #[serde(default = "u32_index")]
    pub index: String,
    /// How exactly `f32` is multiplied.
    #[serde(default = "single")]
    pub precision: String,
    /// Whether A of SpMM is prepacked: its values stay as they are.
    #[serde(rename = "packed", default, skip_serializing_if = "std::ops::Not::not")]
    pub prepacked: bool,
    /// Whether caches were cold when each repetition began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cold: bool,
    /// What becomes of a row's products in SpMM: `sum` where nothing is said.
    #[serde(default = "sum", skip_serializing_if = "is_sum")]
    pub reduce: String,
    /// Rows of the sparse matrix.
    pub m: usize,
    /// The length of a sum: columns of A in SpMM, of A and B in SDDMM, of Q and K in attention; 1 in a softmax. Rows of a
    /// lookup's table; how many top-N takes of a row.
    pub k: usize,
    /// Columns of the result: of B in SpMM, of a lookup's table; otherwise of the sparse matrix, or of the logits.
    pub n: usize,
    /// How often it was done in one call, with other values; once where nothing is said.
    #[serde(default = "once", skip_serializing_if = "is_one")]
    pub batch: usize,
    /// Nonzeros of the sparse matrix; all logits in top-N.
    pub nnz: usize,
    /// The part of it that is zero.
    pub sparsity: f64,
    /// Nonzeros of its longest row; none in records of before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_row: Option<usize>,
    /// Its rows of at least one nonzero, and those of more than 1, 2, 4, …; none in records of before they were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_lengths: Option<Vec<u32>>,
    /// The seed of what was drawn.
    pub seed: u64,
    /// The measured time; none on the simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_us: Option<Timing>,
    /// Of attention by mask blocks: how long it takes to make the mask ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask_us: Option<MaskTimes>,
    /// Of attention by mask blocks and in three steps: the time of the gradients of Q, K and V; none on the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward_us: Option<Timing>,
    /// Of attention by mask blocks: the library's choice of kernels for the gradient of Q, and for those of K and V.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward_kernels: Option<[String; 2]>,
    /// Where all kernels were asked for: the time of the gradients by each kernel that is not the library's choice, with that for the other
    /// gradient.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other_backward_us: BTreeMap<String, Timing>,
    /// The modelled time by machine; none on a GPU. A model, never a measurement.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub model_us: BTreeMap<String, f64>,
    /// What the simulator counted; none on a GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// Operations of the work model; of SpMM 2·nnz·N.
    pub flops: u64,
    /// Bytes of the work model: operands and result once each.
    pub bytes: u64,
    /// The largest error over its bound; at most 1 in a good result.
    pub error_over_bound: f64,
    /// Rows that were checked, of `m`.
    pub checked_rows: usize,
    /// The peers, measured in the same run on the same input.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub peers: BTreeMap<String, PeerRecord>,
    /// Why a library, one of its algorithms or one of its products has no measurement, by its name: those that failed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub peer_failures: BTreeMap<String, String>,
    /// What it ran on.
    #[serde(flatten)]
    pub machine: MachineRecord,
}

fn yes() -> bool {
    true
}

fn sum() -> String {
    "sum".into()
}

fn is_sum(reduce: &String) -> bool {
    reduce == "sum"
}

fn once() -> usize {
    1
}

pub(crate) fn is_one(count: &usize) -> bool {
    *count == 1
}

pub(crate) fn single() -> String {
    "single".into()
}

fn u32_index() -> String {
    "u32".into()
}

/// How long it takes to have a mask's blocks on the device, in microseconds by the host's clock.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct MaskTimes {
    /// From the CSR pattern on the device, as the first plan of a matrix does it.
    pub csr: Timing,
    /// By the rule, where the mask has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Timing>,
}

/// A peer's measurement.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PeerRecord {
    /// Its time.
    #[serde(flatten)]
    pub time: Timing,
    /// Which of its algorithms: the fastest.
    pub algorithm: String,
    /// The library's version.
    pub version: String,
    /// Its largest error over the bound of its own arithmetic; none where its result is out of it.
    pub error_over_bound: Option<f64>,
    /// What it worked out about A beforehand, in microseconds by the host's clock: not in `time`. None where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preprocess_us: Option<f64>,
    /// Millijoules of a call, where they were asked for and the GPU counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_mj: Option<f64>,
    /// The case in which a dense product of this shape was measured, where that was an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_in: Option<String>,
}

/// What the simulator counted in one product.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Counts {
    /// Warp requests to global memory.
    pub requests: u64,
    /// 32-byte sectors that these touched.
    pub sectors: u64,
    /// Distinct sectors read and written: what must pass device memory.
    pub distinct_sectors: u64,
    /// Passes through shared memory.
    pub shared_wavefronts: u64,
    /// Fused multiply-adds.
    pub fmas: u64,
}

impl Record {
    /// The measured median, or else nothing.
    pub fn median_us(&self) -> Option<f64> {
        self.time_us.as_ref().map(|time| time.median)
    }

    /// The measured median, or else the model of a machine.
    pub fn us_on(&self, machine: &str) -> Option<f64> {
        self.median_us().or_else(|| self.model_us.get(machine).copied())
    }

    /// Tera-operations a second at the median.
    pub fn tflops(&self) -> Option<f64> {
        self.median_us().map(|us| self.flops as f64 / us / 1e6)
    }

    /// How many times faster than a peer.
    pub fn speedup(&self, peer: &str) -> Option<f64> {
        Some(self.peers.get(peer)?.time.median / self.median_us()?)
    }

    /// Whether the result is within its bound.
    pub fn is_right(&self) -> bool {
        self.error_over_bound <= 1.0
    }

    /// Reads a file of JSON lines.
    ///
    /// # Errors
    /// [`Usage`]: a file that cannot be read, or a line that is no record, with its number.
    pub fn read_lines(path: &Path) -> Result<Vec<Self>> {
        read_lines(path)
    }
}

/// Reads a file of JSON lines, of whatever kind of records.
///
/// # Errors
/// [`Usage`]: a file that cannot be read, or a line that is no such record, with its number.
pub(crate) fn read_lines<R: DeserializeOwned>(path: &Path) -> Result<Vec<R>> {
    parse_lines(path).map_err(|error| Usage(format!("{error:#}")).into())
}

/// Appends a record to a file of JSON lines, if there is to be one.
///
/// # Errors
/// A file that cannot be written.
pub(crate) fn append(path: Option<&Path>, record: &impl Serialize) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let file = File::options().create(true).append(true).open(path);
    let mut file = file.with_context(|| format!("cannot open {}", path.display()))?;
    writeln!(file, "{}", serde_json::to_string(record)?)?;
    Ok(())
}

fn parse_lines<R: DeserializeOwned>(path: &Path) -> Result<Vec<R>> {
    let file = File::open(path).with_context(|| format!("{} cannot be opened", path.display()))?;
    let mut records = Vec::new();
    for (index, line) in BufReader::new(file).lines().enumerate() {
        let line = line.with_context(|| format!("{} cannot be read", path.display()))?;
        if !line.trim().is_empty() {
            let at = || format!("{}, line {}: not a record", path.display(), index + 1);
            records.push(serde_json::from_str(&line).with_context(at)?);
        }
    }
    Ok(records)
}

/// The operation of the first record of a file of JSON lines, if that names one.
pub(crate) fn operation_of_first(path: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        op: String,
    }
    let text = std::fs::read_to_string(path).ok()?;
    let first = text.lines().find(|line| !line.trim().is_empty())?;
    serde_json::from_str(first).ok().map(|named: Named| named.op)
}

/// The geometric mean of positive numbers; none of none.
pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = values.into_iter().map(f64::ln).collect();
    (!logarithms.is_empty()).then(|| (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// A measured record of a case of `suite`, one giga-operation long, `us` for us and for cuBLAS, cuSPARSE.
    pub(crate) fn record(suite: &str, case: &str, sparsity: f64, us: [f64; 3]) -> Record {
        let timing = |us: f64| json!({ "median": us, "min": us, "max": us });
        let peer = |us: f64| json!({ "median": us, "min": us, "max": us, "algorithm": "", "version": "", "error_over_bound": 0.1 });
        let [ours, cublas, cusparse] = us;
        let record = json!({
            "suite": suite, "op": "spmm", "case": case, "algorithm": "kernel", "dtype": "f32",
            "m": 1, "k": 1, "n": 128, "nnz": 1, "sparsity": sparsity, "seed": 1, "time_us": timing(ours),
            "flops": 1_000_000_000, "bytes": 1, "error_over_bound": 0.1, "checked_rows": 1,
            "peers": { "cublas_f32": peer(cublas), "cusparse_default": peer(cusparse) },
            "device": "a GPU", "driver": "", "clocks": null, "revision": "",
        });
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn geometric_means() {
        assert_eq!(geometric_mean([]), None);
        approx::assert_relative_eq!(geometric_mean([1.0, 4.0]).unwrap(), 2.0);
    }
}
