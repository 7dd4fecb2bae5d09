//! Makes a module of each page that has Rust in it.
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, error, fs};

/// The lines of a page that are in a block marked as Rust; all others are empty, so that a line keeps its number. Markdown's
/// indented code would be Rust to rustdoc, and so would blocks without a mark.
fn rust_of(page: &str) -> String {
    let (mut rust, mut in_block, mut in_other) = (String::new(), false, false);
    for line in page.lines() {
        let is_fence = line.starts_with("```");
        if is_fence && !in_block && !in_other {
            (in_block, in_other) = (line.starts_with("```rust"), !line.starts_with("```rust"));
        } else if is_fence {
            if in_block {
                rust.push_str(line);
            }
            (in_block, in_other) = (false, false);
        }
        if in_block {
            rust.push_str(line);
        }
        rust.push('\n');
    }
    rust
}

/// README.md, and the pages in docs.
fn pages(root: &Path) -> Result<Vec<PathBuf>, Box<dyn error::Error>> {
    let mut pages = vec![PathBuf::from("README.md")];
    for entry in fs::read_dir(root.join("docs"))? {
        let page = Path::new("docs").join(entry?.file_name());
        if page.extension().is_some_and(|extension| extension == "md") {
            pages.push(page);
        }
    }
    pages.sort();
    Ok(pages)
}

fn main() -> Result<(), Box<dyn error::Error>> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed={}", root.join("docs").display());
    let mut modules = String::new();
    for page in pages(&root)? {
        let source = root.join(&page);
        println!("cargo:rerun-if-changed={}", source.display());
        let rust = rust_of(&fs::read_to_string(&source)?);
        if rust.trim().is_empty() {
            continue;
        }
        let name = page.file_stem().and_then(|name| name.to_str()).ok_or("a page's name is not text")?;
        let copy = out.join(format!("{name}.md"));
        fs::write(&copy, rust)?;
        let name = name.to_lowercase().replace('-', "_");
        writeln!(modules, "#[doc = include_str!({copy:?})]\npub mod {name} {{}}")?;
    }
    fs::write(out.join("pages.rs"), modules)?;
    Ok(())
}
