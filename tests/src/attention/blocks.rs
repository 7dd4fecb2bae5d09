//! Masks in blocks of 64 queries × 64 keys, by the kernels that take them so: full, partial and empty blocks, and more of them
//! than a thread block has stages.
use lacuna::matrix::generate;

use super::{Effort, Problem, case};
use crate::Case;
use lacuna_cases::pattern::of_rows;

/// A mask whose query `row` sees the keys that `keys` gives, of `cols`.
fn mask(rows: u32, cols: usize, keys: impl Fn(u32) -> Vec<u32>) -> anyhow::Result<lacuna::matrix::Pattern> {
    of_rows(cols, &(0..rows).map(keys).collect::<Vec<_>>())
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "attention/blocks/full".into(),
            "full blocks, and the last keys and queries",
            Effort::Quick,
            |seed| Ok(Problem::draw(mask(70, 150, |_| (0..150).collect())?, 64, 2, seed)),
        ),
        case("attention/blocks/long".into(), "more blocks of keys than stages", Effort::Quick, |seed| {
            Ok(Problem::draw(mask(66, 540, |row| (row % 5..540).collect())?, 64, 1, seed))
        }),
        case("attention/blocks/wide".into(), "the same of rows of 128 elements", Effort::Quick, |seed| {
            Ok(Problem::draw(mask(66, 300, |row| (row % 5..300).collect())?, 128, 1, seed))
        }),
        case("attention/blocks/widest".into(), "rows of 256 elements", Effort::Quick, |seed| {
            Ok(Problem::draw(mask(66, 200, |row| (row % 5..200).collect())?, 256, 1, seed))
        }),
        case(
            "attention/blocks/causal".into(),
            "three groups of queries, each with more keys",
            Effort::Quick,
            |seed| Ok(Problem::draw(mask(140, 140, |row| (0..=row).collect())?, 40, 1, seed)),
        ),
        case("attention/blocks/documents".into(), "groups that share no block", Effort::Quick, |seed| {
            let document = |row: u32| row / 70 * 70;
            Ok(Problem::draw(mask(140, 140, |row| (document(row)..=row).collect())?, 64, 1, seed))
        }),
        case("attention/blocks/no_keys".into(), "queries without keys among others", Effort::Quick, |seed| {
            let keys = |row: u32| if row % 3 == 1 { vec![] } else { (0..60).collect() };
            Ok(Problem::draw(mask(130, 64, keys)?, 32, 1, seed))
        }),
        case(
            "attention/blocks/growing".into(),
            "scores that grow from block to block",
            Effort::Quick,
            |seed| {
                let mut problem = Problem::draw(mask(64, 320, |_| (0..320).collect())?, 64, 1, seed);
                for key in 0..320 {
                    let factor = 1.0 + key as f32 / 32.0;
                    problem.key(key).iter_mut().for_each(|x| *x *= factor);
                }
                Ok(problem)
            },
        ),
        case(
            "attention/blocks/not_finite".into(),
            "what a query does not see is not finite",
            Effort::Quick,
            |seed| {
                // Keys 3 and 70 are seen by the even queries alone.
                let keys = |row: u32| {
                    (0..130).filter(|&key| row.is_multiple_of(2) || key != 3 && key != 70).collect()
                };
                let mut problem = Problem::draw(mask(68, 130, keys)?, 64, 1, seed);
                problem.key(3).fill(f32::NAN);
                problem.value(70)[5] = f32::INFINITY;
                Ok(problem)
            },
        ),
        case("attention/blocks/large".into(), "2048 tokens, 3 heads, a band of 256", Effort::Gpu, |seed| {
            Ok(Problem::draw(generate::band_random(2048, 256, 0.95, seed)?, 64, 3, seed))
        }),
        case(
            "attention/blocks/large_wide".into(),
            "1000 tokens of 128 elements, all keys",
            Effort::Gpu,
            |seed| Ok(Problem::draw(mask(1000, 1000, |_| (0..1000).collect())?, 128, 2, seed)),
        ),
    ]
}
