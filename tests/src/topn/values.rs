//! Values that make the selection hard, and values that are not finite.
use super::{Problem, conform};
use crate::Case;

/// Name, what it is, and what is done to the rows of one problem.
type Values = (&'static str, &'static str, fn(&mut [f32]));

const CASES: [Values; 22] = [
    ("equal", "all are the same: the first are wanted", |row| row.fill(-3.25)),
    ("zeros", "+0 and −0 are equal", |row| {
        row.iter_mut().enumerate().for_each(|(i, x)| *x = if i % 3 == 0 { 0.0 } else { -0.0 });
    }),
    ("ascending", "each is greater than the one before", |row| {
        row.iter_mut().enumerate().for_each(|(i, x)| *x = i as f32 * 0.001 - 7.0);
    }),
    ("descending", "each is less", |row| {
        row.iter_mut().enumerate().for_each(|(i, x)| *x = 7.0 - i as f32 * 0.001);
    }),
    ("one_bit", "neighbours in f32", |row| {
        let len = row.len() as u32;
        row.iter_mut().zip(0..).for_each(|(x, i)| *x = f32::from_bits(0x3f80_0000 + (i * 7919) % len));
    }),
    ("subnormal", "values that are hardly more or less than 0", |row| {
        row.iter_mut().for_each(|x| *x *= 1e-42)
    }),
    ("few_values", "many of each", |row| row.iter_mut().for_each(|x| *x = (*x / 4.0).round())),
    ("huge", "±1e30", |row| row.iter_mut().for_each(|x| *x *= 1e30)),
    ("largest", "±the largest f32: differences overflow", |row| {
        row.iter_mut().for_each(|x| *x = f32::MAX.copysign(*x));
    }),
    ("one_thread", "the greatest are all of one thread", |row| {
        let len = row.len();
        row.iter_mut()
            .enumerate()
            .filter(|(i, _)| i % 1024 < 4)
            .for_each(|(i, x)| *x = 50.0 + (len - i) as f32);
    }),
    ("masked_90", "90 % are −∞", |row| mask(row, 10)),
    ("masked_99_9", "99.9 % are −∞: some of them are wanted, by index", |row| mask(row, 1000)),
    ("masked", "all are −∞: NaN, and the first indices", |row| row.fill(f32::NEG_INFINITY)),
    ("infinity", "+∞ comes first, and makes its row NaN", |row| {
        row[row.len() / 2] = f32::INFINITY;
        row[row.len() / 3] = f32::INFINITY;
    }),
    ("nan", "NaN of either sign comes first, and makes its row NaN", |row| {
        row[row.len() / 2] = f32::NAN;
        row[row.len() / 3] = -f32::NAN;
        row[row.len() - 1] = f32::INFINITY;
    }),
    ("all_nan", "nothing but NaN", |row| row.fill(f32::NAN)),
    ("rising_tiles", "every tile is above those before it", |row| {
        row.iter_mut().enumerate().for_each(|(i, x)| *x += (i / 512) as f32 * 20.0);
    }),
    ("late_ties", "many at the threshold, and after the first tile", |row| {
        row.iter_mut().enumerate().for_each(|(i, x)| *x = if i % 7 == 3 { 9.0 } else { *x - 10.0 });
    }),
    ("late_nan", "the last but two is the only NaN", |row| {
        let len = row.len();
        row[len - 3] = -f32::NAN;
    }),
    ("late_infinity", "+∞ at the end alone", |row| {
        let len = row.len();
        row[len - 1] = f32::INFINITY;
    }),
    ("far_below", "all far below 0, as some mask: exponents are out of range", |row| {
        row.iter_mut().enumerate().for_each(|(i, x)| *x = if i % 50 == 7 { -1e30 } else { f32::MIN });
    }),
    ("nan_and_masked", "NaN among −∞", |row| {
        row.fill(f32::NEG_INFINITY);
        row[row.len() - 2] = f32::NAN;
    }),
];

/// All but every `step`-th become −∞.
fn mask(row: &mut [f32], step: usize) {
    row.iter_mut()
        .enumerate()
        .filter(|(i, _)| i % step != step / 2)
        .for_each(|(_, x)| *x = f32::NEG_INFINITY);
}

/// Shapes that are tried: rows, columns and N.
const SHAPES: [[usize; 3]; 3] = [[2, 60, 12], [1, 1027, 40], [1, 3403, 30]];

/// Several tiles of a streaming select, whole or in chunks, and more than has room.
const LONG: [usize; 3] = [1, 9411, 30];
/// What is tried so, too: it is hard for streaming select.
const HARD_TO_WALK: [&str; 8] = [
    "equal",
    "ascending",
    "masked_99_9",
    "rising_tiles",
    "late_ties",
    "late_nan",
    "late_infinity",
    "far_below",
];

pub(super) fn cases() -> Vec<Case> {
    let values = CASES.into_iter().flat_map(|(name, about, change)| {
        let long = HARD_TO_WALK.contains(&name).then_some(LONG);
        SHAPES.into_iter().chain(long).map(move |[rows, columns, n]| {
            Case::new(format!("topn/values/{name}_{columns}"), about, move |cx| {
                // A row before it is as it was drawn.
                let mut problem = Problem::drawn(rows, columns, n, cx.seed);
                change(&mut problem.logits[(rows - 1) * columns..]);
                conform(cx, &problem)
            })
        })
    });
    values.collect()
}
