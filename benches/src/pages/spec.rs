//! What a mark asks for: a kind of table, files of records, and columns, with `|` between them.
use anyhow::{Context, Result, bail};

use crate::conv;
use crate::record::Record;
use lacuna_cases::exit::Usage;

/// What is in the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A case each; below several the geometric means.
    Cases,
    /// A file of records each, with geometric means.
    Suites,
    /// A part of zeros each, with geometric means by the width of the dense operands.
    Grid,
    /// A layer of a network each, of convolutions.
    Layers,
    /// A part of zeros of the feature maps each, with geometric means over layers.
    Levels,
}

/// A record on which there can be conditions.
pub(super) trait Filtered {
    /// What it has under a condition's key; none where it has nothing of that name.
    fn own(&self, key: &str) -> Option<String>;

    /// Its operation's name.
    fn op(&self) -> &str;
}

impl Filtered for Record {
    fn own(&self, key: &str) -> Option<String> {
        match key {
            "group" => Some(self.group.clone()),
            "zeros" => Some(percent(self).to_string()),
            key => {
                let width = self.operation().width?;
                (width.title == key).then(|| self.width().to_string())
            }
        }
    }

    fn op(&self) -> &str {
        &self.op
    }
}

impl Filtered for conv::Record {
    fn own(&self, key: &str) -> Option<String> {
        match key {
            "images" => Some(self.batch.to_string()),
            "layout" => Some(self.layout.clone()),
            "value" => Some(self.value.clone()),
            "sparsity" => Some(self.sparsity_percent().to_string()),
            // No part of zeros was asked for of real maps.
            "zeros" => Some(self.percent().map_or_else(|| "real".into(), |percent| percent.to_string())),
            _ => None,
        }
    }

    fn op(&self) -> &str {
        &self.op
    }
}

/// What is in a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The case's name.
    Case,
    /// M, K, N and the part of zeros.
    Problem,
    /// The kernel, without what all its operation's kernels share.
    Kernel,
    /// Microseconds.
    Us,
    /// Tera-operations a second.
    Tflops,
    /// Terabytes a second.
    Tbs,
    /// Microseconds of a peer.
    UsOf(String),
    /// Speedup over a peer.
    Over(String),
    /// How many cases there are.
    Problems,
    /// How many cases are lost to each of these peers.
    Lost(Vec<String>),
    /// How many cases are won against a peer.
    Won(String),
}

/// A column, of the records that a filter lets through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) what: What,
    pub(super) filter: Filter,
}

/// Conditions on records, as in `N=32 zeros=80 group=grid`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filter(Vec<(String, String)>);

/// A whole mark.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) kind: Kind,
    pub(super) files: Vec<String>,
    pub(super) columns: Vec<Column>,
    pub(super) filter: Filter,
}

impl Spec {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut cells = text.split('|').map(str::trim);
        let kind = match cells.next() {
            Some("cases") => Kind::Cases,
            Some("suites") => Kind::Suites,
            Some("grid") => Kind::Grid,
            Some("layers") => Kind::Layers,
            Some("levels") => Kind::Levels,
            kind => {
                return Err(usage(format!(
                    "`{}`: a table is `cases`, `suites`, `grid`, `layers` or `levels`",
                    kind.unwrap_or("")
                )));
            }
        };
        let files: Vec<String> = cells.next().unwrap_or("").split_whitespace().map(Into::into).collect();
        let mut spec = Self { kind, files, columns: Vec::new(), filter: Filter::default() };
        for cell in cells {
            match cell.strip_prefix("where ") {
                Some(conditions) => spec.filter = Filter::parse(conditions)?,
                None => spec.columns.push(Column::parse(cell)?),
            }
        }
        if spec.files.is_empty() || spec.columns.is_empty() {
            return Err(usage("after the kind come files of records, and columns".into()));
        }
        Ok(spec)
    }
}

impl Column {
    fn parse(text: &str) -> Result<Self> {
        let (what, filter) = match text.split_once(" where ") {
            Some((what, conditions)) => (what, Filter::parse(conditions)?),
            None => (text, Filter::default()),
        };
        let what = match what.split_whitespace().collect::<Vec<_>>()[..] {
            ["case"] => What::Case,
            ["problem"] => What::Problem,
            ["kernel"] => What::Kernel,
            ["us"] => What::Us,
            ["TFLOP/s"] => What::Tflops,
            ["TB/s"] => What::Tbs,
            ["us", "of", peer] => What::UsOf(peer.into()),
            ["over", peer] => What::Over(peer.into()),
            ["problems"] => What::Problems,
            ["lost", ref peers @ ..] if !peers.is_empty() => {
                What::Lost(peers.iter().map(ToString::to_string).collect())
            }
            ["won", peer] => What::Won(peer.into()),
            _ => return Err(usage(format!("`{text}` is no column"))),
        };
        Ok(Self { what, filter })
    }
}

impl Filter {
    fn parse(text: &str) -> Result<Self> {
        let condition = |text: &str| {
            let (key, value) =
                text.split_once('=').with_context(|| Usage(format!("`{text}`: expected KEY=VALUE")))?;
            Ok((key.to_string(), value.to_string()))
        };
        Ok(Self(text.split_whitespace().map(condition).collect::<Result<_>>()?))
    }

    /// Whether a record is meant.
    pub(super) fn lets(&self, record: &impl Filtered) -> Result<bool> {
        for (key, value) in &self.0 {
            let Some(own) = record.own(key) else {
                bail!(Usage(format!("`{key}`: records of `{}` have no such number", record.op())));
            };
            if own != *value {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// It in words, with a comma before each condition.
    pub(super) fn words(&self) -> String {
        let words = |(key, value): &(String, String)| match key.as_str() {
            "zeros" => format!(", {value} % zeros"),
            "group" => format!(", {value}"),
            "images" if value == "1" => ", one image".into(),
            "images" => format!(", {value} images"),
            "layout" => format!(", {}", value.to_uppercase()),
            "value" => format!(", `{value}`"),
            _ => format!(", {key} = {value}"),
        };
        self.0.iter().map(words).collect()
    }
}

/// The part of zeros that is meant, in whole per cent.
pub(super) fn percent(record: &Record) -> u32 {
    (record.level.unwrap_or(record.sparsity) * 100.0).round() as u32
}

fn usage(text: String) -> anyhow::Error {
    Usage(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read() {
        let spec = Spec::parse(
            "suites | h200-rnn h200-dlmc | where zeros=90 | problems | over cusparse where N=32 zeros=80",
        )
        .unwrap();
        assert_eq!(spec.kind, Kind::Suites);
        assert_eq!(spec.files, ["h200-rnn", "h200-dlmc"]);
        assert_eq!(spec.filter, Filter(vec![("zeros".into(), "90".into())]));
        assert_eq!(spec.columns[0].what, What::Problems);
        assert_eq!(spec.columns[1].what, What::Over("cusparse".into()));
        assert_eq!(spec.columns[1].filter.words(), ", N = 32, 80 % zeros");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, word) in [
            ("rows | a | us", "`rows`"),
            ("cases | a", "columns"),
            ("cases | | us", "files"),
            ("cases | a | speed", "`speed`"),
            ("cases | a | us | where N", "`N`"),
        ] {
            let error = Spec::parse(text).unwrap_err();
            assert!(error.to_string().contains(word), "{text}: {error:#}");
        }
    }
}
