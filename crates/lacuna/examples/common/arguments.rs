//! What the programs' arguments may be.
use clap::builder::RangedU64ValueParser;

/// A size that is not 0.
pub(crate) fn size() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}
