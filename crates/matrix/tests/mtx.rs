//! Matrix Market files: good, bad and hostile.

use lacuna_matrix::io::{ReadError, mtx};
use lacuna_matrix::{Csr, FormatError};

fn read(text: &str) -> Result<Csr<f32>, ReadError> {
    mtx::read(text.as_bytes())
}

fn read_dense(text: &str) -> Vec<f32> {
    read(text).unwrap().to_dense().unwrap()
}

#[test]
fn reads_real_general() {
    let text = "%%MatrixMarket matrix coordinate real general\n% a comment\n\n2 3 3\n% more\n2 3 -1.5e2\n\n 1 1 .5 \r\n1 2 4\n";
    assert_eq!(read_dense(text), [0.5, 4.0, 0.0, 0.0, 0.0, -150.0]);
}

#[test]
fn reads_integer_and_pattern() {
    let text = "%%matrixmarket MATRIX Coordinate Integer GENERAL\n2 2 2\n1 2 -7\n2 1 +3\n";
    assert_eq!(read_dense(text), [0.0, -7.0, 3.0, 0.0]);
    let text = "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n2 1\n";
    assert_eq!(read_dense(text), [0.0, 1.0, 1.0, 0.0]);
}

#[test]
fn mirrors_symmetric_and_skew() {
    let text = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 3\n2 1 5\n";
    assert_eq!(read_dense(text), [3.0, 5.0, 5.0, 0.0]);
    let text = "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n";
    assert_eq!(read_dense(text), [0.0, 1.0, 1.0, 0.0]);
    let text = "%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 5\n";
    assert_eq!(read_dense(text), [0.0, -5.0, 5.0, 0.0]);
}

#[test]
fn non_finite_values_are_kept_and_overflow_is_refused() {
    let file = |value: &str| format!("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 {value}\n");
    assert!(read(&file("nan")).unwrap().values()[0].is_nan());
    assert_eq!(read(&file("-inf")).unwrap().values(), [f32::NEG_INFINITY]);
    assert_eq!(read(&file("3.4028234e38")).unwrap().values(), [f32::MAX]);
    let got = read(&file("1e39")).unwrap_err().to_string();
    assert_eq!(got, "line 3: expected a real number that f32 can hold, got `1e39`");
}

#[test]
fn duplicates_are_refused_by_default() {
    let text = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n1 1 2\n";
    let got = read(text).unwrap_err();
    let duplicate = FormatError::Duplicate { row: 0, column: 0, position: 1 };
    assert!(matches!(got, ReadError::Format { source, .. } if source == duplicate));
    let summed = mtx::read_coo(text.as_bytes()).unwrap().to_csr_summing().unwrap();
    assert_eq!(summed.values(), [3.0]);
    let both_triangles = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 2 1\n2 1 1\n";
    assert!(matches!(read(both_triangles).unwrap_err(), ReadError::Format { .. }));
}

#[test]
fn other_kinds_are_unsupported() {
    for (kind, named) in [
        ("matrix array real general", "`matrix array`"),
        ("vector coordinate real general", "`vector coordinate`"),
        ("matrix coordinate complex general", "`complex general`"),
        ("matrix coordinate complex hermitian", "`complex hermitian`"),
        ("matrix coordinate real hermitian", "`real hermitian`"),
        ("matrix coordinate pattern skew-symmetric", "`pattern skew-symmetric`"),
        ("matrix coordinate", "` `"),
    ] {
        let got = read(&format!("%%MatrixMarket {kind}\n1 1 0\n")).unwrap_err();
        assert!(matches!(got, ReadError::Unsupported { .. }), "{kind}: {got}");
        let got = got.to_string();
        assert!(got.starts_with(&format!("line 1: {named} is not supported; supported: ")), "{got}");
    }
}

#[test]
fn errors_name_line_expected_and_got() {
    let general = |rest: &str| format!("%%MatrixMarket matrix coordinate real general\n{rest}");
    let skew = |rest: &str| format!("%%MatrixMarket matrix coordinate real skew-symmetric\n{rest}");
    for (text, message) in [
        (String::new(), "line 1: expected `%%MatrixMarket`, got ``"),
        ("1 1 0\n".into(), "line 1: expected `%%MatrixMarket`, got `1`"),
        (
            general("% only\n"),
            "line 3: expected a line with rows, columns and elements, got the end of the file",
        ),
        (general("2 2\n"), "line 2: expected the number of elements, got the end of the line"),
        (general("2 -2 1\n"), "line 2: expected the number of columns, got `-2`"),
        (general("2 2 1 1\n"), "line 2: expected the end of the line, got `1`"),
        (general("2 2 1\n0 1 1\n"), "line 3: expected a row of 1 to 2, got `0`"),
        (general("2 2 1\n1 3 1\n"), "line 3: expected a column of 1 to 2, got `3`"),
        (general("2 2 1\n1 -1 1\n"), "line 3: expected a column of 1 to 2, got `-1`"),
        (general("2 2 1\n1\n"), "line 3: expected a column of 1 to 2, got the end of the line"),
        (
            general("2 2 1\n1 1\n"),
            "line 3: expected a real number that f32 can hold, got the end of the line",
        ),
        (general("2 2 1\n1 1 x\n"), "line 3: expected a real number that f32 can hold, got `x`"),
        (general("2 2 1\n1 1 1 1\n"), "line 3: expected the end of the line, got `1`"),
        (general("2 2 2\n1 1 1\n"), "line 4: expected 2 elements, got 1"),
        (general("2 2 1\n1 1 1\n1 2 1\n"), "line 4: expected 1 elements, got more"),
        (
            skew("2 3 0\n"),
            "line 2: expected as many rows as columns in a symmetric matrix, got 2 rows and 3 columns",
        ),
        (
            skew("2 2 1\n2 2 1\n"),
            "line 3: expected no diagonal element in a skew-symmetric matrix, got row and column 2",
        ),
    ] {
        assert_eq!(read(&text).unwrap_err().to_string(), message, "{text:?}");
    }
}

#[test]
fn hostile_headers_cost_no_memory() {
    let text = "%%MatrixMarket matrix coordinate pattern general\n4294967295 4294967295 4294967295\n1 1\n";
    assert!(matches!(read(text).unwrap_err(), ReadError::Count { expected: 4294967295, .. }));
    let text = "%%MatrixMarket matrix coordinate pattern general\n4294967295 1 1\n4294967295 1\n";
    assert!(matches!(read(text).unwrap_err(), ReadError::MostlyEmpty { rows: 4294967295, nnz: 1 }));
    assert_eq!(mtx::read_coo(text.as_bytes()).unwrap().row_indices(), [4294967294]);
}

#[test]
fn writes_what_it_reads() {
    let values = vec![1.0, -0.1, f32::MIN_POSITIVE, f32::INFINITY, f32::MAX];
    let a = Csr::new(3, 4, vec![0, 2, 2, 5], vec![1, 3, 0, 1, 2], values).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    mtx::write_path(&a, &path).unwrap();
    assert_eq!(mtx::read_path(&path).unwrap(), a);
    assert_eq!(mtx::read_coo_path(&path).unwrap(), a.to_coo());
    let mut written = Vec::new();
    mtx::write_pattern(a.pattern(), &mut written).unwrap();
    assert_eq!(mtx::read(&written[..]).unwrap().pattern(), a.pattern());
}
