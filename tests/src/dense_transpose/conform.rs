//! The check that nearly all cases share.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::DenseTranspose;
use lacuna::dense_transpose::{Algorithm, Options};
use lacuna::matrix::generate;
use lacuna_reference::dense_transpose;

use crate::expect::same_bits;
use crate::{Context, Number};

/// Matrices, and rows and columns of each.
pub type Shape = [usize; 3];

/// How matrices lie in a buffer.
#[derive(Clone, Copy, Debug)]
struct Placement {
    /// Elements before the first, which move it away from what buffers are aligned to.
    before: usize,
    /// Elements between rows.
    gap: usize,
    /// Elements between matrices; none for matrices side by side in rows.
    batch_gap: Option<usize>,
}

/// Whole buffers, without gaps.
const PLAIN: Placement = Placement { before: 0, gap: 0, batch_gap: Some(0) };

/// The input's and the result's: by pairs and by elements on either side, with gaps and without.
const PLACEMENTS: [[Placement; 2]; 8] = [
    [PLAIN, PLAIN],
    [Placement { before: 1, ..PLAIN }, PLAIN],
    [PLAIN, Placement { before: 1, ..PLAIN }],
    [Placement { before: 2, gap: 2, ..PLAIN }, Placement { gap: 4, batch_gap: Some(6), ..PLAIN }],
    [Placement { gap: 1, ..PLAIN }, Placement { gap: 2, ..PLAIN }],
    [Placement { gap: 2, ..PLAIN }, Placement { gap: 3, ..PLAIN }],
    [Placement { batch_gap: Some(1), ..PLAIN }, Placement { before: 3, gap: 1, batch_gap: Some(5) }],
    [Placement { batch_gap: None, ..PLAIN }, Placement { gap: 2, batch_gap: None, ..PLAIN }],
];

/// Checks transposes against the oracle, bit for bit, in all types and placements: what is beside the results must stay, and the
/// input too.
///
/// # Errors
/// What is wrong, with the type and the placement.
pub fn conform(cx: &Context<'_>, shape: Shape) -> Result<f64> {
    of_type(cx, shape, f32::from_bits)?;
    of_type(cx, shape, |bits| f16::from_bits((bits >> 16) as u16))?;
    of_type(cx, shape, |bits| bf16::from_bits((bits >> 16) as u16))?;
    Ok(0.0)
}

/// A type, of numbers with drawn bits.
fn of_type<T: Number>(cx: &Context<'_>, shape: Shape, of_bits: impl Fn(u32) -> T) -> Result<()> {
    let drawn = generate::random_values(shape.iter().product(), cx.seed);
    // An odd factor brings what is drawn into all bits.
    let values: Vec<T> =
        drawn.iter().map(|value| of_bits(value.to_bits().wrapping_mul(0x9e37_79b1))).collect();
    let [_, rows, columns] = shape;
    let [legal, ..] = DenseTranspose::<T>::plan(cx.device, rows, columns)?.legal();
    let asked = legal.iter().map(|choice| choice.algorithm);
    for algorithm in [Algorithm::Auto].into_iter().chain(asked) {
        for placements in PLACEMENTS {
            let at = || format!("{}, {algorithm:?}, {placements:?}", T::TYPE_NAME);
            check(cx, shape, &values, algorithm, placements).with_context(at)?;
        }
    }
    Ok(())
}

fn check<T: Number>(
    cx: &Context<'_>,
    shape @ [batch, rows, columns]: Shape,
    values: &[T],
    algorithm: Algorithm,
    [input, out]: [Placement; 2],
) -> Result<()> {
    let out_shape = [batch, columns, rows];
    let options = Options::default()
        .algorithm(algorithm)
        .batch(batch)
        .input_stride(input.stride(shape))
        .input_batch_stride(input.batch_stride(shape))
        .out_stride(out.stride(out_shape))
        .out_batch_stride(out.batch_stride(out_shape));
    let plan = DenseTranspose::<T>::plan_with(cx.device, rows, columns, options)?;

    // Buffers end with the last element: what is read or written past it is found on the simulator.
    let mut host = vec![T::CANARY; input.before + plan.input_len()];
    for (place, &value) in input.places(shape).zip(values) {
        host[place] = value;
    }
    let mut blank = vec![T::CANARY; out.before + plan.output_len()];
    for place in out.places(out_shape) {
        blank[place] = T::POISON;
    }
    let (from, mut to) = (cx.device.upload(&host)?, cx.device.upload(&blank)?);
    plan.run(cx.stream, from.slice(input.before..)?, to.slice_mut(out.before..)?)?;

    let mut got = to.download(cx.stream)?;
    let mut result = Vec::with_capacity(values.len());
    for place in out.places(out_shape) {
        result.push(std::mem::replace(&mut got[place], T::CANARY));
    }
    dense_transpose(values, batch, [rows, columns])?.check(&result)?;
    ensure!(got.iter().all(|beside| beside.bits() == T::CANARY.bits()), "written beside the results");
    same_bits("the input before and after", &host, &from.download(cx.stream)?, 0)
}

impl Placement {
    /// Elements from row to row. Side by side, a row's stride has room for all matrices.
    fn stride(self, [batch, _, columns]: Shape) -> usize {
        let matrices = if self.batch_gap.is_none() { batch.max(1) } else { 1 };
        columns * matrices + self.gap
    }

    /// Elements from matrix to matrix.
    fn batch_stride(self, shape @ [_, rows, columns]: Shape) -> usize {
        self.batch_gap.map_or(columns, |gap| rows * self.stride(shape) + gap)
    }

    /// Where the elements are, matrix by matrix and row by row.
    fn places(self, shape @ [batch, rows, columns]: Shape) -> impl Iterator<Item = usize> {
        let (stride, batch_stride) = (self.stride(shape), self.batch_stride(shape));
        (0..batch * rows * columns).map(move |at| {
            let (matrix, row, column) = (at / (rows * columns), at / columns % rows, at % columns);
            self.before + matrix * batch_stride + row * stride + column
        })
    }
}
