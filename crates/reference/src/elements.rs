//! All elements of a result against what each may be.
use crate::bound::{Legal, Verdict};
use crate::{ErrorReport, Mismatch, Value};

/// Checks `got`, of rows of `cols` elements, of which there must be `count`. `judge` gives its verdict on each; `tell` says what it may be, and of how
/// many terms it is.
///
/// # Errors
/// If `got` has the wrong length, or an element is wrong: the worst is told.
pub(crate) fn check<T: Value>(
    got: &[T],
    count: usize,
    cols: usize,
    judge: impl Fn(usize, T) -> Verdict,
    tell: impl Fn(usize) -> (Legal, u32),
) -> Result<ErrorReport, Mismatch> {
    if got.len() != count {
        return Err(Mismatch::Length { rows: count.checked_div(cols).unwrap_or(0), cols, got: got.len() });
    }
    let mut report = ErrorReport { checked: count, worst_over_bound: 0.0, worst_at: None };
    let (mut failures, mut worst) = (0, (0, 0.0));
    for (at, &element) in got.iter().enumerate() {
        match judge(at, element) {
            Verdict::Pass(ratio) if ratio > report.worst_over_bound => {
                (report.worst_over_bound, report.worst_at) = (ratio, Some((at / cols, at % cols)));
            }
            Verdict::Pass(_) => {}
            Verdict::Fail(ratio) => {
                failures += 1;
                worst = if ratio > worst.1 { (at, ratio) } else { worst };
            }
        }
    }
    if failures == 0 {
        return Ok(report);
    }
    let (at, ratio) = worst;
    let (legal, terms) = tell(at);
    Err(Mismatch::Elements {
        failures,
        checked: count,
        row: at / cols,
        column: at % cols,
        terms,
        dtype: T::NAME,
        got: got[at].to_f32(),
        expected: legal.value,
        bound: legal.bound(),
        ratio,
    })
}
