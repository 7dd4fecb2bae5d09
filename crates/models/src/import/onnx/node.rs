//! A node, with its attributes.
use super::schema::{AttributeProto, NodeProto};
use super::{NodeProblem, OnnxError};

/// The most that an extent or an attribute may be, so that sums of some cannot overflow.
const MOST: i64 = i32::MAX as i64;

/// A node of the graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'g>(pub(super) &'g NodeProto);

impl<'g> Node<'g> {
    pub(super) fn op(&self) -> &'g str {
        &self.0.op_type
    }

    /// What errors call it.
    pub(super) fn name(&self) -> &'g str {
        let result = self.0.output.first().map_or("without a name", String::as_str);
        if self.0.name.is_empty() { result } else { &self.0.name }
    }

    /// The name of an input; none where it is left out.
    pub(super) fn input(&self, number: usize) -> Option<&'g str> {
        self.0.input.get(number).map(String::as_str).filter(|name| !name.is_empty())
    }

    pub(super) fn error(&self, problem: impl Into<NodeProblem>) -> OnnxError {
        OnnxError::Node {
            node: self.name().to_owned(),
            op: self.op().to_owned(),
            problem: Box::new(problem.into()),
        }
    }

    /// An error that tells of an attribute.
    pub(super) fn wrong(
        &self,
        attribute: &'static str,
        expected: &'static str,
        got: impl std::fmt::Debug,
    ) -> OnnxError {
        self.error(NodeProblem::Attribute { attribute, expected, got: format!("{got:?}") })
    }

    /// An error that tells of an input.
    pub(super) fn operand(&self, input: usize, expected: &'static str, got: impl Into<String>) -> OnnxError {
        self.error(NodeProblem::Operand { input, expected, got: got.into() })
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&'g AttributeProto> {
        self.0.attribute.iter().find(|attribute| attribute.name == name)
    }

    pub(super) fn int(&self, name: &str, otherwise: i64) -> i64 {
        self.attribute(name).map_or(otherwise, |attribute| attribute.i)
    }

    pub(super) fn float(&self, name: &str, otherwise: f32) -> f32 {
        self.attribute(name).map_or(otherwise, |attribute| attribute.f)
    }

    pub(super) fn string(&self, name: &str, otherwise: &'static str) -> String {
        let of = |attribute: &AttributeProto| String::from_utf8_lossy(&attribute.s).into_owned();
        self.attribute(name).map_or_else(|| otherwise.to_owned(), of)
    }

    pub(super) fn ints(&self, name: &str) -> Option<&'g [i64]> {
        self.attribute(name).map(|attribute| attribute.ints.as_slice())
    }

    /// Refuses another value of an attribute than this one.
    pub(super) fn expect_int(
        &self,
        name: &'static str,
        only: i64,
        expected: &'static str,
    ) -> Result<(), OnnxError> {
        let got = self.int(name, only);
        if got == only { Ok(()) } else { Err(self.wrong(name, expected, got)) }
    }

    /// Rows and columns; `otherwise` where the attribute is not there.
    pub(super) fn pair(&self, name: &'static str, otherwise: [usize; 2]) -> Result<[usize; 2], OnnxError> {
        let Some(ints) = self.ints(name) else { return Ok(otherwise) };
        sizes(ints).ok_or_else(|| self.wrong(name, "two extents, of rows and of columns", ints))
    }
}

/// So many sizes, each of which fits 31 bits.
pub(super) fn sizes<const N: usize>(ints: &[i64]) -> Option<[usize; N]> {
    let ints: [i64; N] = ints.try_into().ok()?;
    let are_right = ints.iter().all(|&int| (0..=MOST).contains(&int));
    are_right.then(|| ints.map(|int| int as usize))
}
