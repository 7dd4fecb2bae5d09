//! What tuning is in every operation: kernels by their names, of which some are legal, and operands to time them on.
use super::format::Measured;
use crate::{Buffer, Device, Result, SliceMut, Value};

/// Kernels whose modelled cost is more than this many times the lowest are not measured. The model's own choice is
/// seldom a fifth slower than the best, and there are kernels that would take a hundred times as long.
const WORTH_MEASURING: f64 = 4.0;
/// Elements of an operand that are drawn; more repeat them.
const DRAWN: usize = 1 << 20;

/// Those that may turn out to be the fastest, of kernels in the order of their costs.
pub(super) fn worth_measuring<C>(candidates: &[C], cost: impl Fn(&C) -> f64) -> impl Iterator<Item = &C> {
    let most = candidates.first().map_or(0.0, |choice| cost(choice) * WORTH_MEASURING);
    candidates.iter().take_while(move |choice| cost(choice) <= most)
}

/// Of a ranking, fastest first, those that are the best for an alignment of the operands, by the kernels that are legal for
/// each.
pub(super) fn best_of_alignments(ranking: &[Measured], legal: &[Vec<&str>]) -> Vec<Measured> {
    let is_legal = |kernel: &Measured, legal: &[&str]| legal.contains(&kernel.entry.as_str());
    let mut best: Vec<usize> =
        legal.iter().filter_map(|legal| ranking.iter().position(|kernel| is_legal(kernel, legal))).collect();
    best.sort_unstable();
    best.dedup();
    best.into_iter().map(|index| ranking[index].clone()).collect()
}

/// An operand to measure with, as [`draw_into`] fills it.
pub(crate) fn drawn<T: Value>(device: &Device, len: usize) -> Result<Buffer<T>> {
    let mut operand = device.uninitialized(len)?;
    draw_into(operand.as_slice_mut())?;
    Ok(operand)
}

/// Fills an operand with values of both signs and all sizes below 1, since multiplying zeros takes less power and so may take
/// less time.
pub(crate) fn draw_into<T: Value>(mut operand: SliceMut<'_, T>) -> Result<()> {
    let len = operand.len();
    let mut state = 1_u32;
    let mut draw = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        T::from_f32((state >> 8) as f32 / (1 << 23) as f32 - 1.0)
    };
    let drawn: Vec<T> = (0..DRAWN.min(len)).map(|_| draw()).collect();
    for start in (0..len).step_by(DRAWN) {
        let end = len.min(start + DRAWN);
        operand.part(start..end)?.upload(&drawn[..end - start])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_cost_too_much_are_left_out() {
        let costs = [2.0, 3.0, 8.0, 8.5, 2.0];
        assert_eq!(worth_measuring(&costs, |&cost| cost).count(), 3);
        assert_eq!(worth_measuring(&[], |&cost: &f64| cost).count(), 0);
    }

    #[test]
    fn only_kernels_that_are_the_best_for_an_alignment_are_kept() {
        let ranking = [("a2", 1.0), ("a4", 2.0), ("b2", 3.0), ("a1", 4.0), ("b4", 5.0)]
            .map(|(name, us)| Measured::new(name, us));
        let narrow = vec!["a1", "b1"];
        let some = [narrow.clone(), vec!["a2", "b2"]].concat();
        let legal = [[some.clone(), vec!["a4", "b4"]].concat(), some, narrow];
        assert_eq!(best_of_alignments(&ranking, &legal), [ranking[0].clone(), ranking[3].clone()]);
        // No kernel was measured that narrow operands may use: they keep the model's choice.
        assert_eq!(best_of_alignments(&ranking[..3], &legal), [ranking[0].clone()]);
        assert_eq!(best_of_alignments(&[], &legal), []);
    }

    #[test]
    fn operands_repeat_what_was_drawn() {
        let device = Device::simulator();
        let stream = device.stream().unwrap();
        let operand = drawn::<f32>(&device, DRAWN + 200).unwrap().download(&stream).unwrap();
        assert_eq!(operand[..200], operand[DRAWN..]);
        assert!(operand.iter().all(|value| value.abs() <= 1.0));
        assert!(operand.iter().any(|&value| value < -0.5) && operand.iter().any(|&value| value > 0.5));
        assert!(drawn::<f32>(&device, 0).unwrap().is_empty());
    }
}
