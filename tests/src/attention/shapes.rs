//! Dimensions, lengths of rows, and heads.
use lacuna::matrix::generate;

use super::{Effort, Problem, case};
use crate::Case;
use lacuna_cases::pattern::{of_rows, spread};

const DIMENSIONS: [usize; 12] = [1, 3, 8, 16, 31, 32, 33, 40, 64, 80, 128, 256];

pub(super) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = DIMENSIONS
        .into_iter()
        .map(|dim| {
            let name = format!("attention/dimension/{dim}");
            case(name, "rows of 0 to 40 keys", Effort::Quick, move |seed| {
                let rows: Vec<Vec<u32>> = [0, 1, 40, 7].iter().map(|&keys| spread(keys, 43)).collect();
                Ok(Problem::draw(of_rows(43, &rows)?, dim, 1, seed))
            })
        })
        .collect();
    cases.push(case(
        "attention/dimension/300".into(),
        "more than fused kernels take",
        Effort::Quick,
        |seed| Ok(Problem::draw(of_rows(9, &[spread(5, 9), vec![], spread(9, 9)])?, 300, 1, seed)),
    ));
    cases.push(case(
        "attention/shapes/lengths".into(),
        "rows of 0, 1, 31, 32, 33, 63, 64, 65 and 100 keys",
        Effort::Quick,
        |seed| {
            let rows: Vec<Vec<u32>> =
                [0, 1, 31, 32, 33, 63, 64, 65, 100].iter().map(|&keys| spread(keys, 101)).collect();
            Ok(Problem::draw(of_rows(101, &rows)?, 16, 1, seed))
        },
    ));
    cases.push(case("attention/shapes/heads".into(), "3 heads", Effort::Quick, |seed| {
        Ok(Problem::draw(generate::uniform(6, 40, 0.5, seed)?, 20, 3, seed))
    }));
    cases.push(case("attention/shapes/no_keys".into(), "no element in the mask", Effort::Quick, |seed| {
        Ok(Problem::draw(of_rows(5, &[vec![], vec![], vec![]])?, 24, 2, seed))
    }));
    cases.push(case("attention/shapes/one".into(), "one query, one key", Effort::Quick, |seed| {
        Ok(Problem::draw(of_rows(1, &[vec![0]])?, 5, 1, seed))
    }));
    cases.push(case("attention/shapes/nothing".into(), "no query", Effort::Quick, |seed| {
        Ok(Problem::draw(of_rows(4, &[])?, 5, 2, seed))
    }));
    cases
}
