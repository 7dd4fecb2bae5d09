//! K that is split among thread blocks.
use anyhow::{Result, ensure};
use half::{bf16, f16};
use lacuna::matrix::generate;
use lacuna::{CsrMatrix, Sddmm, sddmm};

use super::conform::conform_in_splits;
use super::problem::Problem;
use crate::{Case, Context};

/// Lines of 32 and of 64 elements, and a part of one.
const K: usize = 136;

/// Name, what it is, parts of K, and what is made of drawn values.
type Form = (&'static str, &'static str, usize, fn(&mut Problem));

const FORMS: [Form; 4] = [
    ("two", "two parts of K", 2, |_| ()),
    ("most", "a part for each line of a row", 64, |_| ()),
    ("infinite", "infinities in two parts, which cancel to NaN, and do not", 3, |problem| {
        problem.a[2 * K + 3] = f32::INFINITY;
        problem.a[2 * K + 130] = f32::NEG_INFINITY;
        problem.b[5 * K + 100] = f32::INFINITY;
    }),
    ("nan", "a number that is none in the last part", 3, |problem| problem.b[8 * K - 1] = f32::NAN),
];

pub(super) fn cases() -> Vec<Case> {
    let forms = FORMS.into_iter().map(|(name, about, splits, change)| {
        Case::new(format!("sddmm/splits/{name}"), about, move |cx| {
            let mut problem = Problem::draw(generate::uniform(20, 40, 0.7, cx.seed)?, K, cx.seed)?;
            change(&mut problem);
            let worst = conform_in_splits::<f32>(cx, &problem, splits)?;
            let worst = worst.max(conform_in_splits::<f16>(cx, &problem, splits)?);
            Ok(worst.max(conform_in_splits::<bf16>(cx, &problem, splits)?))
        })
    });
    let told = Case::new("sddmm/splits/told", "plans tell into how many parts K is split", told);
    forms.chain([told]).collect()
}

fn told(cx: &Context<'_>) -> Result<f64> {
    let problem = Problem::draw(generate::uniform(20, 40, 0.7, cx.seed)?, K, cx.seed)?;
    let c = CsrMatrix::new(cx.device, &problem.c)?;
    for (wanted, expected) in [(1, 1), (2, 2), (3, 3), (64, 5), (usize::MAX, 5)] {
        let got = Sddmm::plan_with(&c, K, sddmm::Options::default().splits(wanted))?.splits();
        ensure!(got == expected, "{wanted} splits: {got}, not {expected}");
    }
    Ok(0.0)
}
