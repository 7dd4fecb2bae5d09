//! An operator, and what errors say of it.
use super::{ImportError, OperatorProblem};
use crate::files::tflite::{Operator, OperatorKind};

/// An operator of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'m> {
    /// Its number.
    pub(super) index: usize,
    pub(super) operator: &'m Operator,
}

impl Place<'_> {
    /// The tensor of an input; none where it is left out.
    pub(super) fn input(&self, number: usize) -> Option<usize> {
        self.operator.inputs.get(number).copied().flatten()
    }

    pub(super) fn error(&self, problem: impl Into<OperatorProblem>) -> ImportError {
        let kind = name(&self.operator.kind);
        ImportError::Operator { index: self.index, kind, problem: Box::new(problem.into()) }
    }

    /// An error that tells of an option.
    pub(super) fn wrong(
        &self,
        option: &'static str,
        expected: &'static str,
        got: impl std::fmt::Debug,
    ) -> ImportError {
        self.error(OperatorProblem::Option { option, expected, got: format!("{got:?}") })
    }

    /// An error that tells of an input.
    pub(super) fn operand(
        &self,
        input: usize,
        expected: &'static str,
        got: impl Into<String>,
    ) -> ImportError {
        self.error(OperatorProblem::Operand { input, expected, got: got.into() })
    }
}

/// TensorFlow's name.
fn name(kind: &OperatorKind) -> String {
    let name = match kind {
        OperatorKind::Add { .. } => "ADD",
        OperatorKind::Concatenation { .. } => "CONCATENATION",
        OperatorKind::Conv2d { .. } => "CONV_2D",
        OperatorKind::DepthToSpace { .. } => "DEPTH_TO_SPACE",
        OperatorKind::DepthwiseConv2d { .. } => "DEPTHWISE_CONV_2D",
        OperatorKind::Densify => "DENSIFY",
        OperatorKind::Dequantize => "DEQUANTIZE",
        OperatorKind::MaxPool2d { .. } => "MAX_POOL_2D",
        OperatorKind::Pad => "PAD",
        OperatorKind::Prelu => "PRELU",
        OperatorKind::Relu => "RELU",
        OperatorKind::Reshape { .. } => "RESHAPE",
        OperatorKind::ResizeBilinear { .. } => "RESIZE_BILINEAR",
        OperatorKind::Other { code, name } if name.is_empty() => return format!("code {code}"),
        OperatorKind::Other { name, .. } => name,
    };
    name.to_owned()
}
