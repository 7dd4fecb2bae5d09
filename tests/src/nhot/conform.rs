//! The check that nearly all cases share.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::matrix::generate;
use lacuna::{Bags, Buffer, NHot, ValueType, nhot};
use lacuna_reference::{nhot as reference_of, nhot_table_gradient, nhot_weight_gradient};

use super::Problem;
use crate::expect::same_bits;
use crate::sddmm::transposed;
use crate::{Context, Number};
use lacuna_cases::number::rounded;

/// Checks a lookup, by the library's choice and by every legal kernel, and its gradients against the oracle; gives the largest
/// error over its bound. In `f32`, and in `f16` and `bf16` with indices of 32 and 64 bits.
///
/// # Errors
/// What is wrong, with the type and the algorithm.
pub fn conform(cx: &Context<'_>, problem: &Problem) -> Result<f64> {
    let table = generate::random_values(problem.table_rows * problem.columns, cx.seed ^ 1);
    let output_gradient = generate::random_values(problem.bags() * problem.columns, cx.seed ^ 2);
    conform_on(cx, problem, &table, &output_gradient)
}

/// The same with this table, and this gradient of the result, both without gaps.
pub(super) fn conform_on(
    cx: &Context<'_>,
    problem: &Problem,
    table: &[f32],
    output_gradient: &[f32],
) -> Result<f64> {
    let worst = conform_as::<f32, u32>(cx, problem, table, output_gradient)?;
    let worst = worst.max(conform_as::<f32, u64>(cx, problem, table, output_gradient)?);
    let worst = worst.max(conform_as::<f16, u32>(cx, problem, table, output_gradient)?);
    Ok(worst.max(conform_as::<bf16, u64>(cx, problem, table, output_gradient)?))
}

/// The types that [`conform`] leaves out: it would take twice as long.
pub(super) fn conform_other_types(cx: &Context<'_>, problem: &Problem) -> Result<f64> {
    let table = generate::random_values(problem.table_rows * problem.columns, cx.seed ^ 1);
    let output_gradient = generate::random_values(problem.bags() * problem.columns, cx.seed ^ 2);
    let worst = conform_as::<bf16, u32>(cx, problem, &table, &output_gradient)?;
    Ok(worst.max(conform_as::<f16, u64>(cx, problem, &table, &output_gradient)?))
}

fn conform_as<T: Number, I: nhot::BagIndex>(
    cx: &Context<'_>,
    problem: &Problem,
    table: &[f32],
    output_gradient: &[f32],
) -> Result<f64> {
    let check = || -> Result<f64> {
        let subject = Subject::<T, I>::new(cx, problem, rounded(table))?;
        let plan = NHot::<T, I>::plan_with(&subject.bags, problem.columns, problem.options)?;
        let mut worst = 0.0_f64;
        // Where buffers are aligned, and where they start some elements later. Lists that are alike are tried once.
        let mut before = 0;
        for (choices, skipped) in plan.legal().into_iter().zip([0, 4, 2, 1]) {
            if std::mem::replace(&mut before, choices.len()) == choices.len() {
                continue;
            }
            let algorithms = choices.iter().map(|choice| choice.algorithm);
            for algorithm in [nhot::Algorithm::Auto].into_iter().chain(algorithms) {
                let at = || format!("{algorithm:?}, {skipped} elements into the buffers");
                worst = worst.max(subject.forward(algorithm, skipped).with_context(at)?);
            }
        }
        let output_gradient = rounded(output_gradient);
        for skipped in [0, 1] {
            let at = || format!("gradients, {skipped} elements into the buffers");
            worst = worst.max(subject.backward(&plan, &output_gradient, skipped).with_context(at)?);
        }
        Ok(worst)
    };
    check().with_context(|| format!("{} and {}", T::TYPE, std::any::type_name::<I>()))
}

/// A problem on the device.
struct Subject<'c, T: Number, I: nhot::BagIndex> {
    cx: &'c Context<'c>,
    problem: &'c Problem,
    bags: Bags<I>,
    /// Without gaps.
    table: Vec<T>,
}

impl<'c, T: Number, I: nhot::BagIndex> Subject<'c, T, I> {
    fn new(cx: &'c Context<'c>, problem: &'c Problem, table: Vec<T>) -> Result<Self> {
        // Of one type they are of arrays on the device, as another program has them.
        let mut bags = if T::TYPE == ValueType::F16 {
            let arrays = [&problem.offsets, &problem.indices].map(|numbers| {
                let wide: Vec<i64> = numbers.iter().map(|&number| number as i64).collect();
                cx.device.upload(&wide)
            });
            let [offsets, indices] = arrays;
            Bags::from_indices(cx.stream, problem.table_rows, offsets?.as_slice(), indices?.as_slice())?
        } else {
            let indices: Vec<I> = problem.indices.iter().map(|&index| I::from_row(index)).collect();
            Bags::new(cx.device, problem.table_rows, &problem.offsets, &indices)?
        };
        if let Some(weights) = &problem.weights {
            bags = bags.with_weights(weights)?;
        }
        Ok(Self { cx, problem, bags, table })
    }

    /// Rows without gaps as they lie with a stride, after so many elements; what is between is canaries.
    fn spread(&self, rows: &[T], width: usize, stride: Option<usize>, skipped: usize) -> Result<Buffer<T>> {
        let stride = stride.unwrap_or(width);
        let count = rows.len().checked_div(width).unwrap_or(0);
        let mut spread = vec![T::CANARY; skipped + count * stride];
        for (row, values) in rows.chunks(width.max(1)).enumerate() {
            spread[skipped + row * stride..][..values.len()].copy_from_slice(values);
        }
        Ok(self.cx.device.upload(&spread)?)
    }

    /// The rows of a buffer that was made by [`spread`](Self::spread); what is between must be as it was.
    fn gathered(
        &self,
        buffer: &Buffer<T>,
        width: usize,
        stride: Option<usize>,
        skipped: usize,
    ) -> Result<Vec<T>> {
        let all = buffer.download(self.cx.stream)?;
        let mut rows = Vec::new();
        for row in all[skipped..].chunks(stride.unwrap_or(width).max(1)) {
            rows.extend_from_slice(&row[..width]);
            ensure!(row[width..].iter().all(|gap| gap.bits() == T::CANARY.bits()), "a gap was written");
        }
        ensure!(all[..skipped].iter().all(|gap| gap.bits() == T::CANARY.bits()), "the start was written");
        Ok(rows)
    }

    fn forward(&self, algorithm: nhot::Algorithm, skipped: usize) -> Result<f64> {
        let Problem { columns, options, .. } = *self.problem;
        let bags = self.problem.bags();
        let plan = NHot::<T, I>::plan_with(&self.bags, columns, options.algorithm(algorithm))?;
        let table = self.spread(&self.table, columns, options.table_stride, skipped)?;
        let (rows, width) = if self.problem.is_transposed() { (columns, bags) } else { (bags, columns) };
        let mut out = self.spread(&vec![T::POISON; rows * width], width, options.out_stride, skipped)?;
        let mut once = || -> Result<Vec<T>> {
            let out_slice = out.slice_mut(skipped..)?;
            plan.run(self.cx.stream, &self.bags, table.slice(skipped..)?, out_slice)?;
            self.gathered(&out, width, options.out_stride, skipped)
        };
        let got = once()?;
        if algorithm == nhot::Algorithm::Auto {
            same_bits("once and again", &got, &once()?, width)?;
        }
        let got = if self.problem.is_transposed() { transposed(&got, bags) } else { got };
        let reference = reference_of(&self.problem.reference(), &self.table, columns)?;
        Ok(reference.check(&got)?.worst_over_bound)
    }

    fn backward(&self, plan: &NHot<T, I>, output_gradient: &[T], skipped: usize) -> Result<f64> {
        let Problem { columns, options, table_rows, .. } = *self.problem;
        let (cx, bags) = (self.cx, self.problem.reference());
        let gradient_stride = if self.problem.is_transposed() { None } else { options.out_stride };
        let on_device = self.spread(output_gradient, columns, gradient_stride, skipped)?;
        let on_device = on_device.slice(skipped..)?;

        let poison = vec![T::POISON; table_rows * columns];
        let mut gradient = self.spread(&poison, columns, options.table_stride, skipped)?;
        plan.backward_table(cx.stream, &self.bags, on_device, gradient.slice_mut(skipped..)?)?;
        let got = self.gathered(&gradient, columns, options.table_stride, skipped)?;
        let reference = nhot_table_gradient(&bags, output_gradient, columns, table_rows)?;
        let worst = reference.check(&got).context("the table's gradient")?.worst_over_bound;

        let named = plan.named_rows()?.download(cx.stream)?;
        let mut gradient = cx.device.upload(&vec![T::POISON; named.len() * columns])?;
        plan.backward_named(cx.stream, &self.bags, on_device, gradient.as_slice_mut())?;
        let of_named = gradient.download(cx.stream)?;
        let (mut is_named, mut whole) = (vec![false; table_rows], vec![T::default(); got.len()]);
        for (i, row) in named.into_iter().map(nhot::BagIndex::to_row).enumerate() {
            is_named[row] = true;
            whole[row * columns..][..columns].copy_from_slice(&of_named[i * columns..][..columns]);
        }
        reference.check(&whole).context("the gradient of named rows")?;
        for (at, &row) in self.problem.indices.iter().enumerate() {
            ensure!(is_named[row] != (Some(row) == options.padding_index), "index {at} is {row}");
        }

        let table = self.spread(&self.table, columns, options.table_stride, skipped)?;
        let mut gradient = cx.device.upload(&vec![f32::POISON; self.problem.indices.len()])?;
        let table = table.slice(skipped..)?;
        plan.backward_weights(cx.stream, &self.bags, on_device, table, gradient.as_slice_mut())?;
        let reference = nhot_weight_gradient(&bags, output_gradient, &self.table, columns)?;
        let checked = reference.check(&gradient.download(cx.stream)?).context("the weights' gradient")?;
        Ok(worst.max(checked.worst_over_bound))
    }
}
