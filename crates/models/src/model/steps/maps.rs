//! Maps whose elements are moved, or interpolated: each element of the result is a sum of few of the input's with fixed factors, and so the layer
//! is a product with a sparse matrix. An element that is moved has the factor 1, and comes out as it was (−0 as 0).
use lacuna::conv::MapLayout;
use lacuna::matrix::Csr;
use lacuna::{CsrMatrix, Precision, Result, SliceMut, Spmm, Stream, Value, spmm};

use super::values::matrix_bytes;
use super::{About, Inputs, Planning, Step};
use crate::network::{DepthToSpace, Layer, Resize, Shape};

/// A product of one matrix with each of a batch of dense ones, which lie side by side.
#[derive(Debug)]
struct Product<T: Value> {
    plan: Spmm<T>,
    matrix: CsrMatrix<T>,
}

/// How a matrix is multiplied: with so many dense ones, of so many columns.
struct Dense {
    batch: usize,
    columns: usize,
}

impl<T: Value> Product<T> {
    /// A product with a matrix of `rows` rows and `inner` columns; `elements` gives those of a row.
    fn plan(
        planning: &Planning<'_, T>,
        [rows, inner]: [usize; 2],
        dense: &Dense,
        elements: impl Fn(usize) -> Vec<(usize, f32)>,
    ) -> Result<Box<dyn Step<T>>> {
        let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in 0..rows {
            // Columns ascend, as matrices have them.
            for (column, value) in elements(row) {
                columns.push(column as u32);
                values.push(T::from_f32(value));
            }
            offsets.push(columns.len() as u32);
        }
        let matrix = CsrMatrix::new(planning.device, &Csr::new(rows, inner, offsets, columns, values)?)?;
        let options = spmm::Options::default().precision(Precision::Fma).batch(dense.batch);
        let plan = Spmm::plan_with(&matrix, dense.columns, options)?;
        Ok(Box::new(Self { plan, matrix }))
    }
}

pub(super) fn depth_to_space<T: Value>(
    planning: &Planning<'_, T>,
    layer: &Layer,
    of: &DepthToSpace,
) -> Result<Box<dyn Step<T>>> {
    let input = planning.network.shape(layer.inputs[0]);
    let Shape { images: batch, channels, size: [rows, columns] } = planning.network.shape(layer.output);
    let squares = of.block * of.block;
    // Of an output pixel the pixel that it comes from, and its number in the square.
    let from = |row: usize, column: usize| {
        let pixel = row / of.block * input.size[1] + column / of.block;
        (pixel, row % of.block * of.block + column % of.block)
    };
    if planning.options.layout == MapLayout::Nhwc {
        // The channels of a pixel are moved together.
        let len = rows * columns;
        return Product::plan(planning, [len, len], &Dense { batch, columns: channels }, |at| {
            let (pixel, of_square) = from(at / columns, at % columns);
            vec![(pixel * squares + of_square, 1.0)]
        });
    }
    let len = input.image_len();
    Product::plan(planning, [len, len], &Dense { batch, columns: 1 }, |at| {
        let (channel, row, column) = (at / (rows * columns), at / columns % rows, at % columns);
        let (pixel, of_square) = from(row, column);
        vec![((of_square * channels + channel) * input.pixels() + pixel, 1.0)]
    })
}

pub(super) fn resize<T: Value>(
    planning: &Planning<'_, T>,
    layer: &Layer,
    resize: &Resize,
) -> Result<Box<dyn Step<T>>> {
    let input = planning.network.shape(layer.inputs[0]);
    let [height, width] = input.size;
    let [rows, columns] = resize.size;
    // One matrix for all maps.
    let dense = match planning.options.layout {
        MapLayout::Nhwc => Dense { batch: input.images, columns: input.channels },
        _ => Dense { batch: input.images * input.channels, columns: 1 },
    };
    let neighbours = |d: usize, pixels: usize, at: usize| {
        resize.neighbours(d, pixels, at).into_iter().filter(|&(_, factor)| factor != 0.0)
    };
    Product::plan(planning, [rows * columns, height * width], &dense, |at| {
        let of_row = neighbours(0, height, at / columns);
        let of_columns = |(y, a)| {
            let factor = move |(x, b): (usize, f64)| (y * width + x, (a * b) as f32);
            neighbours(1, width, at % columns).map(factor)
        };
        of_row.flat_map(of_columns).collect()
    })
}

impl<T: Value> Step<T> for Product<T> {
    fn run(&self, stream: &Stream, inputs: &Inputs<'_, T>, out: SliceMut<'_, T>) -> Result<()> {
        self.plan.run(stream, &self.matrix, inputs.at(0)?, out)
    }

    fn about(&self) -> About {
        About { weight_bytes: matrix_bytes(&self.matrix), ..About::kernel(self.plan.choice().entry.name) }
    }
}
