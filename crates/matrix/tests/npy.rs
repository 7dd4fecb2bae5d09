//! `.npy` files: good, bad and hostile. `ndarray-npy` is the second opinion on the format.

use lacuna_matrix::Dense;
use lacuna_matrix::io::{ReadError, npy};
use ndarray::{Array2, ShapeBuilder};
use ndarray_npy::{ReadNpyExt, WriteNpyExt};

fn matrix() -> Dense<f32> {
    Dense::new(2, 3, vec![1.0, 2.5, -3.0, f32::INFINITY, 0.0, 6.0]).unwrap()
}

fn bytes(matrix: &Dense<f32>) -> Vec<u8> {
    let mut bytes = Vec::new();
    npy::write(matrix, &mut bytes).unwrap();
    bytes
}

/// A file of version 1 with this header and this data.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

#[test]
fn agrees_with_ndarray() {
    let array = Array2::<f32>::read_npy(&bytes(&matrix())[..]).unwrap();
    assert_eq!(array, Array2::from_shape_vec((2, 3), matrix().into_values()).unwrap());
    let mut written = Vec::new();
    array.write_npy(&mut written).unwrap();
    assert_eq!(npy::read(&written[..]).unwrap(), matrix());
}

#[test]
fn reads_fortran_order() {
    let mut array = Array2::zeros((2, 3).f());
    array.assign(&Array2::from_shape_vec((2, 3), matrix().into_values()).unwrap());
    let mut written = Vec::new();
    array.write_npy(&mut written).unwrap();
    assert!(written.windows(4).any(|word| word == b"True"));
    assert_eq!(npy::read(&written[..]).unwrap(), matrix());
}

#[test]
fn data_is_aligned() {
    for cols in [1, 10, 100, 1_000, 10_000, 100_000] {
        let bytes = bytes(&Dense::new(1, cols, vec![0.0; cols]).unwrap());
        assert_eq!((bytes.len() - 4 * cols) % 64, 0);
    }
}

#[test]
fn reads_empty_matrices_and_later_versions() {
    for (rows, cols) in [(0, 0), (0, 3), (3, 0)] {
        let empty = Dense::new(rows, cols, vec![]).unwrap();
        assert_eq!(npy::read(&bytes(&empty)[..]).unwrap(), empty);
    }
    let header = "{\"shape\":(1,1),'fortran_order':False,'descr':'<f4'}";
    for version in [2, 3] {
        let mut file = b"\x93NUMPY".to_vec();
        file.extend([version, 0]);
        file.extend((header.len() as u32).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(2.0f32.to_le_bytes());
        assert_eq!(npy::read(&file[..]).unwrap().values(), [2.0]);
    }
}

#[test]
fn errors_name_byte_expected_and_got() {
    let head = |descr: &str, shape: &str| {
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")
    };
    let long = "(".repeat(30);
    for (file, message) in [
        (
            b"\x93NUMP".to_vec(),
            r"byte 0: expected the start of an .npy file, `\x93NUMPY` and a version, got `\x93NUMP`",
        ),
        (
            b"\x93NUMPY\x09\x00".to_vec(),
            "byte 6: version 9 is not supported; supported: versions 1 to 3; '<f4', '<f2' and '<f8'; two dimensions where a matrix is read",
        ),
        (b"\x93NUMPY\x01\x00\x10".to_vec(), "byte 8: expected 2 bytes of header, got 1"),
        (b"\x93NUMPY\x01\x00\x10\x00{".to_vec(), "byte 10: expected 16 bytes of header, got 1"),
        (
            b"\x93NUMPY\x02\x00\xff\xff\xff\xff{".to_vec(),
            "byte 8: expected a header of at most 65536 bytes, got 4294967295",
        ),
        (file("", &[]), "byte 10: expected `{`, got the end of the header"),
        (file("{'descr': <f4}", &[]), "byte 10: expected a string, got `<f4}`"),
        (file("{'descr: <f4}", &[]), "byte 10: expected a string that ends, got `\\'descr: <f4}`"),
        (file("{'x': 1}", &[]), "byte 10: expected 'descr', 'fortran_order' or 'shape', got `x`"),
        (file("{'shape': (1, 1)} 2", &[]), "byte 10: expected the end of the header, got `2`"),
        (file("{'shape': (1, 1)}", &[]), "byte 10: expected an entry 'descr', got a header without it"),
        (file("{'fortran_order': 0}", &[]), "byte 10: expected `True` or `False`, got `0}`"),
        (file(&head("<f4", "(1, -1)"), &[]), "byte 10: expected a number of 64 bits, got `-1), }`"),
        (
            file(&format!("{{'shape': {long}"), &[]),
            "byte 10: expected a number of 64 bits, got `((((((((((((((((((((((((...`",
        ),
        (
            file(&head("<f4", "(1, 99999999999999999999)"), &[]),
            "byte 10: expected a number of 64 bits, got `99999999999999999999), }`",
        ),
        (
            file(&head(">f4", "(1, 1)"), &[]),
            "byte 10: element type `>f4` is not supported; supported: versions 1 to 3; '<f4', '<f2' and '<f8'; two dimensions where a matrix is read",
        ),
        (
            file(&head("<f4", "(1,)"), &[]),
            "byte 10: an array of 1 dimensions is not supported; supported: versions 1 to 3; '<f4', '<f2' and '<f8'; two dimensions where a matrix is read",
        ),
        (file(&head("<f4", "(1, 2)"), &[0; 7]), "byte 69: expected 2 elements, got 1"),
        (file(&head("<f4", "(1, 2)"), &[0; 9]), r"byte 77: expected the end of the file, got `\x00`"),
    ] {
        let got = npy::read(&file[..]).unwrap_err().to_string();
        assert_eq!(got, message, "{}", file.escape_ascii());
    }
}

#[test]
fn hostile_shapes_cost_no_memory() {
    let most = u64::MAX;
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({most}, {most})}}");
    let got = npy::read(&file(&header, &[0; 64])[..]).unwrap_err();
    assert!(matches!(got, ReadError::Count { .. }), "{got}");
    // No data is needed where one side is 0.
    let header = format!("{{'descr': '<f4', 'fortran_order': True, 'shape': (0, {most})}}");
    assert_eq!(npy::read(&file(&header, &[])[..]).unwrap().cols(), usize::MAX);
}

#[test]
fn every_cut_of_a_file_is_refused() {
    let whole = bytes(&matrix());
    for end in 0..whole.len() {
        assert!(npy::read(&whole[..end]).is_err(), "{end}");
    }
}

#[test]
fn files_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    npy::write_path(&matrix(), &path).unwrap();
    assert_eq!(npy::read_path(&path).unwrap(), matrix());
}

#[test]
fn arrays_of_any_dimensions_are_read() {
    let array = ndarray::Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (i * 100 + j * 10 + k) as f32);
    let mut written = Vec::new();
    array.write_npy(&mut written).unwrap();
    let read = npy::read_array(&written[..]).unwrap();
    assert_eq!((read.shape, read.values), (vec![2, 3, 4], array.iter().copied().collect()));
    let ReadError::Unsupported { got, .. } = npy::read(&written[..]).unwrap_err() else { panic!("not two") };
    assert!(got.contains("3 dimensions"), "{got}");
    assert!(matches!(npy::read_array(&written[..written.len() - 1]), Err(ReadError::Count { .. })));
    assert!(matches!(npy::read_array(&[&written[..], b"x"].concat()[..]), Err(ReadError::Syntax { .. })));

    let mut fortran = ndarray::Array3::zeros((2, 3, 4).f());
    fortran.assign(&array);
    let mut written = Vec::new();
    fortran.write_npy(&mut written).unwrap();
    assert!(written.windows(4).any(|word| word == b"True"));
    let read = npy::read_array(&written[..]).unwrap();
    assert_eq!((read.shape, read.values), (vec![2, 3, 4], array.iter().copied().collect()));
    let scalar = ndarray::arr0(5.0_f32);
    let mut written = Vec::new();
    scalar.write_npy(&mut written).unwrap();
    assert_eq!(npy::read_array(&written[..]).unwrap().values, [5.0]);
}

#[test]
fn numbers_of_16_and_64_bits_are_read() {
    let data: Vec<u8> = [0x3c00_u16, 0xfbff, 0x0001].iter().flat_map(|bits| bits.to_le_bytes()).collect();
    let halves = file("{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }", &data);
    assert_eq!(npy::read_array(&halves[..]).unwrap().values, [1.0, -65504.0, 2.0_f32.powi(-24)]);
    let doubles = ndarray::arr2(&[[0.1_f64, 1e300], [-2.5, 0.0]]);
    let mut written = Vec::new();
    doubles.write_npy(&mut written).unwrap();
    assert_eq!(npy::read(&written[..]).unwrap().values(), [0.1, f32::INFINITY, -2.5, 0.0]);
    assert!(matches!(npy::read(&written[..written.len() - 1]), Err(ReadError::Count { .. })));
}

#[test]
fn arrays_are_written_for_the_other_reader() {
    let values: Vec<f32> = (0..6).map(|x| x as f32).collect();
    let mut written = Vec::new();
    npy::write_array(&[6], &values, &mut written).unwrap();
    assert_eq!(ndarray::Array1::<f32>::read_npy(&written[..]).unwrap().to_vec(), values);
    let mut written = Vec::new();
    npy::write_array(&[1, 3, 2], &values, &mut written).unwrap();
    let read = ndarray::Array3::<f32>::read_npy(&written[..]).unwrap();
    assert_eq!((read.shape(), read.iter().copied().collect()), (&[1, 3, 2][..], values.clone()));
    let mut written = Vec::new();
    npy::write_array(&[], &values[..1], &mut written).unwrap();
    assert_eq!(ndarray::Array0::<f32>::read_npy(&written[..]).unwrap().into_scalar(), 0.0);
    let wrong = npy::write_array(&[7], &values, Vec::new()).unwrap_err().to_string();
    assert!(wrong.contains("expected 7 elements, got 6"), "{wrong}");
    assert!(npy::write_array(&[1; 30_000], &values[..1], Vec::new()).is_err());
}
