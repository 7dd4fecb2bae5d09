//! What the simulator finds wrong with a kernel.
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use serde::Serialize;

/// A place in a kernel's source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Source {
    /// The file, as the compiler names it.
    pub file: Cow<'static, str>,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl From<&'static std::panic::Location<'static>> for Source {
    fn from(location: &'static std::panic::Location<'static>) -> Self {
        Self { file: location.file().into(), line: location.line(), column: location.column() }
    }
}

/// Classes of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// An access outside every buffer, or past the end of the block's shared memory.
    OutOfBounds,
    /// An access at an address that is not a multiple of its own size.
    Misaligned,
    /// An access to a buffer that was freed.
    UseAfterFree,
    /// A read of memory that nobody ever wrote.
    Uninitialised,
    /// Two unordered accesses to one place, at least one a write, by threads of one block.
    Race,
    /// As [`Race`](FindingKind::Race), by different blocks. Only a hand-over orders blocks of one launch: write, fence,
    /// atomic; then, in the other block, atomic, fence or barrier, read.
    RaceBetweenBlocks,
    /// Two accesses to the shared memory of one block, a store by another block of its cluster and any other, which no barrier of
    /// the cluster orders.
    RaceInCluster,
    /// A store to the shared memory of a block of the cluster that has ended; or that may not have begun, as the storing warp has
    /// not waited at a barrier of the cluster.
    AbsentBlock,
    /// A read-only or streaming load, or an asynchronous copy, of memory that the same launch writes.
    ReadonlyWritten,
    /// Threads of a block passed one block barrier at different source lines.
    DivergentBarrier,
    /// Threads wait for each other for ever.
    Deadlock,
    /// Warps that come to one named barrier ask for different numbers of threads, or a warp comes twice before it is full; or a
    /// warp comes to the cluster's barrier twice, or waits there and has not come, or comes to it relaxed when it has done something else.
    MismatchedBarrier,
    /// Threads came to a named barrier, and all threads of the block exited before it was full.
    UnfinishedBarrier,
    /// Lanes that name each other wait at different warp operations or with different masks; at operations of the whole
    /// warp, at different lines.
    MismatchedWarpOperation,
    /// A warp operation whose mask does not name its caller.
    CallerNotInMask,
    /// A shuffle that reads a lane that is not in the mask or has exited, or an operation of the whole warp without all
    /// of its lanes.
    AbsentLane,
    /// An access to shared memory that an asynchronous copy is still filling.
    CopyInFlight,
    /// A thread exited before it waited for its asynchronous copies.
    CopyNotWaited,
    /// The warps of a warpgroup came to different operations of it, or gave different A or B, or not all of them came.
    MismatchedWarpgroup,
    /// A warpgroup's product without `warpgroup_arrive` since the last wait.
    MissingArrive,
    /// A warpgroup's product of shared memory whose writer did not call `fence_async_proxy` before he handed it over.
    MissingProxyFence,
    /// Sums changed, or were replaced by others, while products were being added to them.
    SumsInFlight,
    /// A thread exited before it waited for its warpgroup's products.
    ProductNotWaited,
    /// An access to global memory by a thread that has not waited for the launch before, of a kernel that does so itself. It may
    /// read, by read-only loads, what no launch has written since the host last [waited](crate::Simulator::synchronize).
    TooEarly,
    /// An argument that the operation does not accept.
    BadArgument,
    /// The kernel panicked: on a GPU a trap, which ends the launch.
    Trap,
    /// A thread passed the limit on memory and synchronisation operations: it probably loops for ever. So does one that
    /// waits in a loop for another warp of its block: a warp runs until all its lanes are at a barrier or have exited.
    /// Blocks that have not started are skipped.
    StepLimit,
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfBounds => "access out of bounds",
            Self::Misaligned => "misaligned access",
            Self::UseAfterFree => "access to freed memory",
            Self::Uninitialised => "read of memory never written",
            Self::Race => "race within a block",
            Self::RaceBetweenBlocks => "race between blocks",
            Self::RaceInCluster => "race between blocks of a cluster",
            Self::AbsentBlock => "store to a block of the cluster that may not be there",
            Self::ReadonlyWritten => "read-only load of memory that the launch writes",
            Self::DivergentBarrier => "block barrier reached at different lines",
            Self::Deadlock => "deadlock",
            Self::MismatchedBarrier => "a barrier that is not used as it must be",
            Self::UnfinishedBarrier => "named barrier never full",
            Self::MismatchedWarpOperation => "mismatched warp operations",
            Self::CallerNotInMask => "warp operation whose mask does not name its caller",
            Self::AbsentLane => "warp operation that needs an absent lane",
            Self::CopyInFlight => "access to the target of an asynchronous copy in flight",
            Self::CopyNotWaited => "exit without waiting for asynchronous copies",
            Self::MismatchedWarpgroup => "warps of a warpgroup at odds",
            Self::MissingArrive => "product of a warpgroup without warpgroup_arrive",
            Self::MissingProxyFence => "product of shared memory without fence_async_proxy after its writes",
            Self::SumsInFlight => "sums changed while products are added to them",
            Self::ProductNotWaited => "exit without waiting for products of a warpgroup",
            Self::TooEarly => "access before the wait for the launch before",
            Self::BadArgument => "argument that the operation does not accept",
            Self::Trap => "trap",
            Self::StepLimit => "step limit passed",
        })
    }
}

/// The memory that a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The nearest buffer's name, or `shared memory`.
    pub buffer: String,
    /// Bytes from the start of the buffer; negative before it.
    pub offset: i64,
    /// Index of the access's first element in the buffer, in elements of the accessed type; rounded down.
    pub element: i64,
    /// Size of the access in bytes.
    pub bytes: u32,
    /// Length of the buffer in bytes.
    pub buffer_bytes: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { buffer, offset, element, bytes, buffer_bytes } = self;
        write!(f, "{buffer}[{element}], {bytes} bytes at byte {offset} of {buffer_bytes}")?;
        let end = i128::from(*offset) + i128::from(*bytes);
        if *offset < 0 {
            write!(f, ", {} bytes before its start", offset.unsigned_abs())?;
        } else if end > i128::from(*buffer_bytes) {
            write!(f, ", {} bytes past its end", end - i128::from(*buffer_bytes))?;
        }
        Ok(())
    }
}

/// One fault, at one source line; its first case stands for all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What is wrong.
    pub kind: FindingKind,
    /// The source line at fault; none where the kernel had not called the device yet.
    pub source: Option<Source>,
    /// The other party's source line, where there is one.
    pub other: Option<Source>,
    /// Index of the block in the grid.
    pub block: [u32; 3],
    /// Index of the thread in its block; none where whole blocks are at odds.
    pub thread: Option<u32>,
    /// The memory in question, for faults of memory.
    pub place: Option<Place>,
    /// More, in words; may be empty.
    pub detail: String,
    /// How often it was seen: accesses, or for faults between blocks, places in memory.
    pub count: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(source) = &self.source {
            write!(f, " at {source}")?;
        }
        write!(f, " (block {:?}", self.block)?;
        if let Some(thread) = self.thread {
            write!(f, ", thread {thread}")?;
        }
        write!(f, ")")?;
        if let Some(place) = &self.place {
            write!(f, ": {place}")?;
        }
        if let Some(other) = &self.other {
            write!(f, "; against {other}")?;
        }
        if !self.detail.is_empty() {
            write!(f, "; {}", self.detail)?;
        }
        if self.count > 1 {
            write!(f, " [{} times]", self.count)?;
        }
        Ok(())
    }
}

/// Findings by class and line, each with its first case in the order of blocks.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    cases: BTreeMap<(Option<Source>, FindingKind), (u64, Finding)>,
}

impl Findings {
    /// Adds a case seen in the block with this linear index.
    pub(crate) fn add(&mut self, block: u64, finding: Finding) {
        match self.cases.entry((finding.source.clone(), finding.kind)) {
            Entry::Vacant(free) => {
                free.insert((block, finding));
            }
            Entry::Occupied(mut held) => {
                let (first, known) = held.get_mut();
                let count = known.count + finding.count;
                if block < *first {
                    (*first, *known) = (block, finding);
                }
                known.count = count;
            }
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (block, finding) in other.cases.into_values() {
            self.add(block, finding);
        }
    }

    /// All, in the order of their lines.
    pub(crate) fn into_sorted(self) -> Vec<Finding> {
        self.cases.into_values().map(|(_, finding)| finding).collect()
    }
}
