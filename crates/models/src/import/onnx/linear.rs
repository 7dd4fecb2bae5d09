//! Products with matrices.
use super::OnnxError;
use super::importer::{Importer, Value, View};
use super::node::Node;
use super::sums::per_channel;
use crate::network::{Linear, Shape};

impl<'g> Importer<'g> {
    pub(super) fn linear(&mut self, node: Node<'g>) -> Result<Value, OnnxError> {
        let is_gemm = node.op() == "Gemm";
        node.expect_int("transA", 0, "0")?;
        let value = self.value(node, 0)?;
        let of = self.drafts.shape(value.id);
        if value.view != View::Matrix {
            let got = format!("{of} as {:?}", value.view);
            return Err(node.operand(0, "a matrix: flatten or pool maps before", got));
        }
        let (shape, mut numbers) = self.numbers(node, 1)?;
        let is_transposed = is_gemm && node.int("transB", 0) != 0;
        let (inputs, outputs) = match shape[..] {
            [rows, columns] if is_transposed => (columns, rows),
            [rows, columns] => (rows, columns),
            _ => return Err(node.operand(1, "a matrix", format!("values of shape {shape:?}"))),
        };
        if inputs != of.channels {
            let got = format!("a matrix {shape:?} for {} features", of.channels);
            return Err(node.operand(1, "as many rows as features", got));
        }
        if !is_transposed {
            let element = |at: usize| numbers[at % inputs * outputs + at / inputs];
            numbers = (0..numbers.len()).map(element).collect();
        }
        let (alpha, beta) =
            if is_gemm { (node.float("alpha", 1.0), node.float("beta", 1.0)) } else { (1.0, 1.0) };
        if alpha != 1.0 {
            numbers.iter_mut().for_each(|number| *number *= alpha);
        }
        let bias = match node.input(2).filter(|_| is_gemm) {
            None => None,
            Some(_) => {
                let (shape, numbers) = self.numbers(node, 2)?;
                let bias = per_channel(&shape, &numbers, View::Matrix, Shape::matrix(1, outputs));
                let got = || format!("values of shape {shape:?} for {outputs} columns");
                let bias = bias.ok_or_else(|| node.operand(2, "one value for each column", got()))?;
                Some(bias.into_iter().map(|number| number * beta).collect::<Vec<f32>>())
            }
        };
        let name = self.name(node, "");
        let linear = Linear { bias: bias.is_some(), ..Linear::new(outputs) };
        let id = self.named(node, name.clone(), linear, vec![value.id])?;
        self.weigh(node, format!("{name}.weight"), vec![outputs, inputs], numbers)?;
        if let Some(bias) = bias {
            self.weigh(node, format!("{name}.bias"), vec![outputs], bias)?;
        }
        Ok(Value { id, ..value })
    }
}
