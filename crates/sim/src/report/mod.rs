//! What a launch did, and the words to tell it: findings, operations, source lines.
pub(crate) mod finding;
pub(crate) mod operation;
pub(crate) mod site;

use std::fmt;

use serde::Serialize;

use crate::cost::counters::{Counters, Counts, LineCounters};
use crate::execution::context::Context;
use crate::execution::launch::Launch;
use crate::report::finding::{Finding, Findings};
use crate::report::operation::Operation;

/// What a launch did: what it cost, by source line, and what was wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The kernel's name.
    pub kernel: String,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u32,
    /// Costs by source line, in the order of lines.
    pub lines: Vec<LineCounters>,
    /// Distinct 32-byte sectors of global memory that the launch read.
    pub sectors_read: u64,
    /// Distinct 32-byte sectors of global memory that the launch wrote.
    pub sectors_written: u64,
    /// Distinct sectors that each block read, summed over blocks: what would pass from L2 to perfect L1 caches.
    pub block_sectors_read: u64,
    /// What was wrong, in the order of lines; empty for a good launch.
    pub findings: Vec<Finding>,
}

impl Report {
    pub(crate) fn new<'l>(
        name: &str,
        launch: &Launch<'_>,
        contexts: impl Iterator<Item = Context<'l>>,
    ) -> Self {
        let mut counters = Counters::default();
        let mut findings = Findings::default();
        let mut block_sectors_read = 0;
        for Context { costs, findings: found, .. } in contexts {
            counters.merge(&costs.counters);
            findings.merge(found);
            block_sectors_read += costs.sectors.read_by_blocks;
        }
        launch.judge(&mut findings);
        let mut lines: Vec<LineCounters> = counters
            .iter()
            .map(|(site, counts)| {
                let (source, operation) = launch.sites.get(site);
                LineCounters { source, operation, counts }
            })
            .collect();
        lines.sort_by(|a, b| (&a.source, a.operation).cmp(&(&b.source, b.operation)));
        let (sectors_read, sectors_written) = launch.distinct_sectors();
        let geometry = launch.geometry;
        Self {
            kernel: name.to_owned(),
            grid: geometry.grid,
            threads: geometry.threads,
            shared_bytes: geometry.shared_bytes,
            lines,
            sectors_read,
            sectors_written,
            block_sectors_read,
            findings: findings.into_sorted(),
        }
    }

    /// Blocks of the grid.
    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|&blocks| u64::from(blocks)).product()
    }

    /// Sums over the lines whose operation `of` accepts.
    pub fn total(&self, of: impl Fn(Operation) -> bool) -> Counts {
        let mut total = Counts::default();
        self.lines.iter().filter(|line| of(line.operation)).for_each(|line| total += line.counts);
        total
    }

    /// Fused multiply-adds of all threads.
    pub fn fmas(&self) -> u64 {
        self.total(|operation| operation == Operation::Fma).executions
    }

    /// Fused multiply-adds on tensor cores.
    pub fn tensor_fmas(&self) -> u64 {
        let products =
            [Operation::Mma, Operation::MmaTf32, Operation::WarpgroupMma, Operation::WarpgroupMmaTf32];
        let fmas = |operation: Operation| {
            self.total(|other| other == operation).executions * operation.tensor_fmas()
        };
        products.into_iter().map(fmas).sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, grid, threads, findings, lines, .. } = self;
        write!(f, "{kernel}, grid {grid:?}, {threads} threads a block: ")?;
        if findings.is_empty() {
            writeln!(f, "no findings")?;
            for LineCounters { source, operation, counts } in lines {
                writeln!(f, "  {source} {operation:?}: {counts:?}")?;
            }
            return Ok(());
        }
        write!(f, "{} findings", findings.len())?;
        for finding in findings {
            write!(f, "\n  {finding}")?;
        }
        Ok(())
    }
}
