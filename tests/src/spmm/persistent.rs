//! Rows by persistent blocks: grids in which such a block takes many rows, and such as have more of them than fit at once.
//! The other cases try these kernels, too, with few rows for each. Of 16-bit values there are such for uneven rows alone.
use anyhow::{Context as _, Result, ensure};
use half::f16;
use lacuna::matrix::generate;
use lacuna::{CsrMatrix, Index, spmm};

use super::conform::legal;
use super::guarded::Placement;
use super::product::Product;
use crate::{Case, Context, Effort, Number};

/// M, K and N, and products; and the mean row, where rows are of very different lengths.
#[derive(Clone, Copy)]
struct Shape {
    m: usize,
    k: usize,
    n: usize,
    batch: usize,
    uneven: Option<f64>,
}

/// Name, what it is, shape, warps of the blocks that are tried where not all are, and where.
const CASES: [(&str, &str, Shape, Option<u32>, Effort); 7] = [
    (
        "uneven_turns",
        "rows of very different lengths, by a block for each product",
        Shape { m: 90, k: 70, n: 8, batch: 133, uneven: Some(4.0) },
        Some(32),
        Effort::Slow,
    ),
    (
        "uneven",
        "some rows that subwarps share, and many that they do not",
        Shape { m: 60_007, k: 2000, n: 40, batch: 1, uneven: Some(9.0) },
        None,
        Effort::Gpu,
    ),
    (
        "turns",
        "a block for each product, whose rows it takes in turns",
        Shape { m: 66, k: 12, n: 8, batch: 133, uneven: None },
        Some(32),
        Effort::Slow,
    ),
    (
        "products",
        "more products than the GPU holds blocks",
        Shape { m: 3, k: 24, n: 16, batch: 270, uneven: None },
        Some(32),
        Effort::Slow,
    ),
    (
        "tiles",
        "more tiles of columns than the GPU holds blocks",
        Shape { m: 41, k: 9, n: 128 * 137, batch: 1, uneven: None },
        None,
        Effort::Gpu,
    ),
    (
        "many_turns",
        "each block takes some thousands of rows",
        Shape { m: 300_007, k: 120, n: 128, batch: 1, uneven: None },
        None,
        Effort::Gpu,
    ),
    (
        "many_of_all",
        "many rows, tiles and products",
        Shape { m: 5003, k: 300, n: 264, batch: 9, uneven: None },
        None,
        Effort::Gpu,
    ),
];

pub(super) fn cases() -> Vec<Case> {
    let case = |(name, about, shape, warps, effort)| {
        let run = move |cx: &Context<'_>| -> Result<f64> {
            let worst = conform::<f32, u32>(cx, shape, warps)?;
            let worst = worst.max(conform::<f32, u16>(cx, shape, warps).context("u16")?);
            if shape.uneven.is_none() {
                return Ok(worst);
            }
            Ok(worst.max(conform::<f16, u32>(cx, shape, None).context("f16")?))
        };
        Case::new(format!("spmm/persistent/{name}"), about, run).effort(effort)
    };
    CASES.into_iter().map(case).collect()
}

/// Checks each persistent kernel, those of so many warps if it is said.
fn conform<T: Number, I: Index>(cx: &Context<'_>, shape: Shape, only: Option<u32>) -> Result<f64> {
    let Shape { m, k, n, batch, uneven } = shape;
    let pattern = match uneven {
        Some(mean) => generate::power_law(m, k, mean, 2.0, cx.seed)?,
        None => generate::uniform(m, k, 0.8, cx.seed)?,
    };
    let options = spmm::Options::default().batch(batch);
    let product = Product::<T>::new(&pattern, n, options, cx.seed)?;
    let a = CsrMatrix::<T, I>::with_index(cx.device, &product.a[0])?;
    let (mut worst, mut tried) = (0.0_f64, 0);
    for choice in legal(&a, n, options.precision) {
        let (spmm::Algorithm::Persistent { warps, .. } | spmm::Algorithm::Hybrid { warps, .. }) =
            choice.algorithm
        else {
            continue;
        };
        if only.is_none_or(|only| only == warps) {
            tried += 1;
            let product = product.options(options.algorithm(choice.algorithm));
            worst = worst.max(product.check::<I>(cx, Placement::WHOLE)?);
        }
    }
    ensure!(tried > 0, "no persistent kernel is legal");
    Ok(worst)
}
