//! SpMM's kernels with and without the ideas of the paper.
use lacuna::matrix::Csr;
use lacuna::spmm::{Algorithm, Idea};
use lacuna::{CsrMatrix, Device, Precision, RowOrder, Spmm, spmm};

use super::{Ablation, Ablations, Variant, variant};
use crate::spmm::{Prepare, measure_variants};

/// The suite of the records of complete kernels.
const COMPLETE: &str = "ablation";

pub(super) static SPMM: Ablations = Ablations {
    suite: "dlmc",
    complete: &[COMPLETE],
    ideas: &[
        Ablation {
            name: "load balancing",
            published: [96.1, 88.9, 91.7, 78.5],
            ours: true,
            complete: COMPLETE,
            variant: "ablation: no load balancing",
        },
        Ablation {
            name: "vector instructions",
            published: [100.1, 80.9, 87.9, 64.8],
            ours: true,
            complete: COMPLETE,
            variant: "ablation: no vector instructions",
        },
        Ablation {
            name: "residue unrolling",
            published: [92.0, 94.1, 87.8, 92.6],
            ours: true,
            complete: COMPLETE,
            variant: "ablation: no residue unrolling",
        },
        Ablation {
            name: "index pre-scaling",
            published: [100.6, 100.6, 98.2, 100.3],
            ours: false,
            complete: COMPLETE,
            variant: "ablation: with index pre-scaling",
        },
    ],
    note: "* The library's kernels do without index pre-scaling: theirs is the speed without, and the other that of a variant with it.",
    measure: |session, task| measure_variants(session, task, &VARIANTS),
};

/// How the product is planned in each suite of records: complete, then as the ideas stand above.
const VARIANTS: [Variant<Prepare>; 5] = [
    variant(COMPLETE, |device, a, n| plan(device, a, n, RowOrder::LongestFirst, Shape::complete)),
    variant("ablation: no load balancing", |device, a, n| {
        plan(device, a, n, RowOrder::Unsorted, Shape::complete)
    }),
    variant("ablation: no vector instructions", |device, a, n| {
        plan(device, a, n, RowOrder::LongestFirst, Shape::scalar)
    }),
    variant("ablation: no residue unrolling", |device, a, n| {
        plan(device, a, n, RowOrder::LongestFirst, |shape| shape.differing_in(Idea::ResidueHandling))
    }),
    variant("ablation: with index pre-scaling", |device, a, n| {
        plan(device, a, n, RowOrder::LongestFirst, |shape| shape.differing_in(Idea::IndexPreScaling))
    }),
];

/// Lanes and subwarps of a kernel that each variant has.
#[derive(Clone, Copy)]
struct Shape {
    lanes: u32,
    split: u32,
}

/// One for wide problems, and one for narrow ones.
const SHAPES: [Shape; 2] = [Shape { lanes: 32, split: 1 }, Shape { lanes: 8, split: 4 }];
/// Columns a lane of those that use vector instructions, and warps of a block.
const VECTOR: u32 = super::VECTOR;
const WARPS: u32 = 8;

impl Shape {
    /// The library's kernel.
    fn complete(self) -> Algorithm {
        self.of_columns(VECTOR)
    }
    /// The same with one column a lane.
    fn scalar(self) -> Algorithm {
        self.of_columns(1)
    }
    fn of_columns(self, vector: u32) -> Algorithm {
        Algorithm::RowSplit { vector, lanes: self.lanes, split: self.split, warps: WARPS }
    }
    /// The same but for an idea.
    fn differing_in(self, idea: Idea) -> Algorithm {
        let Self { lanes, split } = self;
        Algorithm::Ablation { idea, vector: VECTOR, lanes, split, warps: WARPS }
    }
}

/// Plans a product by a kernel of the shape that the heuristic prefers of [`SHAPES`], whichever the variant.
fn plan(
    device: &Device,
    a: &Csr<f32>,
    n: usize,
    order: RowOrder,
    algorithm: impl Fn(Shape) -> Algorithm,
) -> lacuna::Result<(CsrMatrix, Spmm)> {
    let a = CsrMatrix::with_row_order(device, a, order)?;
    let precision = Precision::Fma;
    let legal = spmm::choose(&spmm::Problem { precision, ..spmm::Problem::of(&a, n, VECTOR) });
    let of = |algorithm| SHAPES.into_iter().find(|shape| shape.complete() == algorithm);
    let shape = legal.iter().find_map(|choice| of(choice.algorithm)).unwrap_or(SHAPES[0]);
    let options = spmm::Options::default().precision(precision).algorithm(algorithm(shape));
    let plan = Spmm::plan_with(&a, n, options)?;
    Ok((a, plan))
}
