//! Operands with strides: heads side by side, Q, K and V in one row, gaps, and heads that share K and V. Results are those of
//! operands without gaps, bit by bit, by every kernel that the strides allow.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::matrix::Csr;
use lacuna::{CsrMatrix, Index, SparseAttention, attention};
use lacuna_cases::pattern::{of_rows, spread as spread_keys};

use super::{Effort, Problem};
use crate::expect::same_bits;
use crate::{Case, Context, Number};

/// Keys of each query.
const LENGTHS: [usize; 9] = [0, 1, 40, 33, 70, 7, 40, 32, 31];
const QUERIES: usize = LENGTHS.len();
const KEYS: usize = 70;
const HEADS: usize = 3;

/// Elements from row to row and from head to head.
#[derive(Clone, Copy, Debug)]
struct Lay {
    row: usize,
    head: usize,
}

/// How Q, K and V, and O lie, for a dimension.
#[derive(Clone, Copy, Debug)]
struct Lays {
    q: Lay,
    kv: Lay,
    o: Lay,
}

type Named = (&'static str, &'static str, usize, fn(usize) -> Lays);

const CASES: [Named; 5] = [
    ("side_by_side", "tokens × heads × d", 64, |dim| {
        let lay = Lay { row: HEADS * dim, head: dim };
        Lays { q: lay, kv: lay, o: lay }
    }),
    ("in_one_row", "strides of rows that have Q, K and V", 32, |dim| {
        let lay = Lay { row: 3 * HEADS * dim, head: dim };
        Lays { q: lay, kv: lay, o: Lay { row: HEADS * dim, head: dim } }
    }),
    ("gaps", "gaps after rows and heads that no vector fits", 32, |dim| Lays {
        q: Lay { row: dim + 1, head: QUERIES * (dim + 1) + 2 },
        kv: Lay { row: dim + 3, head: KEYS * (dim + 3) },
        o: Lay { row: dim + 5, head: QUERIES * (dim + 5) + 1 },
    }),
    ("gaps_of_vectors", "gaps that vectors fit, and rows that do not fill the lanes", 40, |dim| Lays {
        q: Lay { row: dim + 8, head: QUERIES * (dim + 8) },
        kv: Lay { row: dim + 24, head: KEYS * (dim + 24) + 16 },
        o: Lay { row: dim, head: QUERIES * dim + 8 },
    }),
    ("shared", "one K and V that all heads share", 64, |dim| Lays {
        q: Lay { row: HEADS * dim, head: dim },
        kv: Lay { row: dim, head: 0 },
        o: Lay { row: HEADS * dim, head: dim },
    }),
];

pub(super) fn cases() -> Vec<Case> {
    let case = |(name, about, dim, lays): Named| {
        Case::new(format!("attention/strides/{name}"), about, move |cx| {
            let rows = LENGTHS.map(|keys| spread_keys(keys, KEYS));
            let mask = of_rows(KEYS, &rows)?;
            let mut problem = Problem::draw(mask, dim, HEADS, cx.seed);
            let lays = lays(dim);
            if lays.kv.head == 0 {
                for of_all in [&mut problem.k, &mut problem.v] {
                    let first = of_all[..KEYS * dim].to_vec();
                    *of_all = first.repeat(HEADS);
                }
            }
            every_kernel::<f32, u32>(cx, &problem, lays).context("f32")?;
            every_kernel::<f16, u16>(cx, &problem.rounded(), lays).context("f16, u16")?;
            every_kernel::<bf16, u32>(cx, &problem.rounded(), lays).context("bf16")?;
            Ok(0.0)
        })
        .effort(Effort::Quick)
    };
    CASES.into_iter().map(case).collect()
}

fn every_kernel<T: Number, I: Index>(cx: &Context<'_>, problem: &Problem<T>, lays: Lays) -> Result<()> {
    let mask = Csr::with_values(problem.mask.clone(), vec![T::CANARY; problem.mask.nnz()])?;
    let mask = CsrMatrix::<T, I>::with_index(cx.device, &mask)?;
    let dim = problem.dim;
    let gapless = attention::Options::default().batch(HEADS);
    let strided = gapless
        .q_stride(lays.q.row)
        .kv_stride(lays.kv.row)
        .o_stride(lays.o.row)
        .q_batch_stride(lays.q.head)
        .kv_batch_stride(lays.kv.head)
        .o_batch_stride(lays.o.head);
    let legal = SparseAttention::plan_with(&mask, dim, strided)?.legal();
    let Some(legal) = legal.iter().find(|choices| !choices.is_empty()) else {
        anyhow::bail!("no kernel takes these strides");
    };
    let plain = |tokens: usize| Lay { row: dim, head: tokens * dim };
    let plain = Lays { q: plain(QUERIES), kv: plain(KEYS), o: plain(QUERIES) };
    for choice in legal {
        let run = |options: attention::Options, lays: Lays| {
            let plan = SparseAttention::plan_with(&mask, dim, options.algorithm(choice.algorithm))?;
            run(cx, &plan, problem, lays).with_context(|| choice.entry.name)
        };
        same_bits(choice.entry.name, &run(gapless, plain)?, &run(strided, lays)?, dim)?;
    }
    Ok(())
}

/// O without gaps.
fn run<T: Number, I: Index>(
    cx: &Context<'_>,
    plan: &SparseAttention<T, I>,
    problem: &Problem<T>,
    lays: Lays,
) -> Result<Vec<T>> {
    let Problem { dim, ref q, ref k, ref v, .. } = *problem;
    let upload = |values: &[T], lay: Lay, len: usize| cx.device.upload(&spread(values, dim, lay, len));
    let q = upload(q, lays.q, plan.query_len())?;
    let (k, v) = (upload(k, lays.kv, plan.key_len())?, upload(v, lays.kv, plan.key_len())?);
    let mut o = cx.device.upload(&vec![T::CANARY; plan.output_len()])?;
    plan.run(cx.stream, q.as_slice(), k.as_slice(), v.as_slice(), o.as_slice_mut())?;
    let mut spread = o.download(cx.stream)?;
    let mut gapless = Vec::new();
    for head in 0..HEADS {
        for row in 0..QUERIES {
            let own = &mut spread[head * lays.o.head + row * lays.o.row..][..dim];
            gapless.extend_from_slice(own);
            own.fill(T::CANARY);
        }
    }
    ensure!(spread.iter().all(|gap| gap.bits() == T::CANARY.bits()), "a gap was written");
    Ok(gapless)
}

/// Heads of rows of `dim` elements, as they lie in `len` elements.
fn spread<T: Number>(values: &[T], dim: usize, lay: Lay, len: usize) -> Vec<T> {
    let mut spread = vec![T::CANARY; len];
    let tokens = values.len() / dim / HEADS;
    for (i, row) in values.chunks_exact(dim).enumerate() {
        let at = i / tokens * lay.head + i % tokens * lay.row;
        spread[at..at + dim].copy_from_slice(row);
    }
    spread
}
