//! What each entry takes of a GPU, as a table.
use std::fmt;

use crate::ptxas::Usage;
use crate::{BuildError, EntryPtx, Occupancy, Target, count_barriers};

/// What one entry takes on one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    /// The entry.
    pub entry: String,
    /// The target.
    pub target: Target,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of static and dynamic shared memory of a block.
    pub shared_bytes: u32,
    /// Bytes of stack of a thread.
    pub stack_bytes: u32,
    /// Threads of a block and the occupancy; unknown for an entry without launch bounds.
    pub launch: Option<(u32, Occupancy)>,
    /// Barrier instructions in the PTX, of block and warp together: a compiler that copies one changes the table.
    pub barriers: u32,
}

impl Resources {
    /// Joins ptxas's numbers with the launch bounds. A spill is an error.
    pub(crate) fn new(target: Target, entry: &EntryPtx, usage: Usage) -> Result<Self, BuildError> {
        if usage.spill_stores > 0 || usage.spill_loads > 0 {
            return Err(BuildError::Spill {
                target,
                entry: entry.name.clone(),
                stores: usage.spill_stores,
                loads: usage.spill_loads,
            });
        }
        let shared_bytes = usage.shared + entry.bounds.map_or(0, |bounds| bounds.shared_bytes);
        let launch = entry.bounds.map(|bounds| {
            let threads = bounds.threads;
            (threads, Occupancy::of(target, usage.registers, threads, shared_bytes))
        });
        Ok(Self {
            entry: entry.name.clone(),
            target,
            registers: usage.registers,
            shared_bytes,
            stack_bytes: usage.stack,
            launch,
            barriers: count_barriers(&entry.ptx).total(),
        })
    }
}

/// The resources of all entries and targets. `Display` gives aligned text, sorted, for a file under version control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceTable {
    /// The lines, by entry, then target.
    pub rows: Vec<Resources>,
    /// What the numbers depend on beside the sources: release of ptxas, as in `12.9`.
    pub ptxas: String,
    /// And version of the device compiler, as in `rustc 1.96.0`.
    pub compiler: String,
}

impl ResourceTable {
    pub(crate) fn new(mut rows: Vec<Resources>, ptxas: &str, compiler: &str) -> Self {
        rows.sort_by(|a, b| (&a.entry, a.target).cmp(&(&b.entry, b.target)));
        // Name and number: a distribution's commit and date do not matter.
        let compiler = compiler.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        Self { rows, ptxas: ptxas.into(), compiler }
    }

    /// The line of one entry on one target.
    pub fn row(&self, entry: &str, target: Target) -> Option<&Resources> {
        self.rows.iter().find(|row| row.entry == entry && row.target == target)
    }
}

impl fmt::Display for ResourceTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEAD: [&str; 9] = [
            "entry",
            "target",
            "registers",
            "shared B",
            "stack B",
            "threads",
            "blocks/SM",
            "occupancy",
            "barriers",
        ];
        let mut lines = vec![HEAD.map(str::to_owned)];
        for row in &self.rows {
            let (threads, blocks, occupancy) = match row.launch {
                Some((threads, occupancy)) => (
                    threads.to_string(),
                    occupancy.blocks.to_string(),
                    format!("{:.0} %", 100.0 * occupancy.fraction()),
                ),
                None => ("-".into(), "-".into(), "-".into()),
            };
            lines.push([
                row.entry.clone(),
                row.target.to_string(),
                row.registers.to_string(),
                row.shared_bytes.to_string(),
                row.stack_bytes.to_string(),
                threads,
                blocks,
                occupancy,
                row.barriers.to_string(),
            ]);
        }
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();

        writeln!(f, "What each entry takes. {}, ptxas {}; no entry spills.\n", self.compiler, self.ptxas)?;
        for line in &lines {
            write!(f, "{:w$}  {:v$}", line[0], line[1], w = widths[0], v = widths[1])?;
            for (cell, width) in line.iter().zip(&widths).skip(2) {
                write!(f, "  {cell:>width$}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LaunchBounds;

    fn entry(name: &str, bounds: Option<LaunchBounds>) -> EntryPtx {
        EntryPtx { name: name.into(), ptx: "bar.sync 0;\nbar.warp.sync -1;\n".into(), bounds }
    }

    #[test]
    fn the_table_is_sorted_and_aligned() {
        let bounds = LaunchBounds { shared_bytes: 1024, ..LaunchBounds::threads(128) };
        let usage = Usage { registers: 64, shared: 16, ..Usage::default() };
        let rows = vec![
            Resources::new(Target::Sm90a, &entry("scale", None), usage).unwrap(),
            Resources::new(Target::Sm90a, &entry("add", Some(bounds)), usage).unwrap(),
            Resources::new(Target::Sm70, &entry("add", Some(bounds)), usage).unwrap(),
        ];
        let table = ResourceTable::new(rows, "12.9", "rustc 1.96.0 (ac68faa20 2026-05-25)");
        let expected = "\
What each entry takes. rustc 1.96.0, ptxas 12.9; no entry spills.

entry  target  registers  shared B  stack B  threads  blocks/SM  occupancy  barriers
add    sm_70          64      1040        0      128          8       50 %         2
add    sm_90a         64      1040        0      128          8       50 %         2
scale  sm_90a         64        16        0        -          -          -         2
";
        assert_eq!(table.to_string(), expected);
        assert_eq!(table.row("add", Target::Sm70).unwrap().shared_bytes, 1040);
        assert_eq!(table.row("scale", Target::Sm70), None);
    }

    #[test]
    fn a_spill_is_refused() {
        let usage = Usage { registers: 255, spill_stores: 8, spill_loads: 12, ..Usage::default() };
        let error = Resources::new(Target::Sm80, &entry("wide", None), usage).unwrap_err();
        assert!(matches!(error, BuildError::Spill { stores: 8, loads: 12, .. }));
    }
}
