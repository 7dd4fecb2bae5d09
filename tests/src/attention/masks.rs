//! Masks as models have them.
use lacuna::matrix::generate;

use super::{Effort, Problem, case};
use crate::Case;
use lacuna_cases::pattern::of_rows;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("attention/masks/causal_band".into(), "the mask of SC 2020, small", Effort::Quick, |seed| {
            Ok(Problem::draw(generate::band_random(70, 24, 0.9, seed)?, 32, 1, seed))
        }),
        case("attention/masks/full".into(), "each query sees each key", Effort::Quick, |seed| {
            Ok(Problem::draw(generate::uniform(9, 70, 0.0, seed)?, 24, 1, seed))
        }),
        case("attention/masks/cross".into(), "more keys than queries", Effort::Quick, |seed| {
            Ok(Problem::draw(generate::uniform(7, 200, 0.8, seed)?, 12, 2, seed))
        }),
        case("attention/masks/few_keys".into(), "more queries than keys", Effort::Quick, |seed| {
            Ok(Problem::draw(generate::uniform(50, 9, 0.4, seed)?, 12, 1, seed))
        }),
        case("attention/masks/uneven".into(), "rows of very different length", Effort::Quick, |seed| {
            Ok(Problem::draw(generate::with_row_cov(20, 150, 20.0, 1.4, seed)?, 16, 1, seed))
        }),
        case("attention/masks/apart".into(), "neighbouring queries share no key", Effort::Quick, |seed| {
            let row = |row: u32| (0..37).map(|key| 4 * key + row % 4).collect();
            Ok(Problem::draw(of_rows(148, &(0..10).map(row).collect::<Vec<_>>())?, 16, 1, seed))
        }),
        case("attention/masks/large".into(), "1024 tokens, 3 heads, a band of 64", Effort::Gpu, |seed| {
            Ok(Problem::draw(generate::band_random(1024, 64, 0.95, seed)?, 64, 3, seed))
        }),
    ]
}
