//! Which of several ways is the fastest: apart from what is timed, so that every operation can use it, and so that it
//! can be tested without a GPU.

/// Times each candidate by `time`, in microseconds, and gives those with a usable time, fastest first: the candidate's
/// index and its time. Times that are not finite or not positive are left out; equal times keep the candidates' order.
///
/// # Errors
/// The first one of `time`.
pub(super) fn rank<C, E>(
    candidates: &[C],
    mut time: impl FnMut(&C) -> Result<f64, E>,
) -> Result<Vec<(usize, f64)>, E> {
    let mut ranking = Vec::with_capacity(candidates.len());
    for (index, candidate) in candidates.iter().enumerate() {
        let time = time(candidate)?;
        if time.is_finite() && time > 0.0 {
            ranking.push((index, time));
        }
    }
    ranking.sort_by(|a, b| a.1.total_cmp(&b.1));
    Ok(ranking)
}

/// The middle of the samples, the lower one of two; none of none.
pub(super) fn median(samples: &mut [f64]) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn the_fastest_comes_first_and_ties_keep_their_order() {
        let times = [3.0, 1.0, 2.0, 1.0];
        let ranking = rank::<_, Infallible>(&times, |&time| Ok(time)).unwrap();
        assert_eq!(ranking, [(1, 1.0), (3, 1.0), (2, 2.0), (0, 3.0)]);
    }

    #[test]
    fn times_that_are_none_are_left_out() {
        let times = [f64::NAN, 0.0, -1.0, f64::INFINITY, 5.0];
        assert_eq!(rank::<_, Infallible>(&times, |&time| Ok(time)).unwrap(), [(4, 5.0)]);
        assert_eq!(rank::<f64, Infallible>(&[], |_| unreachable!()).unwrap(), []);
    }

    #[test]
    fn an_error_ends_the_ranking() {
        let mut timed = 0;
        let result = rank(&[1, 2, 3], |&candidate| {
            timed += 1;
            if candidate == 2 { Err("lost") } else { Ok(1.0) }
        });
        assert_eq!((result, timed), (Err("lost"), 2));
    }

    #[test]
    fn medians() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [2.0]), Some(2.0));
        assert_eq!(median(&mut [9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 3.0, 2.0]), Some(2.0));
    }
}
