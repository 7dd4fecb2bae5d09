//! TFLite files made here: a FlatBuffer is written parents first, as offsets go ahead.

/// A value of a field.
#[derive(Clone)]
pub(crate) enum Value {
    /// A number of at most four bytes.
    Number(i32),
    Bytes(Vec<u8>),
    U16s(Vec<u16>),
    I32s(Vec<i32>),
    Table(Table),
    Tables(Vec<Table>),
}

/// Fields with their numbers in the schema.
pub(crate) type Table = Vec<(usize, Value)>;

pub(crate) fn text(text: &str) -> Value {
    Value::Bytes(text.into())
}

/// The bytes of a file with this root.
pub(crate) fn file(root: &Table) -> Vec<u8> {
    let mut out = vec![0; 8];
    out[4..].copy_from_slice(b"TFL3");
    let at = write_table(&mut out, root);
    point(&mut out, 0, at);
    out
}

/// Writes at `from` how far ahead `to` is.
fn point(out: &mut [u8], from: usize, to: usize) {
    out[from..from + 4].copy_from_slice(&((to - from) as u32).to_le_bytes());
}

/// Writes a vtable, the table, four bytes a field, and then what its fields name. Returns where the table is.
fn write_table(out: &mut Vec<u8>, fields: &Table) -> usize {
    out.resize(out.len().next_multiple_of(4), 0);
    let vtable = out.len();
    let count = fields.iter().map(|(field, _)| field + 1).max().unwrap_or(0);
    let mut offsets = vec![0_u16; count];
    for (slot, (field, _)) in fields.iter().enumerate() {
        offsets[*field] = 4 + 4 * slot as u16;
    }
    let sizes = [4 + 2 * count as u16, 4 + 4 * fields.len() as u16];
    out.extend(sizes.into_iter().chain(offsets).flat_map(u16::to_le_bytes));
    out.resize(out.len().next_multiple_of(4), 0);
    let table = out.len();
    out.extend(((table - vtable) as i32).to_le_bytes());
    out.resize(table + 4 + 4 * fields.len(), 0);
    for (slot, (_, value)) in fields.iter().enumerate() {
        let at = table + 4 + 4 * slot;
        if let Value::Number(number) = value {
            out[at..at + 4].copy_from_slice(&number.to_le_bytes());
            continue;
        }
        let to = match value {
            Value::Bytes(bytes) => write_vector(out, bytes.len(), bytes),
            Value::U16s(numbers) => write_vector(
                out,
                numbers.len(),
                &numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>(),
            ),
            Value::I32s(numbers) => write_vector(
                out,
                numbers.len(),
                &numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>(),
            ),
            Value::Tables(tables) => {
                let vector = write_vector(out, tables.len(), &vec![0; 4 * tables.len()]);
                for (index, table) in tables.iter().enumerate() {
                    let to = write_table(out, table);
                    point(out, vector + 4 + 4 * index, to);
                }
                vector
            }
            Value::Table(table) => write_table(out, table),
            Value::Number(_) => continue,
        };
        point(out, at, to);
    }
    table
}

fn write_vector(out: &mut Vec<u8>, len: usize, bytes: &[u8]) -> usize {
    out.resize(out.len().next_multiple_of(4), 0);
    let at = out.len();
    out.extend((len as u32).to_le_bytes());
    out.extend(bytes);
    // Strings end with it, which LiteRT checks.
    out.push(0);
    at
}

/// A network: tensors with their buffers' bytes, and operators with their codes.
#[derive(Clone, Default)]
pub(crate) struct Network {
    pub(crate) tensors: Vec<(Table, Vec<u8>)>,
    pub(crate) operators: Vec<(i32, Table)>,
    /// The last tensor if none.
    pub(crate) outputs: Option<Vec<i32>>,
}

impl Network {
    /// Adds a tensor of this name, shape and type.
    pub(crate) fn tensor(mut self, name: &str, shape: &[i32], element: i32, values: &[u8]) -> Self {
        let table = vec![(0, Value::I32s(shape.to_vec())), (1, Value::Number(element)), (3, text(name))];
        self.tensors.push((table, values.to_vec()));
        self
    }

    /// Makes the last tensor sparse: its traversal order, block map and levels.
    pub(crate) fn sparse(mut self, order: &[i32], blocks: &[i32], levels: Vec<Table>) -> Self {
        let sparsity = vec![
            (0, Value::I32s(order.to_vec())),
            (1, Value::I32s(blocks.to_vec())),
            (2, Value::Tables(levels)),
        ];
        self.tensors.last_mut().unwrap().0.push((6, Value::Table(sparsity)));
        self
    }

    /// Adds an operator of this code, with options of this type.
    pub(crate) fn operator(
        mut self,
        code: i32,
        inputs: &[i32],
        outputs: &[i32],
        options: Option<(i32, Table)>,
    ) -> Self {
        let mut table = vec![(1, Value::I32s(inputs.to_vec())), (2, Value::I32s(outputs.to_vec()))];
        if let Some((of, options)) = options {
            table.extend([(3, Value::Number(of)), (4, Value::Table(options))]);
        }
        self.operators.push((code, table));
        self
    }

    /// With these outputs.
    pub(crate) fn outputs(self, outputs: &[i32]) -> Self {
        Self { outputs: Some(outputs.to_vec()), ..self }
    }

    /// The file: buffer 0 is empty, as in all files, and each operator has a code of its own.
    pub(crate) fn file(self) -> Vec<u8> {
        let (mut tensors, mut buffers) = (Vec::new(), vec![vec![]]);
        for (mut table, values) in self.tensors {
            table.push((2, Value::Number(buffers.len() as i32)));
            buffers.push(if values.is_empty() { vec![] } else { vec![(0, Value::Bytes(values))] });
            tensors.push(table);
        }
        let (mut codes, mut operators) = (Vec::new(), Vec::new());
        for (code, mut table) in self.operators {
            table.push((0, Value::Number(codes.len() as i32)));
            // Codes that fit are in the old field, too.
            codes.push(vec![(0, Value::Number(code.min(127))), (1, text("mine")), (3, Value::Number(code))]);
            operators.push(table);
        }
        let last = tensors.len() as i32 - 1;
        let graph = vec![
            (0, Value::Tables(tensors)),
            (1, Value::I32s(vec![0])),
            (2, Value::I32s(self.outputs.unwrap_or_else(|| vec![last]))),
            (3, Value::Tables(operators)),
        ];
        file(&vec![
            (0, Value::Number(3)),
            (1, Value::Tables(codes)),
            (2, Value::Tables(vec![graph])),
            (4, Value::Tables(buffers)),
        ])
    }
}

/// A dense level.
pub(crate) fn dense(extent: i32) -> Table {
    vec![(0, Value::Number(0)), (1, Value::Number(extent))]
}

/// A compressed level with indices of 8, 16 or 32 bits.
pub(crate) fn compressed(bits: u32, segments: &[i32], indices: &[i32]) -> Table {
    let vector = |numbers: &[i32]| match bits {
        8 => (3, Value::Bytes(numbers.iter().map(|&x| x as u8).collect())),
        16 => (2, Value::U16s(numbers.iter().map(|&x| x as u16).collect())),
        _ => (1, Value::I32s(numbers.to_vec())),
    };
    let [(of, segments), (_, indices)] = [vector(segments), vector(indices)];
    vec![
        (0, Value::Number(1)),
        (2, Value::Number(of)),
        (3, Value::Table(vec![(0, segments)])),
        (4, Value::Number(of)),
        (5, Value::Table(vec![(0, indices)])),
    ]
}
