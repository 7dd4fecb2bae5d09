//! Launches that no GPU would accept.
use lacuna_sim::LaunchError;

use crate::support::{Bench, kernel};

kernel!(Nothing, 32, 0, |_gpu, _args| {});
kernel!(NoThreads, 0, 0, |_gpu, _args| {});
kernel!(ManyThreads, 1025, 0, |_gpu, _args| {});
kernel!(MuchShared, 32, 256 * 1024, |_gpu, _args| {});

#[test]
fn grids() {
    let bench = Bench::new();
    for grid in [[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 65_536, 1], [1 << 31, 1, 1], [1 << 20, 1 << 12, 1]] {
        let error = bench.simulator.launch::<Nothing>(grid, bench.args).unwrap_err();
        assert!(matches!(error, LaunchError::Grid { .. }), "{error}");
    }
}

#[test]
fn blocks() {
    let bench = Bench::new();
    let no_threads = bench.launch::<NoThreads>(1).unwrap_err();
    assert!(matches!(no_threads, LaunchError::Threads { threads: 0, .. }), "{no_threads}");
    let many_threads = bench.launch::<ManyThreads>(1).unwrap_err();
    assert!(matches!(many_threads, LaunchError::Threads { threads: 1025, .. }), "{many_threads}");
    let much_shared = bench.launch::<MuchShared>(1).unwrap_err();
    assert!(much_shared.to_string().contains("262144 bytes"), "{much_shared}");
}
