//! Results of 16 bits: right if an `f32` sum within its bound rounds to them.

use half::{bf16, f16};
use lacuna_matrix::Csr;
use lacuna_matrix::generate::{random_values, uniform};
use lacuna_reference::{Mismatch, Value, spmm, spmm_rows};

fn problem<T: Value>(convert: impl Fn(f32) -> T) -> (Csr<T>, Vec<T>) {
    let pattern = uniform(30, 200, 0.5, 1).unwrap();
    let values = random_values(pattern.nnz(), 2).into_iter().map(&convert).collect();
    let b = random_values(200 * 6, 3).into_iter().map(&convert).collect();
    (Csr::with_values(pattern, values).unwrap(), b)
}

/// C with `f32` sums, rounded once.
fn multiply<T: Value>(a: &Csr<T>, b: &[T], n: usize, convert: impl Fn(f32) -> T) -> Vec<T> {
    let mut c = Vec::new();
    for row in 0..a.rows() {
        let (columns, values) = a.row(row);
        for j in 0..n {
            let products =
                columns.iter().zip(values).map(|(&k, v)| (v.to_f32(), b[k as usize * n + j].to_f32()));
            c.push(convert(products.fold(0.0, |sum, (x, y)| x.mul_add(y, sum))));
        }
    }
    c
}

/// Right results pass, their neighbours do not, nor do sums that were rounded on the way.
fn accepts_one_rounding_only<T: Value + std::fmt::Debug>(
    from_f32: impl Fn(f32) -> T + Copy,
    next: impl Fn(T) -> T,
) {
    let (a, b) = problem(from_f32);
    let reference = spmm(&a, &b, 6).unwrap();
    let right = multiply(&a, &b, 6, from_f32);
    let report = reference.check(&right).unwrap();
    assert!(report.worst_over_bound <= 1.0 && report.checked == 180, "{report:?}");
    for at in [0, 77, 179] {
        let mut wrong = right.clone();
        wrong[at] = next(wrong[at]);
        let got = reference.check(&wrong).unwrap_err();
        assert!(matches!(got, Mismatch::Elements { failures: 1, row, column, .. } if row * 6 + column == at));
        assert!(got.to_string().contains(&format!(", as {}, got ", T::NAME)), "{got}");
    }
    let mut rounded_often = Vec::new();
    for row in 0..a.rows() {
        let (columns, values) = a.row(row);
        for j in 0..6 {
            let products =
                columns.iter().zip(values).map(|(&k, v)| v.to_f32() * b[k as usize * 6 + j].to_f32());
            rounded_often.push(products.fold(from_f32(0.0), |sum, product| from_f32(sum.to_f32() + product)));
        }
    }
    assert!(reference.check(&rounded_often).is_err());
}

#[test]
fn halves_are_rounded_once() {
    accepts_one_rounding_only(f16::from_f32, |x: f16| f16::from_bits(x.to_bits() + 2));
}

#[test]
fn bfloat16_are_rounded_once() {
    accepts_one_rounding_only(bf16::from_f32, |x: bf16| bf16::from_bits(x.to_bits() + 2));
}

/// One row of A against one column of B.
fn judge<T: Value>(a: &[T], b: &[T], got: T) -> bool {
    let columns = (0..a.len() as u32).collect();
    let a = Csr::new(1, a.len(), vec![0, a.len() as u32], columns, a.to_vec()).unwrap();
    spmm(&a, b, 1).unwrap().check(&[got]).is_ok()
}

#[test]
fn a_sum_near_the_middle_may_go_either_way() {
    let half = f16::from_f32;
    assert!(judge(&[half(1.0)], &[half(2048.0)], half(2048.0)));
    assert!(!judge(&[half(1.0)], &[half(2048.0)], half(2050.0)));
    // 3 · 683 = 2049 lies between 2048 and 2050, and the bound of its sum reaches to both sides of it.
    let near = |got: f32| judge(&[half(3.0)], &[half(683.0)], half(got));
    assert!(near(2048.0) && near(2050.0) && !near(2046.0) && !near(2052.0));
    // Zero products have no error at all.
    assert!(
        judge(&[half(0.0)], &[half(683.0)], half(0.0))
            && !judge(&[half(0.0)], &[half(683.0)], f16::from_bits(1))
    );
}

#[test]
fn halves_overflow_where_the_sum_rounds_to_infinity() {
    let (half, infinity) = (f16::from_f32, f16::INFINITY);
    let most = f16::MAX;
    let one = half(1.0);
    assert!(judge(&[one], &[most], most) && !judge(&[one], &[most], infinity));
    // 65,504 + 15 stays, 65,504 + 17 does not, and 65,504 + 16 may do either.
    let with = |extra: f32, got| judge(&[one, one], &[most, half(extra)], got);
    assert!(with(15.0, most) && !with(15.0, infinity));
    assert!(with(17.0, infinity) && !with(17.0, most));
    assert!(with(16.0, infinity) && with(16.0, most));
    assert!(!with(17.0, f16::NAN) && !with(17.0, f16::NEG_INFINITY));
    // The sum in f32 does not overflow on the way.
    assert!(judge(&[one, one], &[most, f16::MIN], half(0.0)));
    assert!(!judge(&[one, one, one], &[most, most, f16::MIN], f16::NAN));
    // The largest f32 that a bfloat16 does not reach.
    let (most, one) = (bf16::MAX, bf16::from_f32(1.0));
    assert!(judge(&[one], &[most], most) && !judge(&[one], &[most], bf16::INFINITY));
    assert!(judge(&[one, one], &[most, most], bf16::INFINITY) && !judge(&[one, one], &[most, most], most));
}

#[test]
fn subnormal_halves_are_results() {
    let least = f16::from_bits(1);
    let small = f16::from_f32(2f32.powi(-12));
    // 2^-12 · 2^-12 is the smallest half; flushed to zero it is wrong.
    assert!(judge(&[small], &[small], least) && !judge(&[small], &[small], f16::from_bits(0)));
    // 2^-24 · 2^-12 rounds to zero.
    assert!(judge(&[least], &[small], f16::from_bits(0)) && !judge(&[least], &[small], least));
}

#[test]
fn what_is_not_finite_stays_where_it_is_met() {
    let half = f16::from_f32;
    let a = Csr::new(3, 2, vec![0, 1, 2, 2], vec![0, 1], vec![half(1.0), half(2.0)]).unwrap();
    let reference = spmm(&a, &[f16::NAN, f16::INFINITY], 1).unwrap();
    assert!(reference.check(&[f16::NAN, f16::INFINITY, half(0.0)]).is_ok());
    assert!(reference.check(&[f16::NAN, f16::MAX, half(0.0)]).is_err());
    assert!(reference.check(&[f16::NAN, f16::INFINITY, half(-0.0)]).is_err());
    let some = spmm_rows(&a, &[half(1.0), half(1.0)], 1, [1]).unwrap();
    assert!(some.check(&[f16::NAN, half(2.0), f16::NAN]).is_ok());
}
