//! Problems by their sizes, as a file lists them.
use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, Result, ensure};
use lacuna_cases::{Draw, Source, Spec};
use serde::Deserialize;

use super::case::{Case, operation};
use crate::operation::Columns;
use crate::profile::Profile;

/// The numbers that a problem may have, in the order in which lists of them are gone through: the last changes first.
const NUMBERS: [&str; 11] =
    ["m", "k", "n", "batch", "nonzeros", "sparsity", "cov", "band", "exponent", "side", "length"];

/// Problems of an operation: rows of numbers, and with each row all combinations of what is listed beside it.
#[derive(Debug, Deserialize)]
pub(super) struct Grid {
    op: String,
    /// Their names; what stands in braces is replaced.
    #[serde(default = "by_sizes")]
    name: String,
    /// What they are summed up with, likewise.
    #[serde(default)]
    group: String,
    #[serde(default)]
    pattern: PatternKind,
    /// The machines that they are for; all, if none is named.
    #[serde(default)]
    profiles: Vec<String>,
    /// What the numbers of a row are.
    #[serde(default)]
    of: Vec<String>,
    #[serde(default)]
    rows: Vec<Vec<Cell>>,
    /// Other numbers, one or a list of each.
    #[serde(flatten)]
    lists: BTreeMap<String, Listed>,
}

fn by_sizes() -> String {
    "{m} {k} {n} {sparsity}".into()
}

/// How a pattern is drawn.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PatternKind {
    /// By `sparsity`.
    #[default]
    Uniform,
    /// By `cov`, and `nonzeros` of a row or `sparsity`.
    Varied,
    /// By `nonzeros` of a row and `exponent`.
    PowerLaw,
    /// By `band` and `sparsity`.
    Mask,
    /// By `side` and `sparsity`.
    Blocks,
    /// By `length`.
    Documents,
}

/// A number, or a word of a name.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Cell {
    Number(f64),
    Word(String),
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Word(word) => word.fmt(f),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Listed {
    One(Cell),
    Each(Vec<Cell>),
}

/// The numbers and words of one problem.
#[derive(Clone, Default)]
struct Point(BTreeMap<String, Cell>);

impl Point {
    fn with(&self, name: &str, cell: &Cell) -> Self {
        let mut point = self.clone();
        point.0.insert(name.into(), cell.clone());
        point
    }

    fn optional(&self, name: &str) -> Option<f64> {
        if let Some(Cell::Number(number)) = self.0.get(name) { Some(*number) } else { None }
    }

    fn number(&self, name: &str) -> Result<f64> {
        self.optional(name).with_context(|| format!("a problem has no `{name}`"))
    }

    /// A text with this problem's words and numbers in the place of their names in braces.
    fn fill(&self, template: &str) -> String {
        let fill = |text: String, (name, cell): (&String, &Cell)| {
            text.replace(&format!("{{{name}}}"), &cell.to_string())
        };
        self.0.iter().fold(template.to_string(), fill)
    }
}

impl Grid {
    /// Its cases on a machine.
    pub(super) fn cases(&self, profile: Profile) -> Result<Vec<Case>> {
        if !self.profiles.is_empty() && !self.profiles.iter().any(|name| name == profile.name()) {
            return Ok(Vec::new());
        }
        self.points()?.iter().map(|point| self.case(point)).collect()
    }

    fn points(&self) -> Result<Vec<Point>> {
        let unknown = self.lists.keys().find(|name| !NUMBERS.contains(&name.as_str()));
        ensure!(unknown.is_none(), "`{}` is no number of a problem", unknown.map_or("", |name| name));
        let mut points = vec![Point::default()];
        if !self.rows.is_empty() {
            let row = |row: &Vec<Cell>| {
                ensure!(row.len() == self.of.len(), "a row has {} numbers, not {}", row.len(), self.of.len());
                Ok(self
                    .of
                    .iter()
                    .zip(row)
                    .fold(Point::default(), |point, (name, cell)| point.with(name, cell)))
            };
            points = self.rows.iter().map(row).collect::<Result<_>>()?;
        }
        for name in NUMBERS {
            let each = match self.lists.get(name) {
                Some(Listed::One(cell)) => std::slice::from_ref(cell),
                Some(Listed::Each(cells)) => cells,
                None => continue,
            };
            let with_each = |point: Point| each.iter().map(move |cell| point.with(name, cell));
            points = points.into_iter().flat_map(with_each).collect();
        }
        Ok(points)
    }

    fn case(&self, point: &Point) -> Result<Case> {
        let op = operation(&self.op)?;
        let rows = point.number("m")? as usize;
        let (cols, width) = match op.columns {
            Columns::K => (point.number("k")?, point.optional("n")),
            Columns::N => (point.number("n")?, point.optional("k")),
        };
        let source = match op.values {
            Some(values) => Source::Sparse { pattern: self.draw(point, cols)?, values },
            None => Source::Dense,
        };
        let (cols, width) = (cols as usize, width.unwrap_or(1.0) as usize);
        let batch = point.optional("batch").unwrap_or(1.0) as usize;
        let (name, group) = (point.fill(&self.name), point.fill(&self.group));
        Ok(Case { op, spec: Spec { name, group, rows, cols, width, batch, source } })
    }

    fn draw(&self, point: &Point, cols: f64) -> Result<Draw> {
        let sparsity = || point.number("sparsity");
        Ok(match self.pattern {
            PatternKind::Uniform => Draw::Uniform { sparsity: sparsity()? },
            PatternKind::Varied => {
                let mean = match point.optional("nonzeros") {
                    Some(mean) => mean,
                    None => (1.0 - sparsity()?) * cols,
                };
                Draw::Varied { mean, cov: point.number("cov")? }
            }
            PatternKind::PowerLaw => {
                Draw::PowerLaw { mean: point.number("nonzeros")?, exponent: point.number("exponent")? }
            }
            PatternKind::Blocks => {
                Draw::Blocks { side: point.number("side")? as usize, sparsity: sparsity()? }
            }
            PatternKind::Documents => Draw::Documents { length: point.number("length")? as usize },
            PatternKind::Mask => Draw::Mask { band: point.number("band")? as usize, sparsity: sparsity()? },
        })
    }
}
