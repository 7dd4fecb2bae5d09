//! What a module must not contain, and the counting of barriers.
use crate::module::items::{Item, Kind};
use crate::{BuildError, Target};

/// Refuses missing functions and local memory.
pub(crate) fn refuse(target: Target, items: &[Item<'_>]) -> Result<(), BuildError> {
    for item in items {
        if item.kind == Kind::ExternFunction {
            return Err(BuildError::ExternFunction { target, function: item.name.into() });
        }
        if item.text.contains("__local_depot") {
            return Err(BuildError::LocalMemory { target, entry: item.name.into() });
        }
    }
    Ok(())
}

/// Barrier instructions in a piece of PTX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Barriers {
    /// Barriers of a block: `bar.sync`, `barrier.sync`, `bar.red` and their kin.
    pub block: u32,
    /// Barriers of a warp: `bar.warp.sync`.
    pub warp: u32,
}

impl Barriers {
    /// Both kinds together.
    pub fn total(&self) -> u32 {
        self.block + self.warp
    }
}

/// Counts the barrier instructions of a module.
///
/// Compare with the number in the source: a compiler that takes a barrier for an ordinary call may copy it into both
/// arms of a branch, and then the threads of a block wait at different places.
pub fn count_barriers(ptx: &str) -> Barriers {
    let mut barriers = Barriers::default();
    for line in ptx.lines() {
        let code = line.split("//").next().unwrap_or_default();
        for instruction in code.split([';', '{', '}']) {
            // A predicate may stand in front: `@%p1 bar.sync 0`.
            let name = instruction.split_whitespace().find(|word| !word.starts_with('@')).unwrap_or_default();
            if name.starts_with("bar.warp.") {
                barriers.warp += 1;
            } else if name.starts_with("bar.") || name.starts_with("barrier.") {
                barriers.block += 1;
            }
        }
    }
    barriers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn barriers_of_both_kinds() {
        let ptx = "\tbar.sync \t0;\n@%p1 barrier.sync.aligned 1;\n bar.warp.sync -1; bar.red.popc.u32 %r1, 0, %p2;\n";
        assert_eq!(count_barriers(ptx), Barriers { block: 3, warp: 1 });
        assert_eq!(count_barriers(ptx).total(), 4);
    }

    #[test]
    fn neither_comments_nor_names_count() {
        let ptx = "// bar.sync 0;\nmov.u32 %r1, barrier; // barrier.sync 0\n.reg .b32 bar;\ncall bar.sync;\n";
        assert_eq!(count_barriers(ptx), Barriers::default());
    }
}
