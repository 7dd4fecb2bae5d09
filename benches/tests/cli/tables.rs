//! `tables`: pages whose tables are made from records.
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::support::{bench, text};

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("benches lies in the repository")
}

#[test]
fn tables_of_this_repository_are_those_of_its_records() {
    let output = bench(&["tables", "--check", "--root", text(repository())]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// A repository with this one's record of suite `table`, and one page.
fn of_page(page: &str) -> TempDir {
    let root = TempDir::new().unwrap();
    let records = Path::new("benches/records/h200-table.jsonl");
    fs::create_dir_all(root.path().join(records.parent().unwrap())).unwrap();
    fs::copy(repository().join(records), root.path().join(records)).unwrap();
    fs::create_dir(root.path().join("docs")).unwrap();
    fs::write(root.path().join("README.md"), "no table\n").unwrap();
    fs::write(root.path().join("docs/page.md"), page).unwrap();
    root
}

#[test]
fn a_page_is_checked_then_written_then_right() {
    let page =
        "# Page\n\n<!-- table: suites | h200-table | problems | over cusparse where N=32 -->\n<!-- end -->\n";
    let root = of_page(page);
    let path = root.path().join("docs/page.md");
    let root = text(root.path());
    let check = || bench(&["tables", "--check", "--root", root]);

    let output = check();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("docs/page.md, line 3, table `suites | h200-table"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), page, "a check writes nothing");

    assert_eq!(bench(&["tables", "--root", root]).status.code(), Some(0));
    let written = fs::read_to_string(&path).unwrap();
    assert!(written.contains("| suite | problems | over cuSPARSE best, N = 32 |"), "{written}");
    assert!(
        written.contains("| `table` ([record](../benches/records/h200-table.jsonl)) | 14 | "),
        "{written}"
    );
    assert_eq!(check().status.code(), Some(0));
}

#[test]
fn marks_that_make_no_sense_are_bad_usage_with_their_place() {
    for (mark, word) in [
        ("cases | h200-nothing | us", "h200-nothing"),
        ("cases | h200-table | speed", "`speed`"),
        ("cases | h200-table | where K=1 | us", "`K`"),
        ("grid | h200-table | us", "Grid"),
    ] {
        let root = of_page(&format!("<!-- table: {mark} -->\n<!-- end -->\n"));
        let output = bench(&["tables", "--root", text(root.path())]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{mark}: {said}");
        assert!(
            said.contains("docs/page.md") && said.contains("line 1") && said.contains(word),
            "{mark}: {said}"
        );
    }
}
