//! Each rule against a predicate of a query and a key.
use super::*;

/// A name, a mask, and whether query i sees key j.
pub(in super::super) type Example = (&'static str, Mask, fn(usize, usize) -> bool);

fn pattern(rows: &[&[u32]], cols: usize) -> Pattern {
    Pattern::of_rows(cols, rows).unwrap()
}

/// Documents of 30, 1, 0, 63, 64, 2 and 12 tokens.
const LENGTHS: [usize; 7] = [30, 1, 0, 63, 64, 2, 12];
const TOKENS: usize = 172;

fn document(token: usize) -> usize {
    LENGTHS
        .iter()
        .scan(0, |end, length| {
            *end += length;
            Some(*end)
        })
        .filter(|&end| end <= token)
        .count()
}

/// Masks of every rule and of joins, of sizes that blocks of 64 do not divide.
pub(in super::super) fn examples() -> Vec<Example> {
    let causal = |tokens| Mask::causal(tokens).unwrap();
    let window = |tokens, window| Mask::sliding_window(tokens, window).unwrap();
    let documents = Mask::documents(&LENGTHS).unwrap();
    let global = Mask::global(TOKENS, TOKENS, &[100, 3, 4, 3], &[5, 130, 6, 64]).unwrap();
    let seen = || pattern(&[&[0, 1, 4], &[], &[2], &[0, 1, 2, 3, 4]], 5);
    let listed = pattern(&[&[0, 2, 3, 69], &[], &[1]], 70);
    vec![
        ("full", Mask::full(70, 131).unwrap(), |_, _| true),
        ("no queries", Mask::full(0, 5).unwrap(), |_, _| true),
        ("no keys", Mask::full(5, 0).unwrap(), |_, _| true),
        ("no tokens", causal(0), |_, _| true),
        ("one token", causal(1), |_, _| true),
        ("no documents", Mask::documents(&[]).unwrap(), |_, _| true),
        ("causal", causal(TOKENS), |i, j| j <= i),
        ("causal of whole blocks", causal(128), |i, j| j <= i),
        ("more keys", Mask::causal_lower_right(70, 150).unwrap(), |i, j| j <= i + 80),
        ("more queries", Mask::causal_lower_right(150, 70).unwrap(), |i, j| j + 80 <= i),
        ("window", window(TOKENS, 40), |i, j| j <= i && i < j + 40),
        ("window of one", window(70, 1), |i, j| i == j),
        ("wide window", window(70, usize::MAX), |i, j| j <= i),
        ("to both sides", Mask::diagonals(90, 150, -8..9).unwrap(), |i, j| j <= i + 8 && i <= j + 8),
        ("above", Mask::diagonals(90, 150, 20..).unwrap(), |i, j| j >= i + 20),
        ("no diagonal", Mask::diagonals(90, 150, 1..1).unwrap(), |_, _| false),
        ("all diagonals", Mask::diagonals(90, 150, ..).unwrap(), |_, _| true),
        ("far off", Mask::diagonals(90, 150, i64::MAX..).unwrap(), |_, _| false),
        ("blocks", Mask::blocks(100, 131, [30, 31], seen()).unwrap(), |i, j| {
            matches!((i / 30, j / 31), (0, 0 | 1 | 4) | (2, 2) | (3, _))
        }),
        ("blocks of 64", Mask::blocks(256, 300, [64, 64], seen()).unwrap(), |i, j| {
            matches!((i / 64, j / 64), (0, 0 | 1 | 4) | (2, 2) | (3, _))
        }),
        ("documents", documents.clone(), |i, j| document(i) == document(j)),
        ("cross documents", Mask::cross_documents(&[3, 0, 70], &[100, 9, 20]).unwrap(), |i, j| {
            if i < 3 { j < 100 } else { j >= 109 }
        }),
        ("global", global.clone(), |i, j| [3, 4, 100].contains(&i) || [5, 6, 64, 130].contains(&j)),
        ("pattern", Mask::from_pattern(listed), |i, j| match i {
            0 => [0, 2, 3, 69].contains(&j),
            2 => j == 1,
            _ => false,
        }),
        ("and", documents.and(&causal(TOKENS)).unwrap(), |i, j| j <= i && document(i) == document(j)),
        ("or", window(TOKENS, 9).or(&global).unwrap(), |i, j| {
            j <= i && i < j + 9 || [3, 4, 100].contains(&i) || [5, 6, 64, 130].contains(&j)
        }),
        ("both", window(TOKENS, 9).or(&global).unwrap().and(&causal(TOKENS)).unwrap(), |i, j| {
            j <= i && (i < j + 9 || [3, 4, 100].contains(&i) || [5, 6, 64, 130].contains(&j))
        }),
        ("nothing in common", window(90, 3).and(&Mask::diagonals(90, 90, 5..).unwrap()).unwrap(), |_, _| {
            false
        }),
    ]
}

#[test]
fn queries_see_what_the_rule_says() {
    for (name, mask, sees) in examples() {
        let listed = mask.to_pattern().unwrap();
        assert_eq!((listed.rows(), listed.cols()), (mask.queries(), mask.keys()), "{name}");
        for query in 0..mask.queries() {
            let expected: Vec<u32> =
                (0..mask.keys()).filter(|&key| sees(query, key)).map(|key| key as u32).collect();
            assert_eq!(listed.row_columns(query), expected, "{name}, query {query}");
        }
    }
}

#[test]
fn what_means_nothing_is_refused() {
    let parameter = |mask: Result<Mask>, says: &str| {
        let error = mask.unwrap_err();
        assert!(matches!(error, Error::Parameter { operation: "attention", .. }), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    };
    let seen = || pattern(&[&[0], &[1]], 2);
    parameter(Mask::sliding_window(9, 0), "the window is 0, but it must be at least 1");
    parameter(Mask::blocks(9, 9, [0, 5], seen()), "the size of a block is 0×5");
    parameter(Mask::blocks(9, 11, [5, 5], seen()), "the pattern of blocks is 2×2, but it must be 2×3");
    parameter(Mask::cross_documents(&[1, 2], &[3]), "the number of lengths of keys is 1, but it must be 2");
    parameter(Mask::global(9, 5, &[9], &[]), "a global query is 9, but it must be below 9");
    parameter(Mask::global(9, 5, &[], &[1, 5]), "a global key is 5, but it must be below 5");
    let (square, wide) = (Mask::causal(5).unwrap(), Mask::full(5, 6).unwrap());
    parameter(square.and(&wide), "the size of the second mask is 5×6, but it must be 5×5");
    parameter(wide.or(&square), "the size of the second mask is 5×5, but it must be 5×6");
}

#[test]
fn sizes_that_nothing_counts_are_refused() {
    let large = |mask: Result<Mask>, what: &str| {
        let error = mask.unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }) && error.to_string().contains(what), "{error}");
    };
    large(Mask::full(1 << 32, 1), "the number of queries");
    large(Mask::causal_lower_right(1, usize::MAX), "the number of keys");
    large(Mask::documents(&[usize::MAX, 2]), "the number of queries");
    large(Mask::global(1 << 32, 1, &[1 << 31], &[]), "the number of queries");
    large(Mask::global(1, 1 << 33, &[], &[u32::MAX as usize]), "the number of keys");
    large(Mask::full(1, u32::MAX as usize - 62), "the number of keys is 4294967233");
    let causal = Mask::causal(3).unwrap();
    let joined = (1..256).try_fold(causal.clone(), |all, _| all.or(&causal)).unwrap();
    assert_eq!(joined.to_pattern().unwrap(), causal.to_pattern().unwrap());
    large(joined.and(&causal), "the number of rules of a mask");
    let error = Mask::full(1 << 16, 1 << 16).unwrap().to_pattern().unwrap_err();
    assert!(error.to_string().contains("the number of elements of a mask is 4294967296"), "{error}");
}

#[test]
fn queries_that_are_alike_are_asked_for_once() {
    // Queries 0 to 39 and 40 to 63 see two ranges each, of which one block is full for all.
    let asked = std::cell::Cell::new(0);
    let of_ranges = Strip::of_ranges(64..128, |query, ranges| {
        asked.set(asked.get() + 1);
        let is_first = query < 104;
        ranges.extend(if is_first { [0..3, 60..130] } else { [10..11, 64..128] });
        if is_first { 104 } else { usize::MAX }
    });
    assert_eq!((asked.get(), of_ranges.elements()), (2, 40 * 73 + 24 * 65));
    let row = |query: usize| -> Vec<u32> {
        if query < 40 { (0..3).chain(60..130).collect() } else { (10..11).chain(64..128).collect() }
    };
    let rows: Vec<Vec<u32>> = (0..64).map(row).collect();
    let of_columns = Strip::of_columns(&rows.iter().map(|row| &row[..]).collect::<Vec<_>>());
    let blocks = |strip: &Strip| strip.blocks.iter().map(|seen| (seen.block, seen.bits)).collect::<Vec<_>>();
    assert_eq!(blocks(&of_ranges), [(0, Some(0)), (1, None), (2, Some(1))]);
    assert_eq!((blocks(&of_ranges), of_ranges.bits), (blocks(&of_columns), of_columns.bits));
}
