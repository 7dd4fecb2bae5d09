//! The suite itself, and a little of it on the simulator: all of it is what `lacuna-verify` runs.
use std::collections::{BTreeMap, HashSet};

use lacuna_cases::data::Data;
use lacuna_verify::run::run;
use lacuna_verify::target::Target;
use lacuna_verify::{Case, Effort, Options, cases, report};

fn all() -> Vec<Case> {
    cases(Options::default(), &Data::none())
}

#[test]
fn names_are_unique_and_have_three_parts() {
    let cases = all();
    let mut names = HashSet::new();
    for case in &cases {
        assert!(names.insert(case.name()), "{} is there twice", case.name());
        assert!(case.name().split('/').count() >= 3, "{}", case.name());
    }
}

/// The middle one of an operation's first group: the first ones have empty matrices, the last ones large.
#[test]
fn a_case_of_each_operation_holds() {
    let mut first_groups: BTreeMap<String, Vec<Case>> = BTreeMap::new();
    for case in all() {
        let operation = case.name().split('/').next().unwrap_or_default().to_owned();
        let group = first_groups.entry(operation).or_default();
        let is_of_group = group.first().is_none_or(|first| first.group() == case.group());
        if is_of_group && case.needs() == Effort::Quick {
            group.push(case);
        }
    }
    let chosen: Vec<Case> =
        first_groups.into_values().map(|mut group| group.swap_remove(group.len() / 2)).collect();
    let chosen: Vec<&Case> = chosen.iter().collect();
    let records = run(&chosen, &Target::simulator(), 1, |_| {}, |_| Ok(())).unwrap();
    let text =
        report::summary(&records, |record| format!("lacuna-verify --device sim --only {}", record.case));
    let counts = report::Counts::of(&records);
    assert_eq!((counts.passed, counts.failed), (chosen.len(), 0), "{text}");
    assert!(chosen.len() >= 8, "{text}");
}
