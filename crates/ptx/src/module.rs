//! Takes a PTX module apart into one module an entry.
pub(crate) mod items;

use self::items::{Item, Kind, parse};
use crate::{BuildError, LaunchBounds, Target, checks};

/// The entries of a crate, built for one target.
#[derive(Clone, Debug)]
pub struct Module {
    /// The target built for.
    pub target: Target,
    /// The entries, by name.
    pub entries: Vec<EntryPtx>,
}

/// A PTX module that holds one entry and what it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPtx {
    /// The entry's name, as a launch gives it.
    pub name: String,
    /// The module's text.
    pub ptx: String,
    /// The launch bounds written into it.
    pub bounds: Option<LaunchBounds>,
}

impl Module {
    /// Takes the compiler's module apart, checks it, and writes launch bounds into each entry that has them.
    ///
    /// # Errors
    /// A module that does not parse, has no entry, calls a function defined nowhere, or keeps variables in local
    /// memory; launch bounds that no GPU can keep.
    pub fn split(
        target: Target,
        ptx: &str,
        bounds: impl Fn(&str) -> Option<LaunchBounds>,
    ) -> Result<Self, BuildError> {
        let items = parse(ptx).map_err(|error| BuildError::Malformed {
            target,
            line: error.line,
            reason: error.reason,
        })?;
        checks::refuse(target, &items)?;
        let mut entries = items
            .iter()
            .filter(|item| item.kind == Kind::Entry)
            .map(|entry| {
                let bounds = bounds(entry.name);
                let directives = bounds.map(|bounds| bounds.directives(entry.name)).transpose()?;
                let mut ptx = stand_alone(&items, entry, directives.as_deref().unwrap_or_default());
                if bounds.is_some_and(|bounds| bounds.has_map) {
                    ptx = with_aligned_parameter(&ptx, entry.name)?;
                }
                Ok(EntryPtx { name: entry.name.into(), ptx, bounds })
            })
            .collect::<Result<Vec<_>, BuildError>>()?;
        if entries.is_empty() {
            return Err(BuildError::NoEntry { target });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { target, entries })
    }

    /// The entry of that name.
    pub fn entry(&self, name: &str) -> Option<&EntryPtx> {
        self.entries.binary_search_by(|entry| entry.name.as_str().cmp(name)).ok().map(|at| &self.entries[at])
    }
}

/// The alignment of a tensor map among an entry's parameters. Rust gives a parameter 16 bytes at most.
const MAP_ALIGNMENT: &str = "64";

/// The text with the entry's only parameter aligned for a tensor map.
fn with_aligned_parameter(ptx: &str, entry: &str) -> Result<String, BuildError> {
    let name = format!(" {entry}_param_0[");
    let found = ptx.lines().find(|line| line.contains(".param .align ") && line.contains(&name));
    let Some(line) = found else { return Err(BuildError::NoParameter { entry: entry.into() }) };
    let of_alignment = |line: &str| {
        let (before, after) = line.split_once(".align ")?;
        let (_, after) = after.split_once(' ')?;
        Some(format!("{before}.align {MAP_ALIGNMENT} {after}"))
    };
    let aligned = of_alignment(line).ok_or_else(|| BuildError::NoParameter { entry: entry.into() })?;
    Ok(ptx.replacen(line, &aligned, 1))
}

/// The text of a module with this entry, and the declarations and functions it reaches.
fn stand_alone(items: &[Item<'_>], entry: &Item<'_>, directives: &str) -> String {
    let mut wanted: Vec<bool> = items
        .iter()
        .map(|item| item.kind == Kind::Directive || (item.kind == Kind::Entry && item.name == entry.name))
        .collect();
    let mut reached = vec![entry];
    while let Some(user) = reached.pop() {
        for (at, item) in items.iter().enumerate() {
            if !wanted[at] && item.kind != Kind::Entry && user.mentions(item.name) {
                wanted[at] = true;
                reached.push(item);
            }
        }
    }

    let mut text = String::new();
    for (item, _) in items.iter().zip(wanted).filter(|(_, wanted)| *wanted) {
        match (item.kind, item.body_at) {
            (Kind::Entry, Some(body_at)) => {
                text += item.text[..body_at].trim_end();
                text.push('\n');
                text += directives;
                text += &item.text[body_at..];
            }
            _ => text += item.text,
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = include_str!("module/fixtures/two_entries.ptx");

    fn split(ptx: &str) -> Result<Module, BuildError> {
        Module::split(Target::Sm80, ptx, |_| None)
    }

    #[test]
    fn entries_come_sorted_and_alone() {
        let module = split(TWO).unwrap();
        let names: Vec<_> = module.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["add", "scale"]);
        for (own, other) in [("add", "scale"), ("scale", "add")] {
            let ptx = &module.entry(own).unwrap().ptx;
            assert!(ptx.starts_with(".version 7.4\n.target sm_80\n.address_size 64\n"), "{ptx}");
            assert!(ptx.contains(&format!(".entry {own}(")), "{ptx}");
            assert!(!ptx.contains(&format!(".entry {other}(")), "{ptx}");
        }
    }

    #[test]
    fn a_parameter_with_a_tensor_map_is_aligned_for_it() {
        let with_map = |of: &'static str| {
            let bounds =
                move |name: &str| Some(LaunchBounds { has_map: name == of, ..LaunchBounds::threads(64) });
            Module::split(Target::Sm80, TWO, bounds)
        };
        let add = with_map("add").unwrap().entry("add").unwrap().ptx.clone();
        assert!(add.contains("\t.param .align 64 .b8 add_param_0[56]\n"), "{add}");
        let error = with_map("scale").unwrap_err();
        assert!(matches!(&error, BuildError::NoParameter { entry } if entry == "scale"), "{error}");
    }

    #[test]
    fn an_entry_keeps_only_what_it_reaches() {
        let module = split(TWO).unwrap();
        let add = &module.entry("add").unwrap().ptx;
        assert!(add.contains("lacuna_shared"));
        assert!(!add.contains("table"), "{add}");
        // `scale` calls `helper`, and only `helper` reads `table`.
        let scale = &module.entry("scale").unwrap().ptx;
        assert!(scale.contains(".func (.param .b32 result) helper"));
        assert!(scale.contains(".global .align 4 .b8 table[8] = {1, 0, 0, 0, 2, 0, 0, 0};"));
        assert!(!scale.contains("lacuna_shared"), "{scale}");
    }

    #[test]
    fn launch_bounds_stand_before_the_body() {
        let bounds = LaunchBounds { min_blocks: 4, ..LaunchBounds::threads(128) };
        let module = Module::split(Target::Sm80, TWO, |name| (name == "add").then_some(bounds)).unwrap();
        let add = &module.entry("add").unwrap().ptx;
        assert!(add.contains("\n)\n.maxntid 128, 1, 1\n.minnctapersm 4\n{\n"), "{add}");
        assert!(!module.entry("scale").unwrap().ptx.contains(".maxntid"));
    }

    #[test]
    fn a_module_without_entries_is_an_error() {
        let error = split(".version 7.4\n.target sm_80\n.address_size 64\n").unwrap_err();
        assert!(matches!(error, BuildError::NoEntry { target: Target::Sm80 }));
    }

    #[test]
    fn a_truncated_module_names_the_line() {
        let cut = TWO.find("ret;").unwrap();
        let error = split(&TWO[..cut]).unwrap_err();
        assert!(matches!(error, BuildError::Malformed { line: 10, .. }), "{error}");
    }

    #[test]
    fn a_missing_function_is_refused() {
        let ptx = format!("{TWO}\n.extern .func (.param .b32 r) _ZN4core3fmt(.param .b64 a);\n");
        let error = split(&ptx).unwrap_err();
        assert!(matches!(error, BuildError::ExternFunction { function, .. } if function == "_ZN4core3fmt"));
    }

    #[test]
    fn a_local_depot_is_refused() {
        let ptx = TWO.replace("ret; // add", ".local .align 8 .b8 __local_depot0[64];\n ret;");
        let error = split(&ptx).unwrap_err();
        assert!(matches!(error, BuildError::LocalMemory { entry, .. } if entry == "add"));
    }
}
