//! safetensors: good, bad and hostile containers. The crate `safetensors` is the second opinion on the format.

use half::{bf16, f16};
use lacuna_matrix::io::ReadError;
use lacuna_matrix::io::safetensors::{Container, Float, Tensors};
use lacuna_matrix::{Csr, FormatError};
use proptest::prelude::*;
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};

fn matrix() -> Csr<f32> {
    Csr::new(3, 5, vec![0, 2, 2, 4], vec![1, 4, 0, 2], vec![1.5, -2.0, f32::INFINITY, 0.0]).unwrap()
}

fn written(tensors: &Tensors<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    tensors.write(&mut bytes).unwrap();
    bytes
}

fn le_bytes<T: Copy, const N: usize>(elements: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    elements.iter().flat_map(|&element| bytes(element)).collect()
}

fn i64s(elements: &[i64]) -> Vec<u8> {
    le_bytes(elements, i64::to_le_bytes)
}

/// A tensor: its name, type, shape and bytes.
type Tensor = (&'static str, Dtype, Vec<usize>, Vec<u8>);

/// The tensors of [`matrix`] as PyTorch has them, without a shape.
fn torch() -> Vec<Tensor> {
    vec![
        ("w.crow_indices", Dtype::I64, vec![4], i64s(&[0, 2, 2, 4])),
        ("w.col_indices", Dtype::I64, vec![4], i64s(&[1, 4, 0, 2])),
        ("w.values", Dtype::F32, vec![4], le_bytes(matrix().values(), f32::to_le_bytes)),
    ]
}

/// A container of these, by the other implementation.
fn container(tensors: &[Tensor]) -> Vec<u8> {
    let views = tensors
        .iter()
        .map(|(name, dtype, shape, bytes)| (*name, TensorView::new(*dtype, shape.clone(), bytes).unwrap()));
    serialize(views, None).unwrap()
}

/// The same, with one tensor in the place of that of its name, or beside the others.
fn with(tensor: Tensor) -> Vec<u8> {
    let mut tensors = torch();
    tensors.retain(|(name, ..)| *name != tensor.0);
    tensors.push(tensor);
    container(&tensors)
}

fn read(bytes: &[u8], cols: Option<usize>) -> Result<Csr<f32>, ReadError> {
    Container::new(bytes)?.csr("w", cols)
}

fn refused(bytes: &[u8], says: &str) {
    let error = read(bytes, Some(5)).unwrap_err().to_string();
    assert!(error.contains(says), "{error}");
}

#[test]
fn reads_what_pytorch_has() {
    assert_eq!(read(&container(&torch()), Some(5)).unwrap(), matrix());
    let shape = with(("w.shape", Dtype::I64, vec![2], i64s(&[3, 5])));
    assert_eq!(read(&shape, None).unwrap(), matrix());
    assert_eq!(read(&shape, Some(5)).unwrap(), matrix());
    let narrow = |elements: &[i32]| le_bytes(elements, i32::to_le_bytes);
    let columns = with(("w.col_indices", Dtype::I32, vec![4], narrow(&[1, 4, 0, 2])));
    assert_eq!(read(&columns, Some(5)).unwrap(), matrix());
    let offsets = with(("w.crow_indices", Dtype::I32, vec![4], narrow(&[0, 2, 2, 4])));
    assert_eq!(read(&offsets, Some(5)).unwrap(), matrix());
    assert_eq!(Container::new(&offsets).unwrap().csr_rows("w").unwrap(), 3);
}

#[test]
fn values_of_16_bits_are_widened() {
    let halves = [f16::from_f32(0.1), f16::NEG_INFINITY, f16::from_bits(1), f16::NEG_ZERO];
    let file = with(("w.values", Dtype::F16, vec![4], le_bytes(&halves, f16::to_le_bytes)));
    assert_eq!(read(&file, Some(5)).unwrap().values(), halves.map(f16::to_f32));
    let halves = [bf16::from_f32(0.1), bf16::MAX, bf16::from_bits(1), bf16::NEG_ZERO];
    let file = with(("w.values", Dtype::BF16, vec![4], le_bytes(&halves, bf16::to_le_bytes)));
    assert_eq!(read(&file, Some(5)).unwrap().values(), halves.map(bf16::to_f32));
}

#[test]
fn the_other_implementation_reads_what_is_written() {
    let matrix = matrix();
    let bytes = written(&Tensors::default().vector("b", &[2.5]).csr("w", &matrix));
    let read = SafeTensors::deserialize(&bytes).unwrap();
    let expected = [
        ("b", Dtype::F32, vec![1], le_bytes(&[2.5], f32::to_le_bytes)),
        ("w.shape", Dtype::I64, vec![2], i64s(&[3, 5])),
        ("w.crow_indices", Dtype::I32, vec![4], le_bytes(&[0, 2, 2, 4], i32::to_le_bytes)),
        ("w.col_indices", Dtype::I32, vec![4], le_bytes(&[1, 4, 0, 2], i32::to_le_bytes)),
        ("w.values", Dtype::F32, vec![4], le_bytes(matrix.values(), f32::to_le_bytes)),
    ];
    assert_eq!(read.len(), expected.len());
    for (name, dtype, shape, bytes) in &expected {
        let tensor = read.tensor(name).unwrap();
        assert_eq!(
            (tensor.dtype(), tensor.shape(), tensor.data()),
            (*dtype, &shape[..], &bytes[..]),
            "{name}"
        );
    }
    let wide = Csr::new(1, u32::MAX as usize, vec![0, 1], vec![u32::MAX - 1], vec![1.0]).unwrap();
    let bytes = written(&Tensors::default().csr("w", &matrix).csr("w", &wide));
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.tensor("w.col_indices").unwrap().dtype(), Dtype::I64);
    assert_eq!(self::read(&bytes, None).unwrap(), wide);
    let error = Tensors::default().vector("__metadata__", &[]).write(Vec::new()).unwrap_err();
    assert!(error.to_string().contains("`__metadata__`"), "{error}");
}

#[test]
fn files_are_read_tensor_by_tensor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.safetensors");
    let matrix = matrix();
    let tensors = Tensors::default().csr("w", &matrix).vector("b", &[1.0, 2.0]);
    tensors.write_path(&path).unwrap();
    let container = Container::open(&path).unwrap();
    assert_eq!(container.csr("w", None).unwrap(), matrix);
    assert_eq!(container.vector("b").unwrap(), [1.0, 2.0]);
    assert!(container.contains("b") && !container.contains("w"));
    assert_eq!(container.names().len(), 5);
    let missing = container.vector("c").unwrap_err().to_string();
    assert!(missing.contains("a tensor `c`") && missing.contains("net.safetensors"), "{missing}");

    // A file that became shorter since.
    let whole = written(&tensors);
    std::fs::write(&path, &whole[..whole.len() - 12]).unwrap();
    let error = container.csr("w", None).unwrap_err().to_string();
    assert!(error.contains("bytes of a tensor"), "{error}");
    let error = Container::open(&path).unwrap_err().to_string();
    assert!(error.contains("bytes of") && error.contains("net.safetensors"), "{error}");
    let error = Container::open(folder.path().join("none")).unwrap_err();
    assert!(matches!(error, ReadError::File { .. }), "{error}");
    let unwritten = tensors.write_path(folder.path().join("none/net")).unwrap_err();
    assert!(unwritten.to_string().contains("cannot write"), "{unwritten}");
}

#[test]
fn tensors_that_are_not_a_matrix_are_refused() {
    for missing in ["w.crow_indices", "w.col_indices", "w.values"] {
        let rest: Vec<_> = torch().into_iter().filter(|(name, ..)| *name != missing).collect();
        refused(&container(&rest), &format!("expected a tensor `{missing}`, got no such name"));
    }
    let error = read(&container(&torch()), None).unwrap_err().to_string();
    assert!(error.contains("`w.shape`, or columns that the caller gives"), "{error}");

    refused(&with(("w.values", Dtype::I64, vec![4], vec![0; 32])), "`w.values` of type I64 is not supported");
    refused(&with(("w.col_indices", Dtype::U32, vec![4], vec![0; 16])), "supported: I32 and I64");
    refused(&with(("w.values", Dtype::F32, vec![2, 2], vec![0; 16])), "of one dimension, got [2, 2]");
    refused(&with(("w.crow_indices", Dtype::I64, vec![], vec![0; 8])), "of one dimension, got []");
    refused(&with(("w.crow_indices", Dtype::I64, vec![0], vec![])), "of at least one element");
    for shape in [[3, 6], [2, 5], [-3, 5], [3, -5]] {
        refused(&with(("w.shape", Dtype::I64, vec![2], i64s(&shape))), "of 3 rows and 5 columns, got");
    }
    refused(&with(("w.shape", Dtype::I64, vec![3], i64s(&[3, 5, 1]))), "`w.shape` of 3 rows and 5 columns");

    let offsets = |offsets: &[i64]| {
        let file = with(("w.crow_indices", Dtype::I64, vec![offsets.len()], i64s(offsets)));
        match read(&file, Some(5)) {
            Err(ReadError::Format { source, .. }) => source,
            other => panic!("{other:?}"),
        }
    };
    assert!(matches!(offsets(&[1, 2, 2, 4]), FormatError::OffsetsStart { got: 1 }));
    assert!(matches!(offsets(&[0, 3, 2, 4]), FormatError::OffsetsDecrease { row: 1, .. }));
    assert!(matches!(offsets(&[0, 2, 2, 3]), FormatError::OffsetsEnd { .. }));
    assert!(matches!(offsets(&[0, -1, 2, 4]), FormatError::Negative { .. }));
    assert!(matches!(offsets(&[0, 1 << 40, 2, 4]), FormatError::TooLarge { .. }));
    let columns = |columns: &[i64]| {
        let file = with(("w.col_indices", Dtype::I64, vec![columns.len()], i64s(columns)));
        match read(&file, Some(5)) {
            Err(ReadError::Format { source, .. }) => source,
            other => panic!("{other:?}"),
        }
    };
    assert!(matches!(columns(&[1, 5, 0, 2]), FormatError::ColumnOutOfRange { column: 5, .. }));
    assert!(matches!(columns(&[4, 1, 0, 2]), FormatError::UnsortedColumns { .. }));
    assert!(matches!(columns(&[1, 1, 0, 2]), FormatError::Duplicate { .. }));
    assert!(matches!(columns(&[1, 4, 0, -2]), FormatError::Negative { .. }));
    assert!(matches!(columns(&[1, 4, 0]), FormatError::OffsetsEnd { .. }));
    refused(&with(("w.values", Dtype::F32, vec![3], vec![0; 12])), "values: expected 4 elements, got 3");
}

#[test]
fn vectors_have_at_most_one_dimension() {
    let tensors = [
        ("one", Dtype::F32, vec![], le_bytes(&[0.25], f32::to_le_bytes)),
        ("half", Dtype::F16, vec![1], le_bytes(&[f16::ONE], f16::to_le_bytes)),
        ("flat", Dtype::F32, vec![2, 1], vec![0; 8]),
        ("whole", Dtype::I32, vec![2], vec![0; 8]),
    ];
    let bytes = container(&tensors);
    let container = Container::new(&bytes).unwrap();
    assert_eq!(container.vector("one").unwrap(), [0.25]);
    assert_eq!(container.vector("half").unwrap(), [1.0]);
    let error = container.vector("flat").unwrap_err().to_string();
    assert!(error.contains("`flat` of at most one dimension, got [2, 1]"), "{error}");
    let error = container.vector("whole").unwrap_err().to_string();
    assert!(
        error.contains("`whole` of type I32 is not supported; supported: F32, F16, BF16 and F64"),
        "{error}"
    );
}

#[test]
fn headers_that_lie_are_refused() {
    let file = |header: &str| [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat();
    let says = |bytes: &[u8], says: &str| {
        let error = Container::new(bytes).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    says(b"", "the length of a header");
    says(&u64::MAX.to_le_bytes(), "at most 100000000 bytes");
    says(&[100, 0, 0, 0, 0, 0, 0, 0, b'{'], "bytes of header");
    says(&file("[]"), "a safetensors header");
    says(&file(&"[".repeat(1 << 20)), "a safetensors header");
    says(&file(r#"{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}"#), "bytes of container");
    says(&file(r#"{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}"#), "a safetensors header");
    says(&file(r#"{"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}"#), "a safetensors header");
    let max = u64::MAX;
    says(
        &file(&format!(r#"{{"a": {{"dtype": "U8", "shape": [{max}], "data_offsets": [0, {max}]}}}}"#)),
        "header",
    );
    // Many tensors that together have more bytes than can be counted.
    let eighth = 1_u64 << 60;
    let tensors: Vec<String> = (0..16)
        .map(|at| {
            let (start, end) = (at * eighth, (at as u128 + 1) * u128::from(eighth));
            format!(r#""{at}": {{"dtype": "U8", "shape": [{eighth}], "data_offsets": [{start}, {end}]}}"#)
        })
        .collect();
    says(&file(&format!("{{{}}}", tensors[..15].join(","))), "bytes of container");
    says(&file(&format!("{{{}}}", tensors.join(","))), "a safetensors header");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_containers_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let matrix = matrix();
        let mut bytes = written(&Tensors::default().csr("w", &matrix));
        prop_assert!(Container::new(&bytes[..cut.index(bytes.len())]).is_err());
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(read) = read(&bytes, None) {
            let again = self::read(&written(&Tensors::default().csr("w", &read)), None).unwrap();
            prop_assert_eq!(again.pattern(), read.pattern());
        }
    }
}

#[test]
fn tensors_of_any_dimensions_and_types() {
    let numbers = [1.0, -2.5, 0.0, 65504.0, 0.5, 3.0];
    let matrix = Csr::new(2, 6, vec![0, 1, 3], vec![5, 0, 2], vec![1.5, -2.0, 0.25]).unwrap();
    let tensors = Tensors::default()
        .dense("f32", &[1, 2, 3], &numbers, Float::F32)
        .dense("f16", &[3, 2], &numbers, Float::F16)
        .dense("bf16", &[6], &numbers[..2], Float::Bf16)
        .dense("bf16", &[2], &numbers[..2], Float::Bf16)
        .bytes("count", Dtype::U8, &[3], b"abc")
        .csr_tensor("w", &[2, 3, 2], &matrix, Float::F16)
        .remark("format", "pt");
    let bytes = written(&tensors);
    let other = SafeTensors::deserialize(&bytes).unwrap();
    let kinds =
        [("f32", Dtype::F32, vec![1, 2, 3]), ("f16", Dtype::F16, vec![3, 2]), ("bf16", Dtype::BF16, vec![2])];
    let container = Container::new(&bytes).unwrap();
    for (name, dtype, shape) in &kinds {
        let tensor = other.tensor(name).unwrap();
        assert_eq!((tensor.dtype(), tensor.shape()), (*dtype, &shape[..]), "{name}");
        assert_eq!(container.kind(name), Some((*dtype, &shape[..])));
        assert_eq!(container.numbers(name).unwrap(), numbers[..shape.iter().product()], "{name}");
    }
    assert_eq!(container.bytes("count").unwrap(), b"abc");
    assert_eq!(container.remarks().into_iter().collect::<Vec<_>>(), [("format".into(), "pt".into())]);
    assert!(container.is_csr("w") && !container.is_csr("f32"));
    assert_eq!(container.csr_tensor("w").unwrap(), (vec![2, 3, 2], matrix.clone()));
    assert_eq!(written(&tensors), bytes);

    let wrong = Tensors::default().dense("a", &[2, 2], &numbers, Float::F32).write(Vec::new());
    assert!(wrong.is_err());
}

#[test]
fn numbers_of_64_bits_are_rounded() {
    let doubles = [0.1_f64, 1e300, -0.0, 1e-50];
    let file = with(("d", Dtype::F64, vec![2, 2], le_bytes(&doubles, f64::to_le_bytes)));
    let read = Container::new(&file).unwrap().numbers("d").unwrap();
    assert_eq!(read, [0.1_f32, f32::INFINITY, -0.0, 0.0]);
    let integers = Container::new(&file).unwrap().numbers("w.crow_indices").unwrap_err().to_string();
    assert!(integers.contains("`w.crow_indices` of type I64 is not supported"), "{integers}");
}

#[test]
fn shapes_that_are_not_a_sparse_tensors_are_refused() {
    for (shape, says) in [
        (vec![], "`w.shape` of 3 rows"),
        (vec![2, 5], "`w.shape` of 3 rows"),
        (vec![3, -1], "`w.shape` of 3 rows"),
        (vec![3, 2], "expected less than 2, got 4"),
        (vec![3, i64::MAX, i64::MAX], "columns: expected at most"),
    ] {
        let file = with(("w.shape", Dtype::I64, vec![shape.len()], i64s(&shape)));
        let error = Container::new(&file).unwrap().csr_tensor("w").unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let error = Container::new(&container(&torch())).unwrap().csr_tensor("w").unwrap_err().to_string();
    assert!(error.contains("a tensor `w.shape`"), "{error}");
}
