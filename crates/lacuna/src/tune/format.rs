//! The file of choices as bytes: JSON with the number of its format.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The format that is read and written. A change of meaning is a new number.
pub(super) const FORMAT: u64 = 2;
/// Bytes of the largest file that is read.
pub(super) const MOST_BYTES: u64 = 64 << 20;

/// A kernel and how long it took.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Measured {
    /// Its entry point.
    pub(super) entry: String,
    /// The median, in microseconds.
    pub(super) time_us: f64,
}

impl Measured {
    /// A kernel's time, kept to whole nanoseconds: such numbers come back from JSON as they were.
    pub(super) fn new(entry: impl Into<String>, time_us: f64) -> Self {
        Self { entry: entry.into(), time_us: (time_us * 1e3).round().max(1.0) / 1e3 }
    }
}

/// The kernels measured for each problem, fastest first, by the problem's key.
pub(super) type Rankings = BTreeMap<String, Vec<Measured>>;

/// Why bytes are no choices.
#[derive(Debug, PartialEq)]
pub(super) enum Unusable {
    /// They are of another format.
    OtherFormat(u64),
    /// They begin as choices do, but are damaged.
    Corrupt(String),
    /// They never were choices: some other file.
    OtherFile,
}

/// What is read before the rest, to tell another format from damage.
#[derive(Deserialize)]
struct Header {
    format: u64,
}

#[derive(Deserialize, Serialize)]
struct File<R> {
    format: u64,
    rankings: R,
}

/// The choices in a file's bytes. Any bytes are an answer or a refusal.
pub(super) fn read(bytes: &[u8]) -> Result<Rankings, Unusable> {
    if !begins_as_ours(bytes) {
        return Err(Unusable::OtherFile);
    }
    let corrupt = |error: serde_json::Error| Unusable::Corrupt(error.to_string());
    let Header { format } = serde_json::from_slice(bytes).map_err(corrupt)?;
    if format != FORMAT {
        return Err(Unusable::OtherFormat(format));
    }
    let File::<Rankings> { rankings, .. } = serde_json::from_slice(bytes).map_err(corrupt)?;
    for (key, ranking) in &rankings {
        let usable = |kernel: &Measured| kernel.time_us.is_finite() && kernel.time_us > 0.0;
        if ranking.is_empty() || !ranking.iter().all(usable) {
            return Err(Unusable::Corrupt(format!("`{key}` has no times, or times that are not positive")));
        }
        if !ranking.is_sorted_by(|a, b| a.time_us <= b.time_us) {
            return Err(Unusable::Corrupt(format!(
                "the kernels of `{key}` are not in the order of their times"
            )));
        }
    }
    Ok(rankings)
}

/// Whether bytes, however short, begin as every format of choices does. What does not must never be replaced: it may be
/// anything, opened by a wrong path.
fn begins_as_ours(bytes: &[u8]) -> bool {
    const BEGINNING: &[u8] = b"{\"format\":";
    let bytes = bytes.iter().filter(|byte| !byte.is_ascii_whitespace());
    bytes.zip(BEGINNING).all(|(a, b)| a == b)
}

/// The file's bytes.
pub(super) fn write(rankings: &Rankings) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(&File { format: FORMAT, rankings })?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn rankings() -> impl Strategy<Value = Rankings> {
        let ranking = vec(("[a-z0-9_]{1,12}", 1..1_000_000_000_000_u64), 1..4).prop_map(|kernels| {
            let measured = |(entry, ns): (String, u64)| Measured::new(entry, ns as f64 / 1e3);
            let mut ranking: Vec<Measured> = kernels.into_iter().map(measured).collect();
            ranking.sort_by(|a, b| a.time_us.total_cmp(&b.time_us));
            ranking
        });
        proptest::collection::btree_map(any::<String>(), ranking, 0..4)
    }

    fn is_corrupt(bytes: &[u8]) -> bool {
        matches!(read(bytes), Err(Unusable::Corrupt(_)))
    }

    #[test]
    fn other_formats_are_told_from_damage() {
        assert_eq!(read(br#"{"format": 1, "rankings": {}}"#), Err(Unusable::OtherFormat(1)));
        assert_eq!(read(br#"{"format": 2, "rankings": {}}"#), Ok(Rankings::new()));
        for damaged in ["", "{", "{\n  \"for", "{\"format\": 2}", "{\"format\": -1, \"rankings\": {}}"] {
            assert!(is_corrupt(damaged.as_bytes()), "{damaged}");
        }
        let nested = format!("{{\"format\": 2, \"rankings\": {}", "[".repeat(1 << 20));
        assert!(is_corrupt(nested.as_bytes()), "nesting is limited");
    }

    #[test]
    fn other_files_are_told_from_damage() {
        for other in ["[]", "\0", "{\"name\": \"model\"}", "\u{7f}ELF", "%%MatrixMarket"] {
            assert_eq!(read(other.as_bytes()), Err(Unusable::OtherFile), "{other}");
        }
    }

    #[test]
    fn rankings_without_sense_are_refused() {
        let file = |ranking: &str| format!(r#"{{"format": 2, "rankings": {{"k": {ranking}}}}}"#);
        for ranking in [
            "[]",
            r#"[{"entry": "a", "time_us": 0}]"#,
            r#"[{"entry": "a", "time_us": -1}]"#,
            r#"[{"entry": "a", "time_us": 1e999}]"#,
            r#"[{"entry": "a"}]"#,
            r#"[{"entry": "a", "time_us": 2}, {"entry": "b", "time_us": 1}]"#,
        ] {
            assert!(is_corrupt(file(ranking).as_bytes()), "{ranking}");
        }
        assert!(read(file(r#"[{"entry": "a", "time_us": 1}]"#).as_bytes()).is_ok());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn files_round_trip(rankings in rankings()) {
            prop_assert_eq!(read(&write(&rankings).unwrap()), Ok(rankings));
        }

        #[test]
        fn bytes_never_panic(bytes in vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
        }

        #[test]
        fn damaged_files_never_panic(
            rankings in rankings(),
            changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut bytes = write(&rankings).unwrap();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Ok(rankings) = read(&bytes) {
                prop_assert!(write(&rankings).is_ok());
            }
        }

        #[test]
        fn truncated_files_are_refused(rankings in rankings(), at in any::<prop::sample::Index>()) {
            let bytes = write(&rankings).unwrap();
            // The last two bytes are the closing brace and the end of the line.
            prop_assert!(is_corrupt(&bytes[..at.index(bytes.len() - 1)]));
        }
    }
}
