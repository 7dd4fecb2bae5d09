//! Random matrices are what they claim to be, and the same for the same seed.

use lacuna_matrix::generate::{
    GenerateError, band_random, power_law, random_dense, random_values, random_values_as, uniform,
    uniform_nnz, with_row_cov,
};
use lacuna_matrix::{FormatError, Pattern};

/// A pattern must survive the checks that generators skip.
fn checked(pattern: Pattern) -> Pattern {
    let (offsets, columns) = (pattern.row_offsets().to_vec(), pattern.col_indices().to_vec());
    Pattern::new(pattern.rows(), pattern.cols(), offsets, columns).unwrap()
}

fn refused(parameter: &str, result: Result<Pattern, GenerateError>) {
    match result.unwrap_err() {
        GenerateError::Parameter { parameter: named, .. } => assert_eq!(named, parameter),
        other => panic!("{other}"),
    }
}

#[test]
fn uniform_has_exactly_the_nonzeros_asked_for() {
    for sparsity in [0.0, 0.1, 0.5, 0.9, 0.999, 1.0] {
        let pattern = checked(uniform(97, 53, sparsity, 1).unwrap());
        assert_eq!(pattern.nnz(), ((1.0 - sparsity) * 97.0 * 53.0).round() as usize);
    }
    for nnz in [0, 1, 333, 7 * 96 - 1, 7 * 96] {
        assert_eq!(checked(uniform_nnz(7, 96, nnz, 2).unwrap()).nnz(), nnz);
    }
}

#[test]
fn uniform_spreads_over_rows_and_columns() {
    let pattern = uniform(400, 300, 0.7, 3).unwrap();
    // Row lengths are all but binomial: mean 90, deviation sqrt(300 · .3 · .7) = 7.94.
    let stats = pattern.stats();
    assert!((stats.row_length_cov * 90.0 - 7.94).abs() < 1.0, "{stats:?}");
    // Columns of 400 · .3 = 120, deviation 9.2: none is off by six of them.
    let stats = pattern.transpose().stats();
    assert!(stats.min_row_length > 65 && stats.max_row_length < 175, "{stats:?}");
}

#[test]
fn seeds_repeat_and_differ() {
    assert_eq!(uniform(64, 64, 0.5, 7).unwrap(), uniform(64, 64, 0.5, 7).unwrap());
    assert_ne!(uniform(64, 64, 0.5, 7).unwrap(), uniform(64, 64, 0.5, 8).unwrap());
    assert_eq!(random_values(100, 7), random_values(100, 7));
    assert_ne!(random_values(100, 7), random_values(100, 8));
    assert_eq!(random_dense(10, 10, 7).unwrap().values(), random_values(100, 7));
}

/// These numbers come from another implementation of xoshiro256++ and SplitMix64. They must not change with the
/// platform, nor with a new version of a dependency.
#[test]
fn draws_are_pinned() {
    let pattern = uniform_nnz(2, 100, 6, 42).unwrap();
    assert_eq!(pattern.row_offsets(), [0, 1, 6]);
    assert_eq!(pattern.col_indices(), [63, 17, 40, 58, 62, 96]);
    assert_eq!(random_values(3, 42), [0.62861025, -0.36235797, 0.9677882]);
}

#[test]
fn row_lengths_have_the_variation_asked_for() {
    for cov in [0.0, 0.1, 0.5, 1.0, 1.5] {
        let stats = checked(with_row_cov(4000, 256, 64.0, cov, 5).unwrap()).stats();
        assert!((stats.row_length_cov - cov).abs() < 0.03 * cov + 1e-9, "{cov}: {stats:?}");
        assert!((stats.mean_row_length - 64.0).abs() < 0.06 * 64.0 * cov + 0.01, "{cov}: {stats:?}");
    }
    // The most that there can be: rows empty or full.
    let most = (256.0f64 / 64.0 - 1.0).sqrt();
    let pattern = checked(with_row_cov(1000, 256, 64.0, most, 5).unwrap());
    assert!(pattern.row_lengths().all(|length| length == 0 || length == 256));
}

#[test]
fn a_broken_mean_is_kept_over_rows_of_one_length() {
    let pattern = checked(with_row_cov(1000, 16, 2.25, 0.0, 5).unwrap());
    assert_eq!(pattern.nnz(), 2250);
    assert!(pattern.row_lengths().all(|length| length == 2 || length == 3));
}

#[test]
fn power_law_has_its_mean_and_its_tail() {
    for exponent in [1.5, 2.0, 2.5, 4.0] {
        let stats = checked(power_law(20_000, 4096, 12.0, exponent, 6).unwrap()).stats();
        assert!((stats.mean_row_length / 12.0 - 1.0).abs() < 0.1, "{exponent}: {stats:?}");
    }
    // Of lengths with exponent 2.5 the part x^-1.5 is x times the shortest, here 4, or longer: 1/8 at 16.
    let pattern = power_law(20_000, 4096, 12.0, 2.5, 6).unwrap();
    let long = pattern.row_lengths().filter(|&length| length > 16).count() as f64 / 20_000.0;
    assert!((long - 0.125).abs() < 0.02, "{long}");
}

#[test]
fn attention_masks_are_causal_with_a_band() {
    let (n, band, sparsity) = (600, 32, 0.95);
    let mask = checked(band_random(n, band, sparsity, 9).unwrap());
    let mut off_band = 0;
    let (mut near, mut far) = (0, 0);
    for row in 0..n {
        let columns = mask.row_columns(row);
        let band_start = (row + 1).saturating_sub(band);
        let split = columns.partition_point(|&column| (column as usize) < band_start);
        assert!(columns[split..].iter().copied().eq(band_start as u32..=row as u32));
        off_band += split;
        near += columns[..split].iter().filter(|&&c| (64..128).contains(&(row - c as usize))).count();
        far += columns[..split].iter().filter(|&&c| (256..512).contains(&(row - c as usize))).count();
    }
    let positions = (n - band) * (n - band + 1) / 2;
    let expected = (1.0 - sparsity) * positions as f64;
    assert!((off_band as f64 / expected - 1.0).abs() < 0.05, "{off_band} of {expected}");
    // Each octave of distances is as likely on a row that reaches so far; fewer rows reach far.
    assert!(near as f64 > 1.5 * far as f64 && far > 0, "{near} {far}");
}

#[test]
fn attention_masks_of_extreme_sparsity() {
    assert_eq!(checked(band_random(40, 4, 0.0, 1).unwrap()).nnz(), 40 * 41 / 2);
    assert_eq!(checked(band_random(40, 4, 1.0, 1).unwrap()).nnz(), 1 + 2 + 3 + 37 * 4);
    assert_eq!(checked(band_random(3, 100, 0.5, 1).unwrap()).nnz(), 6);
    assert_eq!(band_random(0, 1, 0.5, 1).unwrap().nnz(), 0);
}

#[test]
fn values_fill_their_range() {
    let values = random_values(10_000, 11);
    assert!(values.iter().all(|value| (-1.0..1.0).contains(value)));
    let mean = values.iter().sum::<f32>() / 10_000.0;
    assert!(mean.abs() < 0.03, "{mean}");
    assert!(values.iter().any(|&v| v > 0.99) && values.iter().any(|&v| v < -0.99));
}

#[test]
fn values_of_narrow_types_are_the_same_values_rounded() {
    let narrow = random_values_as(1000, 11, half::bf16::from_f32);
    let expected: Vec<half::bf16> = random_values(1000, 11).into_iter().map(half::bf16::from_f32).collect();
    assert_eq!(narrow, expected);
    assert!(narrow.iter().all(|value| value.to_f32().abs() <= 1.0));
}

#[test]
fn matrices_without_elements() {
    for (rows, cols) in [(0, 0), (0, 5), (5, 0)] {
        assert_eq!(checked(uniform(rows, cols, 0.5, 1).unwrap()).nnz(), 0);
        assert_eq!(checked(with_row_cov(rows, cols, 0.0, 0.0, 1).unwrap()).nnz(), 0);
        assert_eq!(checked(power_law(rows, cols, 0.0, 2.0, 1).unwrap()).nnz(), 0);
    }
    assert_eq!(checked(power_law(50, 50, 0.0, 1.1, 1).unwrap()).nnz(), 0);
    assert_eq!(checked(power_law(50, 50, 50.0, 2.0, 1).unwrap()).nnz(), 2500);
    assert_eq!(checked(with_row_cov(50, 50, 50.0, 0.0, 1).unwrap()).nnz(), 2500);
}

#[test]
fn impossible_wishes_are_refused() {
    for sparsity in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        refused("sparsity", uniform(4, 4, sparsity, 0));
        refused("sparsity", band_random(4, 1, sparsity, 0));
    }
    refused("nnz", uniform_nnz(4, 4, 17, 0));
    refused("band", band_random(4, 0, 0.5, 0));
    for mean in [-1.0, 4.5, f64::NAN] {
        refused("mean_row_len", with_row_cov(4, 4, mean, 0.5, 0));
        refused("mean", power_law(4, 4, mean, 2.0, 0));
    }
    for cov in [-1.0, 1.01, f64::NAN] {
        refused("cov", with_row_cov(4, 4, 2.0, cov, 0));
    }
    for exponent in [1.0, 101.0, f64::NAN] {
        refused("exponent", power_law(4, 4, 2.0, exponent, 0));
    }
    let got = uniform_nnz(1 << 17, 1 << 17, 1 << 33, 0).unwrap_err();
    assert_eq!(got, FormatError::TooLarge { what: "nonzeros", got: 1 << 33 }.into());
    let got = uniform(1 << 33, 1, 0.5, 0).unwrap_err();
    assert_eq!(got, FormatError::TooLarge { what: "rows", got: 1 << 33 }.into());
}

#[test]
fn extreme_variation_is_survived() {
    for cov in [1e-300, 1e-12, 1e-5, 3.999, 3.9999999] {
        let pattern = checked(with_row_cov(100, 170, 10.0, cov, 1).unwrap());
        assert!(pattern.nnz() <= 17_000);
    }
}
