//! Weights in safetensors and `.npy` files: good, damaged and cut. The crates `safetensors` and `ndarray-npy` are the second opinions.
use ::safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use half::{bf16, f16};
use lacuna_models::files::{Archive, FileError, npy, npz, safetensors};
use lacuna_models::weights::{SparseError, SparseTensor, Tensor, Weights};
use ndarray_npy::WriteNpyExt;
use proptest::prelude::*;

/// A tensor: its name, type, shape and bytes.
type Stored = (&'static str, Dtype, Vec<usize>, Vec<u8>);

fn bytes<T: Copy, const N: usize>(elements: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    elements.iter().flat_map(|&element| bytes(element)).collect()
}

/// A container by the other implementation.
fn container(tensors: &[Stored]) -> Vec<u8> {
    let views = tensors
        .iter()
        .map(|(name, dtype, shape, bytes)| (*name, TensorView::new(*dtype, shape.clone(), bytes).unwrap()));
    serialize(views, None).unwrap()
}

/// A tensor of each type that is read, and a sparse one of 2 × 3 × 2.
fn stored() -> Vec<Stored> {
    vec![
        ("f32", Dtype::F32, vec![2, 2], bytes(&[1.0, -2.0, 0.0, 4.0], f32::to_le_bytes)),
        ("f16", Dtype::F16, vec![2], bytes(&[f16::from_f32(0.1), f16::MAX], f16::to_le_bytes)),
        ("bf16", Dtype::BF16, vec![], bytes(&[bf16::from_f32(3.0)], bf16::to_le_bytes)),
        ("f64", Dtype::F64, vec![1], bytes(&[0.1], f64::to_le_bytes)),
        ("w.values", Dtype::F16, vec![3], bytes(&[1.5, 2.0, -0.5].map(f16::from_f32), f16::to_le_bytes)),
        ("w.col_indices", Dtype::I64, vec![3], bytes(&[5, 0, 2], i64::to_le_bytes)),
        ("w.crow_indices", Dtype::I64, vec![3], bytes(&[0, 1, 3], i64::to_le_bytes)),
        ("w.shape", Dtype::I64, vec![3], bytes(&[2, 3, 2], i64::to_le_bytes)),
    ]
}

fn archive(file: &[u8]) -> Archive {
    Archive::read(&lacuna_matrix::io::safetensors::Container::new(file).unwrap(), |_, _| {}).unwrap()
}

#[test]
fn all_types_are_read_and_sparse_tensors_made_dense() {
    let weights = safetensors::from_bytes(&container(&stored())).unwrap();
    assert_eq!(weights.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["bf16", "f16", "f32", "f64", "w"]);
    assert_eq!(weights.get("f32", &[2, 2]).unwrap().values(), [1.0, -2.0, 0.0, 4.0]);
    assert_eq!(weights.get("f16", &[2]).unwrap().values(), [f16::from_f32(0.1).to_f32(), 65504.0]);
    assert_eq!(weights.get("bf16", &[]).unwrap().values(), [3.0]);
    assert_eq!(weights.get("f64", &[1]).unwrap().values(), [0.1]);
    let w = weights.get("w", &[2, 3, 2]).unwrap();
    assert_eq!(w.values(), [0.0, 0.0, 0.0, 0.0, 0.0, 1.5, 2.0, 0.0, -0.5, 0.0, 0.0, 0.0]);
}

#[test]
fn the_other_implementation_reads_what_is_written() {
    let mut weights = Weights::new();
    weights.insert("a", Tensor::new(vec![1, 2, 2], vec![1.0, f32::NEG_INFINITY, -0.0, 0.5]).unwrap());
    weights.insert("b", Tensor::new(vec![0, 3], vec![]).unwrap());
    let file = safetensors::to_bytes(&weights).unwrap();
    let other = SafeTensors::deserialize(&file).unwrap();
    let a = other.tensor("a").unwrap();
    assert_eq!((a.dtype(), a.shape()), (Dtype::F32, &[1, 2, 2][..]));
    assert_eq!(a.data(), bytes(&[1.0, f32::NEG_INFINITY, -0.0, 0.5], f32::to_le_bytes));
    assert_eq!(safetensors::from_bytes(&file).unwrap(), weights);
}

#[test]
fn archives_keep_what_they_have() {
    let mut tensors = stored();
    tensors.push(("count", Dtype::I64, vec![], vec![7, 0, 0, 0, 0, 0, 0, 0]));
    let file = container(&tensors);
    let mut archive = archive(&file);
    assert_eq!((archive.dense.iter().count(), archive.sparse.len(), archive.others.len()), (4, 1, 1));
    let mut written = Vec::new();
    archive.tensors().write(&mut written).unwrap();
    let (before, after) =
        (SafeTensors::deserialize(&file).unwrap(), SafeTensors::deserialize(&written).unwrap());
    for name in ["f32", "f16", "bf16", "count", "w.values", "w.shape"] {
        let [before, after] = [&before, &after].map(|file| file.tensor(name).unwrap());
        assert_eq!(
            (before.dtype(), before.shape(), before.data()),
            (after.dtype(), after.shape(), after.data())
        );
    }
    assert_eq!(after.tensor("f64").unwrap().dtype(), Dtype::F32);

    let whole = archive.clone();
    archive.compress(["f32"]).unwrap();
    assert_eq!(archive.sparse["f32"].matrix().nnz(), 3);
    assert_eq!(archive.sparse["f32"].stats().max_row_length, 2);
    let none = archive.compress(["bf16"]).unwrap_err();
    assert!(matches!(none, FileError::Sparse { source: SparseError::NoMatrix { .. }, .. }), "{none}");
    archive.decompress().unwrap();
    assert!(archive.sparse.is_empty());
    assert_eq!(archive.dense.get("f32", &[2, 2]), whole.dense.get("f32", &[2, 2]));
    let error = archive.into_weights().unwrap_err().to_string();
    assert!(error.contains("tensor count is of type I64"), "{error}");
}

#[test]
fn errors_name_file_and_tensor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.safetensors");
    let refused = |change: fn(&mut Vec<Stored>), says: &str| {
        let mut tensors = stored();
        change(&mut tensors);
        std::fs::write(&path, container(&tensors)).unwrap();
        let error = safetensors::read(&path).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("net.safetensors"), "{error}");
    };
    refused(|tensors| tensors.push(("n", Dtype::U8, vec![1], vec![1])), "tensor n is of type U8");
    refused(|tensors| tensors[7].3[0] = 3, "`w.shape` of 2 rows");
    refused(
        |tensors| tensors[5].3[0] = 6,
        "column index of row 0 at position 0: expected less than 6, got 6",
    );
    refused(|tensors| tensors[6].3[8] = 9, "expected row 1 to end at 9 or later");
    refused(|tensors| tensors.truncate(7), "a tensor `w.shape`");
    refused(|tensors| tensors[0].0 = "w", "tensor w is there twice");
    // 2 × 2³¹ elements with 3 nonzeros.
    refused(|tensors| tensors[7].3 = bytes(&[2, 1 << 31, 1], i64::to_le_bytes), "too few to be made dense");

    std::fs::write(&path, b"short").unwrap();
    assert!(safetensors::read(&path).unwrap_err().to_string().contains("net.safetensors"));
    let missing = safetensors::read(folder.path().join("none")).unwrap_err();
    assert!(matches!(missing, FileError::Read(_)) && missing.to_string().contains("none"), "{missing}");
    let unwritten = safetensors::write(&Weights::new(), folder.path().join("none/a")).unwrap_err();
    assert!(matches!(unwritten, FileError::Write(_)), "{unwritten}");
}

#[test]
fn sparse_tensors_are_checked() {
    let tensor = Tensor::new(vec![2, 1, 2], vec![0.0, 1.0, f32::NAN, 0.0]).unwrap();
    let sparse = SparseTensor::from_dense(&tensor).unwrap();
    assert_eq!((sparse.shape(), sparse.matrix().nnz()), (&[2, 1, 2][..], 2));
    assert_eq!(sparse.to_dense().unwrap().values()[1], 1.0);
    for shape in [vec![], vec![2], vec![4], vec![2, 3], vec![2, usize::MAX, 2]] {
        let error = SparseTensor::new(shape, sparse.matrix().clone()).unwrap_err();
        assert!(matches!(error, SparseError::Shape { rows: 2, cols: 2, .. }), "{error}");
    }
    assert!(SparseTensor::from_dense(&Tensor::new(vec![1 << 31, 0], vec![]).unwrap()).is_err());
}

#[test]
fn npy_files_are_tensors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let tensor = Tensor::new(vec![2, 1, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    npy::write(&tensor, &path).unwrap();
    assert_eq!(npy::read(&path).unwrap(), tensor);
    let mut fortran = ndarray::Array2::<f64>::zeros(ndarray::ShapeBuilder::f((2, 3)));
    fortran.assign(&ndarray::arr2(&[[0.1, 2.0, 3.0], [4.0, 5.0, 6.0]]));
    fortran.write_npy(std::fs::File::create(&path).unwrap()).unwrap();
    assert_eq!(
        npy::read(&path).unwrap(),
        Tensor::new(vec![2, 3], vec![0.1, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap()
    );
    ndarray::arr1(&[1_i64]).write_npy(std::fs::File::create(&path).unwrap()).unwrap();
    let error = npy::read(&path).unwrap_err().to_string();
    assert!(error.contains("a.npy") && error.contains("<i8"), "{error}");
}

/// A zip file as `numpy.savez_compressed` writes it: an array, and another of integers where that is asked for.
fn zipped(integers: bool) -> Vec<u8> {
    use std::io::{Cursor, Write};
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    zip.start_file("README", options).unwrap();
    zip.write_all(b"no array").unwrap();
    zip.start_file("layer.weight.npy", options).unwrap();
    let mut array = Vec::new();
    ndarray::Array2::from_elem((50, 4), 0.5_f64).write_npy(&mut array).unwrap();
    zip.write_all(&array).unwrap();
    if integers {
        zip.start_file("steps.npy", options).unwrap();
        let mut array = Vec::new();
        ndarray::arr1(&[1_i32]).write_npy(&mut array).unwrap();
        zip.write_all(&array).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn npz_files_are_weights() {
    let weights = npz::from_bytes(&zipped(false)).unwrap();
    assert_eq!(weights.iter().count(), 1);
    assert_eq!(weights.get("layer.weight", &[50, 4]).unwrap().values(), [0.5; 200]);
    let error = npz::from_bytes(&zipped(true)).unwrap_err().to_string();
    assert!(error.contains("tensor steps") && error.contains("<i4"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    let mut weights = weights;
    weights.insert("b", Tensor::new(vec![], vec![2.0]).unwrap());
    npz::write(&weights, &path).unwrap();
    assert_eq!(npz::read(&path).unwrap(), weights);
    std::fs::write(&path, b"nothing").unwrap();
    let error = npz::read(&path).unwrap_err().to_string();
    assert!(error.contains("a.npz") && error.contains("expected a zip file"), "{error}");
    assert!(
        npz::write(&weights, folder.path().join("none/a.npz"))
            .unwrap_err()
            .to_string()
            .contains("cannot write")
    );
}

proptest! {
    #[test]
    fn damaged_and_cut_zip_files_do_no_harm(
        at in any::<prop::sample::Index>(), byte: u8, cut in any::<prop::sample::Index>(),
    ) {
        let mut file = zipped(false);
        let at = at.index(file.len());
        file[at] = byte;
        let _ = npz::from_bytes(&file);
        file.truncate(cut.index(file.len()));
        let _ = npz::from_bytes(&file);
    }

    /// Whatever a file holds, there are weights or an error.
    #[test]
    fn damaged_and_cut_containers_do_no_harm(
        at in any::<prop::sample::Index>(), bit in 0..8, cut in any::<prop::sample::Index>(),
    ) {
        let mut file = container(&stored());
        let at = at.index(file.len());
        file[at] ^= 1_u8 << bit;
        let _ = safetensors::from_bytes(&file);
        file.truncate(cut.index(file.len()));
        prop_assert!(safetensors::from_bytes(&file).is_err());
    }

    #[test]
    fn what_is_written_is_read(values in prop::collection::vec(any::<f32>(), 0..40), cols in 1..5_usize) {
        let rows = values.len() / cols;
        let tensor = Tensor::new(vec![rows, cols], values[..rows * cols].to_vec()).unwrap();
        let mut dense = Archive::default();
        dense.dense.insert("t", tensor.clone());
        let mut sparse = dense.clone();
        sparse.compress(["t"]).unwrap();
        for written in [dense, sparse] {
            let mut file = Vec::new();
            written.tensors().write(&mut file).unwrap();
            let read = safetensors::from_bytes(&file).unwrap();
            // Where a value is zero, its sign may be lost.
            let bits = |tensor: &Tensor| tensor.values().iter().map(|x| (x + 0.0).to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(read.get("t", &[rows, cols]).unwrap()), bits(&tensor));
        }
    }
}
