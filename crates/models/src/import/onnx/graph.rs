//! The graph of a file: which nodes are needed, who reads what, and what is in the file.
use std::collections::{BTreeMap, BTreeSet};

use super::constant::Constant;
use super::node::Node;
use super::schema::{GraphProto, ValueInfoProto};
use super::{NodeProblem, OnnxError};

/// A graph.
#[derive(Debug)]
pub(super) struct Graph<'g> {
    /// Its one input.
    pub(super) input: &'g ValueInfoProto,
    /// The nodes that the result needs, in the order of the file.
    pub(super) nodes: Vec<Node<'g>>,
    /// The result.
    pub(super) output: &'g str,
    constants: BTreeMap<&'g str, Constant<'g>>,
    /// How often needed nodes, and the result, name a value.
    readers: BTreeMap<&'g str, usize>,
    initializers: BTreeSet<&'g str>,
    makers: BTreeMap<&'g str, Node<'g>>,
}

impl<'g> Graph<'g> {
    /// The part of a graph that makes a result; the only one if none is named.
    pub(super) fn new(graph: &'g GraphProto, wanted: Option<&str>) -> Result<Self, OnnxError> {
        let constants: BTreeMap<&str, Constant<'_>> =
            graph.initializer.iter().map(|tensor| (tensor.name.as_str(), Constant(tensor))).collect();
        let input = only_input(graph, &constants)?;
        let names = || graph.output.iter().map(|output| output.name.as_str());
        let output = match wanted {
            // Any value may be chosen, not only a result of the file.
            Some(wanted) => graph
                .node
                .iter()
                .flat_map(|node| &node.output)
                .map(String::as_str)
                .find(|&name| name == wanted && !name.is_empty()),
            None => names().next().filter(|_| graph.output.len() == 1),
        };
        let Some(output) = output else {
            let got = names().map(str::to_owned).collect();
            return Err(OnnxError::Output { wanted: wanted.map(str::to_owned), got });
        };
        let mut makers: BTreeMap<&str, Node<'_>> = BTreeMap::new();
        for node in graph.node.iter().map(Node) {
            for name in node.0.output.iter().filter(|name| !name.is_empty()) {
                if makers.insert(name, node).is_some() {
                    return Err(node.error(NodeProblem::Results { got: node.0.output.clone() }));
                }
            }
        }
        let mut needed = BTreeSet::new();
        let mut readers = BTreeMap::from([(output, 1)]);
        let mut left = vec![output];
        while let Some(name) = left.pop() {
            if let Some(node) = makers.get(name)
                && needed.insert(std::ptr::from_ref(node.0))
            {
                for input in node.0.input.iter().filter(|input| !input.is_empty()) {
                    *readers.entry(input.as_str()).or_insert(0) += 1;
                    left.push(input);
                }
            }
        }
        let nodes = graph.node.iter().filter(|&node| needed.contains(&std::ptr::from_ref(node)));
        let nodes = nodes.map(Node).collect();
        let initializers = constants.keys().copied().collect();
        Ok(Self { input, nodes, output, constants, readers, initializers, makers })
    }

    /// How many needed nodes read a value; the result has one more.
    pub(super) fn readers(&self, name: &str) -> usize {
        self.readers.get(name).copied().unwrap_or(0)
    }

    /// The node that makes a value.
    pub(super) fn maker(&self, name: &str) -> Option<Node<'g>> {
        self.makers.get(name).copied()
    }

    /// The values of this name, if they are in the file.
    pub(super) fn constant(&self, name: &str) -> Option<Constant<'g>> {
        self.constants.get(name).copied()
    }

    /// Whether the file has values of this name from the start.
    pub(super) fn is_initializer(&self, name: &str) -> bool {
        self.initializers.contains(name)
    }

    /// Reads a node that makes values of the file, or gives them another name.
    pub(super) fn add_constant(&mut self, node: Node<'g>) -> Result<(), OnnxError> {
        let constant = match node.input(0) {
            Some(name) => self.constant(name),
            None => node.attribute("value").and_then(|attribute| attribute.t.as_ref()).map(Constant),
        };
        let Some(constant) = constant else { return Err(node.wrong("value", "a tensor", "none")) };
        match node.0.output.first() {
            Some(name) if !self.constants.contains_key(name.as_str()) => {
                self.constants.insert(name, constant);
                Ok(())
            }
            _ => Err(node.error(NodeProblem::Results { got: node.0.output.clone() })),
        }
    }
}

/// The input that is not in the file: files of old versions name initializers among the inputs.
fn only_input<'g>(
    graph: &'g GraphProto,
    constants: &BTreeMap<&str, Constant<'_>>,
) -> Result<&'g ValueInfoProto, OnnxError> {
    let inputs: Vec<&ValueInfoProto> =
        graph.input.iter().filter(|input| !constants.contains_key(input.name.as_str())).collect();
    match inputs[..] {
        [input] => Ok(input),
        _ => Err(OnnxError::Inputs { got: inputs.iter().map(|input| input.name.clone()).collect() }),
    }
}
