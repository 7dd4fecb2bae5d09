//! The library's kernels by name.
use lacuna_sim::{LaunchError, Simulator, find, kernels};

#[test]
fn every_entry_of_the_library_is_found() {
    let names: Vec<_> = kernels().iter().map(|kernel| kernel.name()).collect();
    let listed: Vec<_> = lacuna_kernels::entries::all().map(|entry| entry.name).collect();
    assert_eq!(names, listed);
    assert!(names.iter().all(|name| find(name).is_some_and(|kernel| kernel.name() == *name)));
    assert!(find("no_such_kernel").is_none());
}

#[test]
fn arguments_of_another_type_are_refused() {
    let error = kernels()[0].launch(&Simulator::new(), [1, 1, 1], &17u32).unwrap_err();
    assert!(matches!(error, LaunchError::Arguments { .. }), "{error}");
    assert!(error.to_string().contains("Args"), "{error}");
}
