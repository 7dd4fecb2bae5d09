//! What a choice belongs to, as text: one line that tells all of it, and is the same everywhere.
use lacuna_matrix::PatternStats;

use crate::DeviceInfo;

/// The part of a key that is the machine and the library: the GPU, the driver, which compiles the kernels, and this
/// version of the library with the kernels that it has.
pub(super) fn surroundings<'n>(info: &DeviceInfo, kernels: impl Iterator<Item = &'n str>) -> String {
    let kernels = fingerprint(kernels);
    let DeviceInfo { name, sm, multiprocessors, driver, .. } = info;
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "{name}, sm_{sm}, {multiprocessors} SMs, driver {driver}; lacuna {version}, kernels {kernels:016x}"
    )
}

/// How rows vary, coarsely: patterns of one kind share their choice, as those of a layer do while it is pruned again.
/// Quarters of octaves from the mean row to the longest; tenths of the lengths' coefficient of variation, and of rows
/// without nonzeros.
pub(crate) fn row_class(stats: &PatternStats) -> String {
    let octaves = (f64::from(stats.max_row_length) / stats.mean_row_length.max(f64::MIN_POSITIVE)).max(1.0);
    let longest = (4.0 * octaves.log2()).round();
    let cov = (10.0 * stats.row_length_cov).round();
    let empty = (10.0 * stats.empty_rows as f64 / stats.rows.max(1) as f64).round();
    format!("longest {longest}, cov {cov}, empty {empty}")
}

/// A set of kernels: how many, and a number for their names in any order.
pub(super) fn set<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    format!("{} kernels {:016x}", names.len(), fingerprint(names.into_iter()))
}

/// A number for a list of names (64-bit FNV-1a), the same in every build.
fn fingerprint<'n>(names: impl Iterator<Item = &'n str>) -> u64 {
    let bytes = names.flat_map(|name| name.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use lacuna_matrix::{Pattern, generate};

    use super::*;

    #[test]
    fn fingerprints_tell_lists_apart() {
        assert_eq!(fingerprint([].into_iter()), 0xcbf2_9ce4_8422_2325);
        let lists: [&[&str]; 4] = [&["ab", "c"], &["a", "bc"], &["c", "ab"], &["abc"]];
        let numbers = lists.map(|list| fingerprint(list.iter().copied()));
        for (index, number) in numbers.iter().enumerate() {
            assert!(!numbers[..index].contains(number), "{numbers:x?}");
        }
    }

    #[test]
    fn draws_of_one_kind_share_a_class_and_uneven_rows_have_their_own() {
        let class = |pattern: &Pattern| row_class(&pattern.stats());
        let even = |seed| class(&generate::with_row_cov(1000, 1000, 100.0, 0.0, seed).unwrap());
        assert_eq!(even(1), even(2));
        assert_ne!(even(1), class(&generate::with_row_cov(1000, 1000, 100.0, 1.0, 1).unwrap()));
    }

    #[test]
    fn matrices_without_nonzeros_have_a_class() {
        for (rows, cols) in [(0, 0), (3, 0), (0, 3), (3, 3)] {
            let pattern = Pattern::new(rows, cols, vec![0; rows + 1], Vec::new()).unwrap();
            let empty = if rows == 0 { 0 } else { 10 };
            assert_eq!(row_class(&pattern.stats()), format!("longest 0, cov 0, empty {empty}"));
        }
    }
}
