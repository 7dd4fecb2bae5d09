//! SDDMM's kernels with and without the ideas of the paper.
use lacuna::sddmm::{Algorithm, Options, Problem, Schedule};
use lacuna::{CsrMatrix, Precision, Sddmm, sddmm};

use super::{Ablation, Ablations, VECTOR, Variant, variant};
use crate::sddmm::{Prepare, measure_variants};

/// The suites of the records of complete kernels: by column panels, and by nonzeros.
const PANELS: &str = "ablation: panels";
const NONZEROS: &str = "ablation: nonzeros";

pub(super) static SDDMM: Ablations = Ablations {
    suite: "sddmm-dlmc",
    complete: &[PANELS, NONZEROS],
    ideas: &[
        Ablation {
            name: "load balancing",
            published: [101.1, 97.1, 100.9, 96.8],
            ours: true,
            complete: PANELS,
            variant: "ablation: panels, no load balancing",
        },
        Ablation {
            name: "vector instructions",
            published: [98.3, 132.0, 120.2, 170.6],
            ours: true,
            complete: NONZEROS,
            variant: "ablation: nonzeros, no vector instructions",
        },
    ],
    note: "Load balancing is switched off in a kernel by column panels, and vector instructions in one by nonzeros, which has no rows to \
           balance.",
    measure: |session, task| measure_variants(session, task, &VARIANTS),
};

const VARIANTS: [Variant<Prepare>; 4] = [
    variant(PANELS, |c, k| by_panels(c, k, Schedule::Auto)),
    variant("ablation: panels, no load balancing", |c, k| by_panels(c, k, Schedule::Unsorted)),
    variant(NONZEROS, |c, k| by_nonzeros(c, k, VECTOR)),
    variant("ablation: nonzeros, no vector instructions", |c, k| by_nonzeros(c, k, 1)),
];

/// What the heuristic is asked for: fused multiply-adds.
fn problem(c: &CsrMatrix, k: usize) -> Problem {
    Problem { precision: Precision::Fma, ..Problem::of(c, k, VECTOR) }
}

/// Plans a product by the panel kernel that the heuristic prefers, with tiles in this order.
fn by_panels(c: &CsrMatrix, k: usize, schedule: Schedule) -> lacuna::Result<Sddmm> {
    let legal = sddmm::choose(&problem(c, k));
    let is_by_panels = |algorithm: &Algorithm| matches!(algorithm, Algorithm::ColumnPanel { .. });
    let algorithm = legal.iter().map(|choice| choice.algorithm).find(is_by_panels);
    // Without one the plan says which kernels there are.
    let none = Algorithm::ColumnPanel { vector: VECTOR, vectors: 1, lanes: LANES[0] };
    let options = Options::default().precision(Precision::Fma).schedule(schedule);
    Sddmm::plan_with(c, k, options.algorithm(algorithm.unwrap_or(none)))
}

/// Lanes of a group: of kernels for usual K, and for long ones.
const LANES: [u32; 2] = [8, 32];

/// The kernel by nonzeros whose lanes load so many elements at once, and four in a chunk of K.
fn of_elements(vector: u32, lanes: u32) -> Algorithm {
    Algorithm::NonzeroSplit { vector, vectors: VECTOR / vector, lanes, warps: 8 }
}

/// Plans a product by nonzeros, with the lanes that the heuristic prefers of [`LANES`], and K split as with vector instructions.
fn by_nonzeros(c: &CsrMatrix, k: usize, vector: u32) -> lacuna::Result<Sddmm> {
    let legal = sddmm::choose(&problem(c, k));
    let of = |algorithm| LANES.into_iter().find(|&lanes| of_elements(VECTOR, lanes) == algorithm);
    let lanes = legal.iter().find_map(|choice| of(choice.algorithm)).unwrap_or(LANES[0]);
    let options = Options::default().precision(Precision::Fma);
    let complete = Sddmm::plan_with(c, k, options.algorithm(of_elements(VECTOR, lanes)))?;
    if vector == VECTOR {
        return Ok(complete);
    }
    Sddmm::plan_with(c, k, options.algorithm(of_elements(vector, lanes)).splits(complete.splits()))
}
