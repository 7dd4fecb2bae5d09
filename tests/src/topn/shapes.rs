//! Rows of every length, and every N.
use super::{Problem, conform};
use crate::{Case, Effort};

/// Name, what it is, how long it takes; rows, columns, N.
type Shape = (&'static str, &'static str, Effort, [usize; 3]);

const CASES: [Shape; 24] = [
    ("none", "no rows", Effort::Quick, [0, 100, 3]),
    ("single", "one element", Effort::Quick, [3, 1, 1]),
    ("two", "rows of 2", Effort::Quick, [5, 2, 2]),
    ("n_1", "the greatest of 33", Effort::Quick, [7, 33, 1]),
    ("n_2", "two of 31", Effort::Quick, [3, 31, 2]),
    ("n_10", "ten of 1000", Effort::Quick, [3, 1000, 10]),
    ("n_31", "31 of 32", Effort::Quick, [2, 32, 31]),
    ("n_32", "32 of 1024", Effort::Quick, [2, 1024, 32]),
    ("n_33", "33 of 1025", Effort::Quick, [2, 1025, 33]),
    ("n_all_33", "33 of 33", Effort::Quick, [2, 33, 33]),
    ("n_all_1000", "1000 of 1000", Effort::Quick, [1, 1000, 1000]),
    ("n_100", "100 of 1500", Effort::Quick, [2, 1500, 100]),
    ("n_190", "190 of 5003: nearly three quarters of a block's threads", Effort::Quick, [1, 5003, 190]),
    ("n_193", "193 of 5003: more", Effort::Quick, [1, 5003, 193]),
    ("n_400", "400 of 5120", Effort::Quick, [1, 5120, 400]),
    ("n_1000", "1000 of 5121", Effort::Quick, [1, 5121, 1000]),
    ("n_2500", "2500 of 4500: chunks of which most is wanted", Effort::Slow, [1, 4500, 2500]),
    ("n_all_5000", "5000 of 5000, in sorted chunks", Effort::Slow, [1, 5000, 5000]),
    ("n_300", "300 of 4001, in several tiles of a streaming select", Effort::Quick, [1, 4001, 300]),
    ("n_512", "512 of 7000: as many as streaming select can", Effort::Slow, [1, 7000, 512]),
    ("paper", "10 of 10,240", Effort::Quick, [1, 10_240, 10]),
    ("paper_100", "100 of 10,240", Effort::Slow, [2, 10_240, 100]),
    ("vocabulary", "10 of 50,257", Effort::Slow, [1, 50_257, 10]),
    ("large", "100 of 10,240, 1024 rows", Effort::Gpu, [1024, 10_240, 100]),
];

pub(super) fn cases() -> Vec<Case> {
    let shapes = CASES.into_iter().map(|(name, about, effort, [rows, columns, n])| {
        let check = move |cx: &crate::Context<'_>| conform(cx, &Problem::drawn(rows, columns, n, cx.seed));
        Case::new(format!("topn/shapes/{name}"), about, check).effort(effort)
    });
    shapes.collect()
}
