//! The top level of a PTX module: directives, declarations, functions, entries.

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `.version`, `.target`, `.address_size`: a line that every module needs.
    Directive,
    /// A variable.
    Variable,
    /// A function, defined or declared.
    Function,
    /// A function declared `.extern`: defined nowhere in the module.
    ExternFunction,
    /// A kernel.
    Entry,
}

/// One item, with the text it came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<'a> {
    pub(crate) kind: Kind,
    /// Empty for a directive.
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
    /// Where in `text` the opening brace of a function's body stands.
    pub(crate) body_at: Option<usize>,
}

impl Item<'_> {
    /// Whether the name stands in the text as a whole identifier.
    pub(crate) fn mentions(&self, name: &str) -> bool {
        !name.is_empty()
            && self.text.match_indices(name).any(|(at, _)| {
                let before = self.text[..at].chars().next_back();
                let after = self.text[at + name.len()..].chars().next();
                !before.is_some_and(in_identifier) && !after.is_some_and(in_identifier)
            })
    }
}

/// Where and why the text could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParseError {
    /// Line, from 1.
    pub(crate) line: usize,
    pub(crate) reason: &'static str,
}

fn in_identifier(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$')
}

/// Splits a module into its items.
pub(crate) fn parse(ptx: &str) -> Result<Vec<Item<'_>>, ParseError> {
    let mut items = Vec::new();
    let mut at = 0;
    while let Some(start) = skip_blank(ptx, at) {
        let error = |reason| ParseError { line: 1 + ptx[..start].matches('\n').count(), reason };
        let rest = &ptx[start..];
        if !rest.starts_with('.') {
            return Err(error("expected a directive"));
        }
        let (kind, end, body_at) = extent(rest).ok_or_else(|| error("an item begins here and has no end"))?;
        let text = &rest[..end];
        let name = match kind {
            Kind::Directive => "",
            Kind::Variable => variable_name(text),
            _ => function_name(text),
        };
        if kind != Kind::Directive && name.is_empty() {
            return Err(error("expected a name"));
        }
        items.push(Item { kind, name, text, body_at });
        at = start + end;
    }
    Ok(items)
}

/// The next position that holds neither white space nor a comment.
fn skip_blank(ptx: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += ptx[at..].len() - ptx[at..].trim_start().len();
        match comment_length(&ptx[at..]) {
            _ if at == ptx.len() => return None,
            Some(length) => at += length,
            None => return Some(at),
        }
    }
}

/// Length of the comment that the text begins with.
fn comment_length(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        Some(text.find('\n').unwrap_or(text.len()))
    } else if text.starts_with("/*") {
        Some(text.find("*/").map_or(text.len(), |end| end + 2))
    } else {
        None
    }
}

/// Kind of the item at the start of the text, its length, and where its body begins.
fn extent(text: &str) -> Option<(Kind, usize, Option<usize>)> {
    const LINES: [&str; 4] = [".version", ".target", ".address_size", ".file"];
    if LINES.iter().any(|directive| text.starts_with(directive)) {
        return Some((Kind::Directive, text.find('\n').unwrap_or(text.len()), None));
    }
    let head = &text[..text.find(['(', '{', ';', '['])?];
    let has = |word: &str| head.split_whitespace().any(|found| found == word);
    let kind = match (has(".entry"), has(".func"), has(".extern")) {
        (true, _, _) => Kind::Entry,
        (_, true, true) => Kind::ExternFunction,
        (_, true, false) => Kind::Function,
        _ => Kind::Variable,
    };

    let (mut depth, mut body_at, mut at) = (0_u32, None, 0);
    while at < text.len() {
        match text.as_bytes()[at] {
            b'/' => {
                if let Some(length) = comment_length(&text[at..]) {
                    at += length;
                    continue;
                }
            }
            b'{' => {
                if depth == 0 && kind != Kind::Variable {
                    body_at = Some(at);
                }
                depth += 1;
            }
            b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && body_at.is_some() {
                    return Some((kind, at + 1, body_at));
                }
            }
            b';' if depth == 0 => return Some((kind, at + 1, None)),
            _ => {}
        }
        at += 1;
    }
    None
}

/// `name` of `.visible .func (result) name (parameters) …`.
fn function_name(text: &str) -> &str {
    let keyword = [".entry", ".func"].into_iter().find_map(|word| Some(text.find(word)? + word.len()));
    let mut rest = text[keyword.unwrap_or(0)..].trim_start();
    if rest.starts_with('(') {
        rest = rest.find(')').map_or("", |end| &rest[end + 1..]).trim_start();
    }
    &rest[..rest.find(|c| !in_identifier(c)).unwrap_or(rest.len())]
}

/// `name` of `.global .align 4 .b8 name[8] = {…};`.
fn variable_name(text: &str) -> &str {
    let head = text[..text.find(['[', '=', ';']).unwrap_or(text.len())].trim_end();
    &head[head.rfind(|c| !in_identifier(c)).map_or(0, |at| at + 1)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_names() {
        let items = parse(include_str!("fixtures/two_entries.ptx")).unwrap();
        let found: Vec<_> = items.iter().map(|item| (item.kind, item.name)).collect();
        assert_eq!(
            found,
            [
                (Kind::Directive, ""),
                (Kind::Directive, ""),
                (Kind::Directive, ""),
                (Kind::Variable, "lacuna_shared"),
                (Kind::Variable, "table"),
                (Kind::Function, "helper"),
                (Kind::Entry, "scale"),
                (Kind::Entry, "add"),
            ]
        );
    }

    #[test]
    fn names_match_whole_identifiers_only() {
        let items = parse(".global .b32 a;\n.global .b32 ab = a_b;\n.global .b64 p = a;").unwrap();
        let mentions: Vec<_> = items.iter().map(|item| item.mentions("a")).collect();
        assert_eq!(mentions, [true, false, true]);
    }

    #[test]
    fn text_that_is_no_ptx() {
        assert_eq!(parse("\nhello").unwrap_err(), ParseError { line: 2, reason: "expected a directive" });
        assert_eq!(parse(".visible .entry ();").unwrap_err().reason, "expected a name");
        assert!(parse(".visible .entry f() }").is_err());
        assert!(parse(".visible .entry f( ü").is_err());
    }
}
