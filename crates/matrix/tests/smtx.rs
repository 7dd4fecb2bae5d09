//! `.smtx` files: good, bad and hostile.

use lacuna_matrix::io::{Place, ReadError, smtx};
use lacuna_matrix::{FormatError, Pattern};

fn read(text: &str) -> Result<Pattern, ReadError> {
    smtx::read(text.as_bytes())
}

#[test]
fn reads_the_format() {
    let pattern = Pattern::new(3, 4, vec![0, 2, 2, 5], vec![1, 3, 0, 1, 2]).unwrap();
    for text in [
        "3, 4, 5\n0 2 2 5\n1 3 0 1 2\n",
        "3, 4, 5\n0 2 2 5\n1 3 0 1 2",
        "3,4,5\r\n0 2 2 5 \r\n1 3 0 1 2 \r\n\r\n",
        "3 4 5\n0\t2 2  5\n3 1 2 0 1\n\n\n",
    ] {
        assert_eq!(read(text).unwrap(), pattern, "{text:?}");
    }
}

#[test]
fn reads_empty_matrices() {
    assert_eq!(read("0, 0, 0\n\n\n").unwrap(), Pattern::new(0, 0, vec![0], vec![]).unwrap());
    let empty = Pattern::new(2, 7, vec![0; 3], vec![]).unwrap();
    for text in ["2, 7, 0\n0 0 0\n\n", "2, 7, 0\n\n\n", "2, 7, 0\n", "2, 7, 0"] {
        assert_eq!(read(text).unwrap(), empty, "{text:?}");
    }
}

#[test]
fn writes_what_it_reads() {
    let text = "3, 4, 5\n0 2 2 5\n1 3 0 1 2\n";
    let mut written = Vec::new();
    smtx::write(&read(text).unwrap(), &mut written).unwrap();
    assert_eq!(written, text.as_bytes());
}

/// The message for a text that must be refused.
fn refusal(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn errors_name_line_expected_and_got() {
    for (text, message) in [
        ("", "line 1: expected the number of rows, got the end of the line"),
        ("3, 4", "line 1: expected the number of nonzeros, got the end of the line"),
        ("3, x, 5\n", "line 1: expected the number of columns, got `x`"),
        ("-3, 4, 5\n", "line 1: expected the number of rows, got `-3`"),
        ("4294967296, 4, 5\n", "line 1: expected the number of rows, got `4294967296`"),
        ("3, 4, 5, 6\n", "line 1: expected the end of the line, got `6`"),
        ("2, 4, 2\n0 1\n0 1\n", "line 2: expected 3 row offsets, got 2"),
        ("2, 4, 2\n", "line 2: expected 3 row offsets, got 0"),
        ("2, 4, 2\n0 1 2 3\n0 1\n", "line 2: expected 3 row offsets, got more"),
        ("2, 4, 2\n0 1 2\n0\n", "line 3: expected 2 column indices, got 1"),
        ("2, 4, 2\n0 1 2", "line 2: expected 2 column indices, got 0"),
        ("2, 4, 2\n0 1 2\n0 1 2\n", "line 3: expected 2 column indices, got more"),
        ("2, 4, 2\n0 -1 2\n0 1\n", "line 2: expected row offsets of 0 to 4294967295, got `-1`"),
        ("2, 4, 2\n0 1 2\n0 1.5\n", "line 3: expected column indices of 0 to 4294967295, got `1.5`"),
        ("2, 4, 2\n0 1 2\n0 1\n\n7\n", "line 5: expected the end of the line, got `7`"),
    ] {
        assert_eq!(refusal(text), message, "{text:?}");
    }
}

#[test]
fn parts_are_checked() {
    let source = FormatError::ColumnOutOfRange { row: 1, position: 1, column: 4, cols: 4 };
    let got = read("2, 4, 2\n0 1 2\n0 4\n").unwrap_err();
    assert!(matches!(got, ReadError::Format { place: Place::Line(3), source: s } if s == source));
    let source = FormatError::OffsetsDecrease { row: 1, start: 2, end: 1 };
    let got = read("2, 4, 2\n0 2 1\n0 3\n").unwrap_err();
    assert!(matches!(got, ReadError::Format { source: s, .. } if s == source));
    let source = FormatError::Duplicate { row: 0, column: 3, position: 1 };
    let got = read("2, 4, 2\n0 2 2\n3 3\n").unwrap_err();
    assert!(matches!(got, ReadError::Format { source: s, .. } if s == source));
}

#[test]
fn hostile_headers_cost_no_memory() {
    let got = read("4294967295, 1, 0\n\n\n").unwrap_err();
    assert!(matches!(got, ReadError::MostlyEmpty { rows: 4294967295, nnz: 0 }), "{got}");
    let got = read("4294967295, 4294967295, 4294967295\n0 1 2\n1 2\n").unwrap_err();
    assert!(matches!(got, ReadError::Count { expected: 4294967296, .. }), "{got}");
    let long_word = format!("1, 1, {}", "1".repeat(1 << 20));
    assert!(refusal(&long_word).starts_with("line 1: expected a short word, got `1111"));
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let got = smtx::read(&b"2, \xff\xfe, 3\n"[..]).unwrap_err().to_string();
    assert_eq!(got, r"line 1: expected ASCII text, got `\xff\xfe`");
}

#[test]
fn every_cut_of_a_file_is_refused_or_shorter() {
    let text = "3, 4, 5\n0 2 2 5\n1 3 0 1 2\n";
    // Whole but for the newline, it is still the same file.
    for end in 0..text.len() - 1 {
        assert!(read(&text[..end]).is_err(), "{:?}", &text[..end]);
    }
}

#[test]
fn paths_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.smtx");
    let got = smtx::read_path(&path).unwrap_err().to_string();
    assert!(got.starts_with("cannot read ") && got.contains("a.smtx"), "{got}");
    let pattern = read("2, 4, 2\n0 1 2\n0 1\n").unwrap();
    smtx::write_path(&pattern, &path).unwrap();
    assert_eq!(smtx::read_path(&path).unwrap(), pattern);
    let got = smtx::write_path(&pattern, path.join("b.smtx")).unwrap_err().to_string();
    assert!(got.starts_with("cannot write ") && got.contains("b.smtx"), "{got}");
}
