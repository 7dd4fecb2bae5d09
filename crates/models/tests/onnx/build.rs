//! ONNX files made here, in protobuf's encoding: a field is its number and kind, and then a number, or a length and bytes.

/// A message under construction.
#[derive(Clone, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number > 127 {
            self.0.push(number as u8 | 128);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub(crate) fn int(mut self, field: u64, value: i64) -> Self {
        self.varint(field << 3);
        self.varint(value as u64);
        self
    }

    pub(crate) fn float(mut self, field: u64, value: f32) -> Self {
        self.varint(field << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn bytes(mut self, field: u64, value: impl AsRef<[u8]>) -> Self {
        self.varint(field << 3 | 2);
        self.varint(value.as_ref().len() as u64);
        self.0.extend(value.as_ref());
        self
    }

    pub(crate) fn message(self, field: u64, value: Self) -> Self {
        self.bytes(field, value.0)
    }

    /// As older writers do, each by itself.
    pub(crate) fn ints(self, field: u64, values: &[i64]) -> Self {
        values.iter().fold(self, |message, &value| message.int(field, value))
    }
}

/// A node, to which attributes are added.
pub(crate) fn node(op: &str, name: &str, inputs: &[&str], output: &str) -> Message {
    let message = inputs.iter().fold(Message::default(), |message, input| message.bytes(1, input));
    message.bytes(2, output).bytes(3, name).bytes(4, op)
}

impl Message {
    fn attribute(self, name: &str, kind: i64, with: impl Fn(Self) -> Self) -> Self {
        self.message(5, with(Self::default().bytes(1, name)).int(20, kind))
    }

    pub(crate) fn with_int(self, name: &str, value: i64) -> Self {
        self.attribute(name, 2, |attribute| attribute.int(3, value))
    }

    pub(crate) fn with_float(self, name: &str, value: f32) -> Self {
        self.attribute(name, 1, |attribute| attribute.float(2, value))
    }

    pub(crate) fn with_string(self, name: &str, value: &str) -> Self {
        self.attribute(name, 3, |attribute| attribute.bytes(4, value))
    }

    pub(crate) fn with_ints(self, name: &str, values: &[i64]) -> Self {
        self.attribute(name, 7, |attribute| attribute.ints(8, values))
    }

    pub(crate) fn with_tensor(self, name: &str, tensor: &Self) -> Self {
        self.attribute(name, 4, |attribute| attribute.message(5, tensor.clone()))
    }
}

/// A tensor of `f32` by its bytes.
pub(crate) fn tensor(name: &str, shape: &[i64], values: &[f32]) -> Message {
    let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Message::default().ints(1, shape).int(2, 1).bytes(8, name).bytes(9, raw)
}

/// A vector of integers.
pub(crate) fn integers(name: &str, values: &[i64]) -> Message {
    Message::default().int(1, values.len() as i64).int(2, 7).ints(7, values).bytes(8, name)
}

/// A value with its extents; those below 0 are left open.
pub(crate) fn value(name: &str, shape: &[i64]) -> Message {
    let dim = |&extent: &i64| {
        let dim = Message::default();
        if extent < 0 { dim.bytes(2, "open") } else { dim.int(1, extent) }
    };
    let shape = shape.iter().map(dim).fold(Message::default(), |shape, dim| shape.message(1, dim));
    let tensor = Message::default().int(1, 1).message(2, shape);
    Message::default().bytes(1, name).message(2, Message::default().message(1, tensor))
}

/// A file, whose results are those of the names.
pub(crate) fn file(input: &[i64], nodes: &[Message], tensors: &[Message], outputs: &[&str]) -> Vec<u8> {
    let graph = nodes.iter().fold(Message::default(), |graph, node| graph.message(1, node.clone()));
    let graph = tensors.iter().fold(graph, |graph, tensor| graph.message(5, tensor.clone()));
    let graph = graph.message(11, value("x", input));
    let graph = outputs.iter().fold(graph, |graph, name| graph.message(12, value(name, &[])));
    let opset = Message::default().bytes(1, "").int(2, 17);
    Message::default().int(1, 8).message(7, graph).message(8, opset).0
}
