//! docs/errors.md names every error; errors of `matrix` convert; each error has a cause.
use std::collections::BTreeSet;

use lacuna_matrix::{Csr, Pattern, generate, io};

use super::*;

/// The variants' names. The match without a wildcard does not compile when one is missing here.
macro_rules! variants {
    ($($name:ident)*) => {
        const VARIANTS: &[&str] = &[$(stringify!($name)),*];

        fn name(error: &Error) -> &'static str {
            match error {
                $(Error::$name { .. } => stringify!($name),)*
            }
        }
    };
}

variants! {
    Length OtherPattern Prepacked NotPrepacked OtherTranspose OtherDevice TooLarge Parameter Illegal NeedsPattern Range Format Generate
    Read Write NoCuda NoDriver BrokenDriver NoDevice OldGpu Ptx LeftOut OutOfMemory Launch Cuda NoLibrary Library Simulator SimulatorMemory Unsupported
}

/// The names in the first column of the table of errors in docs/errors.md.
fn names_in_docs() -> Vec<&'static str> {
    let page = include_str!("../../../../docs/errors.md");
    let (_, table) = page.split_once("\n| error | when |\n").expect("docs/errors.md has a table of errors");
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').nth(1).expect("a row has cells"));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn the_docs_name_every_error_once_and_no_other() {
    let named = names_in_docs();
    let distinct: BTreeSet<_> = named.iter().copied().collect();
    assert_eq!(distinct.len(), named.len(), "docs/errors.md names an error twice: {named:?}");
    let known = VARIANTS.iter().copied().collect();
    let missing: Vec<_> = distinct.symmetric_difference(&known).collect();
    assert!(missing.is_empty(), "docs/errors.md and `Error` differ in {missing:?}");
}

#[test]
fn every_error_of_matrix_converts() {
    fn made() -> crate::Result<Csr<f32>> {
        let pattern = generate::uniform(2, 2, 0.5, 1)?;
        let values = generate::random_values(pattern.nnz(), 2);
        Ok(Csr::with_values(pattern, values)?)
    }
    fn generated() -> crate::Result<Pattern> {
        Ok(generate::uniform(2, 2, 1.5, 1)?)
    }
    fn read() -> crate::Result<Csr<f32>> {
        Ok(io::mtx::read(&b"no matrix"[..])?)
    }
    fn malformed() -> crate::Result<Csr<f32>> {
        Ok(Csr::new(1, 1, vec![0, 1], vec![7], vec![1.0])?)
    }
    let folder = tempfile::tempdir().unwrap();
    let written = |matrix: &Csr<f32>| -> crate::Result<()> {
        Ok(io::mtx::write_path(matrix, folder.path().join("nowhere").join("a.mtx"))?)
    };

    let matrix = made().unwrap();
    let errors = [
        generated().unwrap_err(),
        read().unwrap_err(),
        malformed().unwrap_err(),
        written(&matrix).unwrap_err(),
    ];
    assert_eq!(errors.each_ref().map(name), ["Generate", "Read", "Format", "Write"]);
    assert_eq!(errors.each_ref().map(Error::is_usage), [true, true, true, false]);
    assert!(!errors.iter().any(Error::is_missing));
    assert!(errors[0].to_string().contains("1.5"), "{}", errors[0]);
}

#[test]
fn errors_of_prepacked_matrices_are_of_usage() {
    assert!(Error::Prepacked { operation: "SpMM" }.is_usage());
    assert!(Error::NotPrepacked { operation: "SpMM" }.is_usage());
}
