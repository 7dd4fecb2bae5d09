//! Small problems of every form, that shrink when they fail.
use lacuna::Device;
use lacuna_verify::Context;
use lacuna_verify::spmm::{Placement, Problem, conform};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

/// Columns of A, the columns of each row's nonzeros, and N.
fn shapes() -> impl Strategy<Value = (usize, Vec<Vec<u32>>, usize)> {
    (1usize..70).prop_flat_map(|cols| {
        let row =
            btree_set(0..cols as u32, 0..=cols.min(40)).prop_map(|columns| columns.into_iter().collect());
        (Just(cols), vec(row, 0..12), 0usize..40)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any matrix, any N, any alignment, by every legal algorithm.
    #[test]
    fn every_problem_is_solved(
        (cols, rows, n) in shapes(),
        b_offset in 0usize..8,
        c_offset in 0usize..8,
        seed: u64,
    ) {
        let problem = Problem::of_rows(cols, &rows, n, seed).unwrap();
        let device = Device::simulator();
        let stream = device.stream().unwrap();
        let context = Context { device: &device, stream: &stream, seed };
        let worst = conform(&context, &problem, &[Placement::slices(b_offset, c_offset)]);
        prop_assert!(worst.is_ok(), "{:#}", worst.unwrap_err());
    }
}
