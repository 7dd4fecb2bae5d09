//! Marked places in the text of a page.
use anyhow::{Context, Result, ensure};

use super::{Change, Page};

const START: &str = "<!-- table: ";
const START_END: &str = " -->";
const END: &str = "<!-- end -->";

/// Puts what `make` gives for a mark's text in place of what stands between the mark and its end.
pub(super) fn renewed(text: &str, make: impl Fn(&str) -> Result<String>) -> Result<Page> {
    let mut page = Page { text: String::with_capacity(text.len()), changes: Vec::new() };
    let mut lines = text.split_inclusive('\n').enumerate();
    while let Some((index, line)) = lines.next() {
        page.text.push_str(line);
        // Marks start their lines: those that are shown as code do not count.
        let Some(spec) = line.trim_end().strip_prefix(START).and_then(|rest| rest.strip_suffix(START_END))
        else {
            continue;
        };
        let at = || format!("line {}, table `{spec}`", index + 1);
        let mut old = String::new();
        let end = loop {
            let next = lines.next().map(|(_, line)| line).filter(|line| !line.starts_with(START));
            let next = next.with_context(|| format!("{}: no `{END}` follows", at()))?;
            if next.trim_end() == END {
                break next;
            }
            old.push_str(next);
        };
        let new = format!("\n{}\n\n", make(spec).with_context(at)?);
        ensure!(!new.contains(END), "{}: a record holds the mark of the end", at());
        if new != old {
            page.changes.push(Change { line: index + 1, spec: spec.into() });
        }
        page.text.push_str(&new);
        page.text.push_str(end);
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_the_marks_is_replaced() {
        let text = "before\n<!-- table: a -->\nold\n<!-- end -->\nafter\n    <!-- table: code -->\n";
        let page = renewed(text, |spec| Ok(format!("| {spec} |"))).unwrap();
        assert_eq!(
            page.text,
            "before\n<!-- table: a -->\n\n| a |\n\n<!-- end -->\nafter\n    <!-- table: code -->\n"
        );
        assert_eq!((page.changes.len(), page.changes[0].line), (1, 2));
        let again = renewed(&page.text, |spec| Ok(format!("| {spec} |"))).unwrap();
        assert!(again.changes.is_empty() && again.text == page.text);
    }

    #[test]
    fn a_mark_without_an_end_is_refused_with_its_line() {
        for text in ["\n<!-- table: a -->\nrest", "\n<!-- table: a -->\n<!-- table: b -->\n<!-- end -->\n"] {
            let error = renewed(text, |_| Ok(String::new())).err().expect("it is refused");
            assert!(error.to_string().contains("line 2, table `a`"), "{error:#}");
        }
    }
}
