//! Values that are not finite, huge, or all alike.
use anyhow::{Result, ensure};
use lacuna::matrix::Csr;
use lacuna::{CsrMatrix, SparseSoftmax};

use super::{conform, with_lengths};
use crate::{Case, Context};

/// Name, what it is, and what is done to the values: matrix, and where its rows start and end.
type Values = (&'static str, &'static str, fn(&mut [f32], &[usize]));

const CASES: [Values; 9] = [
    ("equal", "all values of a row are the same", |values, _| values.fill(-3.25)),
    ("huge", "±1e30: one value is 1, the others 0", |values, _| values.iter_mut().for_each(|x| *x *= 1e30)),
    ("largest", "values near ±the largest f32: differences overflow", |values, _| {
        values.iter_mut().for_each(|x| *x = f32::MAX.copysign(*x));
    }),
    ("underflow", "differences about 87 to 104, whose exponentials are subnormal", |values, ends| {
        let middle = values.len() / 2;
        values.iter_mut().enumerate().for_each(|(i, x)| *x = -700.0 - (i % 150) as f32);
        ends.iter().filter(|&&end| end > 0).for_each(|&end| values[end - 1] = 0.0);
        values[middle] = 1.0;
    }),
    ("subnormal", "values that are hardly more than 0", |values, _| {
        values.iter_mut().for_each(|x| *x *= 1e-42)
    }),
    ("negative_infinity", "-∞ among others", |values, _| {
        values.iter_mut().step_by(3).for_each(|x| *x = f32::NEG_INFINITY);
    }),
    ("all_negative_infinity", "rows of -∞ alone are NaN", |values, ends| {
        values[ends[2]..ends[3]].fill(f32::NEG_INFINITY);
        values[ends[7]..ends[8]].fill(f32::NEG_INFINITY);
    }),
    ("infinity", "+∞ makes its row NaN", |values, ends| values[ends[6] + 1] = f32::INFINITY),
    ("nan", "NaN makes its row NaN", |values, ends| {
        values[ends[3]] = f32::NAN;
        values[ends[8] - 1] = f32::NAN;
    }),
];

/// Rows for each kind of lanes, and for more than their registers hold.
const LENGTHS: [u32; 10] = [7, 1, 9, 33, 2, 120, 300, 13, 1100, 5];

pub(super) fn cases() -> Vec<Case> {
    let values = CASES.into_iter().map(|(name, about, change)| {
        Case::new(format!("softmax/values/{name}"), about, move |cx| {
            let mut x = with_lengths(&LENGTHS, cx.seed)?;
            let ends: Vec<usize> = x.pattern().row_offsets().iter().map(|&end| end as usize).collect();
            change(x.values_mut(), &ends);
            conform(cx, &x)
        })
    });
    let others = [
        Case::new("softmax/values/nan_stays", "NaN and infinities reach their own rows alone", nan_stays),
        Case::new("softmax/values/gradients", "gradients that are not finite", gradients),
    ];
    values.chain(others).collect()
}

/// Every second row is spoilt: the others have the bits that they have without.
fn nan_stays(cx: &Context<'_>) -> Result<f64> {
    let clean = with_lengths(&LENGTHS, cx.seed)?;
    let mut spoilt = clean.clone();
    for row in (0..clean.rows()).step_by(2) {
        let range = clean.pattern().row_range(row);
        spoilt.values_mut()[range.end - 1] = [f32::NAN, f32::INFINITY][row / 2 % 2];
    }
    let softmax = |host: &Csr<f32>| -> Result<Vec<f32>> {
        let mut x = CsrMatrix::new(cx.device, host)?;
        SparseSoftmax::plan(&x)?.run_in_place(cx.stream, &mut x)?;
        Ok(x.values()?.download(cx.stream)?)
    };
    let (clean_y, spoilt_y) = (softmax(&clean)?, softmax(&spoilt)?);
    for row in 0..clean.rows() {
        let range = clean.pattern().row_range(row);
        let (clean, spoilt) = (&clean_y[range.clone()], &spoilt_y[range]);
        if row % 2 == 0 {
            ensure!(spoilt.iter().all(|y| y.is_nan()), "row {row} with NaN or infinity has a number");
        } else {
            crate::expect::same_bits("a row beside NaN", clean, spoilt, 0)?;
        }
    }
    Ok(0.0)
}

/// NaN, infinities and huge numbers in dy, whose products overflow.
fn gradients(cx: &Context<'_>) -> Result<f64> {
    let mut x = with_lengths(&LENGTHS, cx.seed)?;
    x.values_mut().iter_mut().step_by(5).for_each(|x| *x = f32::NEG_INFINITY);
    let mut y = CsrMatrix::new(cx.device, &x)?;
    let plan = SparseSoftmax::plan(&y)?;
    plan.run_in_place(cx.stream, &mut y)?;
    let host = Csr::with_values(x.pattern().clone(), y.values()?.download(cx.stream)?)?;
    let mut worst = 0.0_f64;
    for strange in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 1e-44] {
        let mut dy: Vec<f32> = x.values().iter().map(|x| x.max(-8.0)).collect();
        dy.iter_mut().skip(2).step_by(41).for_each(|dy| *dy = strange);
        let on_device = y.with_values(&dy)?;
        let mut dx = y.with_values(&vec![f32::NAN; dy.len()])?;
        plan.backward(cx.stream, &y, &on_device, &mut dx)?;
        let reference = lacuna_reference::softmax_gradient(&host, &dy, 1.0)?;
        worst = worst.max(reference.check(&dx.values()?.download(cx.stream)?)?.worst_over_bound);
    }
    Ok(worst)
}
