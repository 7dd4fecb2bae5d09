//! Operations by name, and what records say by theirs.
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::operation::{Op, Peer};
use crate::record::Record;
use crate::{OPERATIONS, spmm};

/// The operation of a name; none for a name that is none.
pub fn named(name: &str) -> Option<Op> {
    OPERATIONS.iter().copied().find(|op| op.name == name)
}

/// Takes an operation's name from the command line.
pub fn parser() -> impl TypedValueParser<Value = Op> {
    let names = OPERATIONS.iter().map(|op| PossibleValue::new(op.name).help(op.about));
    PossibleValuesParser::new(names).try_map(|name| named(&name).ok_or("no operation"))
}

impl Record {
    /// Its operation; SpMM for what this version does not know.
    pub fn operation(&self) -> Op {
        named(&self.op).unwrap_or(&spmm::OPERATION)
    }

    /// The width of the dense operands: N of SpMM and of a lookup, K of SDDMM, d of attention; how many top-N takes.
    pub fn width(&self) -> usize {
        let [_, k, n] = self.operation().sizes(0, 0, 1);
        self.k * k + self.n * n
    }

    /// The width with its name, as in `N = 128`; nothing where there are no dense operands.
    pub fn named_width(&self) -> String {
        let width = self.operation().width;
        width.map_or_else(String::new, |width| format!("{} = {}", width.title, self.width()))
    }
}

/// What the operations of records are set against, each once.
pub fn peers_of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<Peer> {
    let mut peers = Vec::new();
    for record in records {
        for peer in record.operation().peers {
            if !peers.contains(peer) {
                peers.push(*peer);
            }
        }
    }
    peers
}

/// What tables call the width of records' dense operands: as their operation does, where they have one in common.
pub fn width_title<'a>(records: impl IntoIterator<Item = &'a Record>) -> &'static str {
    let mut names =
        records.into_iter().map(|record| record.operation().width.map_or("", |width| width.title));
    let first = names.next().unwrap_or("N");
    if names.all(|name| name == first) { first } else { "width" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (index, op) in OPERATIONS.iter().enumerate() {
            assert_eq!(OPERATIONS.iter().position(|other| other.name == op.name), Some(index));
        }
        assert_eq!(named("gemm"), None);
    }
}
