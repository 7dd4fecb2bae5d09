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

/// A repository with this one's records of suite `table` and of convolutions, and one page.
fn of_page(page: &str) -> TempDir {
    let root = TempDir::new().unwrap();
    fs::create_dir_all(root.path().join("benches/records/conv")).unwrap();
    for records in ["benches/records/h200-table.jsonl", "benches/records/conv/h200.jsonl"] {
        fs::copy(repository().join(records), root.path().join(records)).unwrap();
    }
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
fn convolutions_have_tables_by_layers_and_by_zeros() {
    let page = "\
<!-- table: layers | conv/h200 | where images=1 zeros=70 | us where value=f32 | us of cudnn_f32 | us where value=bf16 -->
<!-- end -->
<!-- table: levels | conv/h200 | over cudnn_f32 where images=16 | over cudnn_f16 where images=1 -->
<!-- end -->
";
    let root = of_page(page);
    assert_eq!(bench(&["tables", "--root", text(root.path())]).status.code(), Some(0));
    let written = fs::read_to_string(root.path().join("docs/page.md")).unwrap();
    assert!(written.contains("| C, H×W, N | us, `f32` | cuDNN fp32, us | us, `bf16` |"), "{written}");
    let layers: Vec<&str> = written.lines().filter(|line| line.ends_with(" | – |")).collect();
    assert!(layers.len() >= 13 && layers[0].starts_with("| 128 56² 32 | "), "{written}");
    assert!(
        written.contains("| zeros | over cuDNN fp32, 16 images | over cuDNN f16, one image |"),
        "{written}"
    );
    let level = written.lines().find(|line| line.starts_with("| 70 % | ")).expect("there is this level");
    assert_eq!(level.matches("×").count(), 2, "{level}");
    assert!(written.contains("\n| real maps | – | – |\n"), "{written}");
}

#[test]
fn marks_that_make_no_sense_are_bad_usage_with_their_place() {
    for (mark, word) in [
        ("cases | h200-nothing | us", "h200-nothing"),
        ("cases | h200-table | speed", "`speed`"),
        ("cases | h200-table | where K=1 | us", "`K`"),
        ("grid | h200-table | us", "Grid"),
        ("layers | conv/h200 | us where images=1", "records of layer"),
        ("layers | conv/h200 | over cudnn_f32", "Layers"),
        ("levels | conv/h200 | us", "Levels"),
        ("levels | conv/h200 | over cudnn_f32 where N=1", "`N`"),
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
