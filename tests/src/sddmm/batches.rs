//! Batches, gaps between rows, operands that products share, and B given the other way.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::matrix::{Csr, Pattern, generate};
use lacuna::{CsrMatrix, Index, Sddmm, ValueType, sddmm};

use super::conform::precision_at;
use super::problem::transposed;
use super::tiles::MIN_SM;
use crate::expect::same_bits;
use crate::spmm::Placement;
use crate::spmm::guarded::Guarded;
use crate::{Case, Context, Number};
use lacuna_cases::number::rounded;

const BATCH: usize = 3;
const M: usize = 11;
const N: usize = 14;

/// Name, what it is, K, and the options.
type Batch = (&'static str, &'static str, usize, fn(sddmm::Options) -> sddmm::Options);

const CASES: [Batch; 22] = [
    ("gaps", "gaps after rows of A and B", 20, |options| options.a_stride(24).b_stride(32)),
    ("odd_gaps", "gaps that no vector allows", 20, |options| options.a_stride(23).b_stride(21)),
    ("batch", "a batch without gaps", 20, |options| options.batch(BATCH)),
    ("odd_batch", "a batch whose matrices start anywhere", 7, |options| options.batch(BATCH)),
    ("batch_with_gaps", "a batch with gaps after rows and matrices", 16, |options| {
        let options = options.batch(BATCH).a_stride(18).b_stride(20);
        options.a_batch_stride(18 * M + 6).b_batch_stride(20 * N + 4)
    }),
    ("side_by_side", "heads side by side in the rows of A and B", 8, |options| {
        let options = options.batch(BATCH).a_stride(8 * BATCH).b_stride(8 * BATCH);
        options.a_batch_stride(8).b_batch_stride(8)
    }),
    ("shared_a", "one A for all", 12, |options| options.batch(BATCH).a_batch_stride(0)),
    ("shared_b", "one B for all", 12, |options| options.batch(BATCH).b_batch_stride(0)),
    ("turned_with_gaps", "B as K×N, with gaps after rows", 36, |options| {
        options.b_transposed().b_stride(N + 3)
    }),
    ("turned_batch", "a batch of B as K×N, larger than a tile", 33, |options| {
        options.b_transposed().batch(BATCH).b_batch_stride(33 * N + 5)
    }),
    ("turned_shared", "one B as K×N for all", 9, |options| {
        options.b_transposed().batch(BATCH).b_batch_stride(0)
    }),
    ("panels", "a batch by panels, with gaps after rows and matrices", 40, |options| {
        let options = panels(options).a_stride(48).b_stride(56);
        options.a_batch_stride(48 * M + 8).b_batch_stride(56 * N + 16)
    }),
    ("panels_shared", "a batch by panels that shares B", 64, |options| panels(options).b_batch_stride(0)),
    ("tiles", "a batch on tensor cores, without gaps", 64, |options| tiles(options)),
    ("tiles_with_gaps", "a batch on tensor cores, with gaps after rows and matrices", 72, |options| {
        let options = tiles(options).a_stride(80).b_stride(88);
        options.a_batch_stride(80 * M + 8).b_batch_stride(88 * N + 16)
    }),
    ("tiles_shared", "a batch on tensor cores that shares A", 136, |options| {
        tiles(options).a_batch_stride(0)
    }),
    ("splits", "a batch in splits of K, with gaps after rows and matrices", 136, |options| {
        let options = options.batch(BATCH).splits(3).a_stride(144).b_stride(152);
        options.a_batch_stride(144 * M + 8).b_batch_stride(152 * N + 16)
    }),
    ("panels_in_splits", "a batch by panels in splits of K", 128, |options| panels(options).splits(2)),
    ("tiles_in_splits", "a batch on tensor cores in splits of K", 136, |options| tiles(options).splits(3)),
    ("warpgroups", "a batch by warpgroups, with gaps after rows and matrices", 72, |options| {
        let options = warpgroups(options).a_stride(80).b_stride(88);
        options.a_batch_stride(80 * M + 8).b_batch_stride(88 * N + 16)
    }),
    ("warpgroups_in_splits", "a batch by warpgroups in splits of K", 136, |options| {
        warpgroups(options).splits(3).b_transposed()
    }),
    ("tiles_turned", "a batch on tensor cores of B as K×N", 64, |options| tiles(options).b_transposed()),
];

/// A batch by tiles of a size that all types have.
fn tiles(options: sddmm::Options) -> sddmm::Options {
    options.batch(BATCH).algorithm(sddmm::Algorithm::MmaTile { rows: 64, columns: 128 })
}

/// A batch by warpgroups; of `f32`, which they do not take, by tiles.
fn warpgroups(options: sddmm::Options) -> sddmm::Options {
    options.batch(BATCH).algorithm(sddmm::Algorithm::WgmmaTile { rows: 128, columns: 128 })
}

/// A batch by panels.
fn panels(options: sddmm::Options) -> sddmm::Options {
    options.batch(BATCH).algorithm(sddmm::Algorithm::ColumnPanel { vector: 0, vectors: 0, lanes: 8 })
}

/// These options, with an algorithm that the values of `T` have: of panels, 16 bytes a load and 64 elements of K a group.
fn for_values<T: Number>(options: sddmm::Options) -> sddmm::Options {
    match options.algorithm {
        sddmm::Algorithm::ColumnPanel { lanes, .. } => {
            let vector = 16 / size_of::<T>() as u32;
            let vectors = 64 / (lanes * vector);
            options.algorithm(sddmm::Algorithm::ColumnPanel { vector, vectors, lanes })
        }
        sddmm::Algorithm::WgmmaTile { .. } if T::TYPE == ValueType::F32 => tiles(options),
        _ => options,
    }
}

/// The lowest compute capability that has it.
fn lowest(algorithm: sddmm::Algorithm) -> u32 {
    match algorithm {
        sddmm::Algorithm::MmaTile { .. } => MIN_SM,
        sddmm::Algorithm::WgmmaTile { .. } => 90,
        _ => 0,
    }
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = CASES
        .into_iter()
        .map(|(name, about, k, options)| {
            Case::new(format!("sddmm/batches/{name}"), about, move |cx| {
                let options = options(sddmm::Options::default());
                let worst = check::<f32, u32>(cx, k, options)?;
                let worst = worst.max(check::<f16, u16>(cx, k, options)?);
                Ok(worst.max(check::<bf16, u32>(cx, k, options)?))
            })
        })
        .collect();
    cases.push(Case::new("sddmm/batches/none", "a batch of no products", none));
    cases
}

fn none(cx: &Context<'_>) -> Result<f64> {
    let c = CsrMatrix::new(cx.device, &Csr::with_values(pattern(1)?, vec![0.0; pattern(1)?.nnz()])?)?;
    let mut d = c.with_value_batch::<f32>(0, &[])?;
    let plan = Sddmm::plan_with(&c, 8, sddmm::Options::default().batch(0).b_transposed())?;
    ensure!((plan.a_len(), plan.b_len()) == (0, 0), "operands of nothing have elements");
    let nothing = cx.device.zeros::<f32>(0)?;
    plan.run(cx.stream, nothing.as_slice(), nothing.as_slice(), &mut d)?;
    Ok(0.0)
}

fn pattern(seed: u64) -> Result<Pattern> {
    Ok(generate::uniform(M, N, 0.6, seed)?)
}

/// Rows of `width` elements among others: `stride` from one to the next, `batch` from one matrix to the next.
struct Place {
    rows: usize,
    width: usize,
    stride: usize,
    batch: usize,
}

impl Place {
    /// Puts a matrix where it belongs.
    fn put<T: Number>(&self, product: usize, matrix: &[T], to: &mut [T]) {
        for (row, values) in matrix.chunks(self.width).enumerate() {
            to[product * self.batch + row * self.stride..][..self.width].copy_from_slice(values);
        }
    }
    /// Gets it from there.
    fn get<T: Number>(&self, product: usize, from: &[T]) -> Vec<T> {
        let row = |row| &from[product * self.batch + row * self.stride..][..self.width];
        (0..self.rows).flat_map(row).copied().collect()
    }
}

/// Runs on whole buffers and on slices, plain and scaled, with one C and with one for each product.
fn check<T: Number, I: Index>(cx: &Context<'_>, k: usize, options: sddmm::Options) -> Result<f64> {
    let options = for_values::<T>(options);
    if cx.device.info().sm < lowest(options.algorithm) {
        return Ok(0.0);
    }
    let pattern = pattern(cx.seed)?;
    let (nnz, batch) = (pattern.nnz(), options.batch);
    let scales: Vec<T> = rounded(&generate::random_values(nnz * batch, cx.seed ^ 1));
    let c = Csr::with_values(pattern.clone(), scales[..nnz].to_vec())?;
    let c = CsrMatrix::<T, I>::with_index(cx.device, &c)?;
    let cs = c.with_value_batch(batch, &scales)?;
    let plan = Sddmm::plan_with(&c, k, options)?;

    let a_stride = options.a_stride.unwrap_or(k);
    let a_place =
        Place { rows: M, width: k, stride: a_stride, batch: options.a_batch_stride.unwrap_or(M * a_stride) };
    let (rows, width) = if options.b_transposed { (k, N) } else { (N, k) };
    let stride = options.b_stride.unwrap_or(width);
    let b_place = Place { rows, width, stride, batch: options.b_batch_stride.unwrap_or(rows * stride) };

    // Gaps are NaN: what reads them shows.
    let (mut a, mut b) = (vec![T::CANARY; plan.a_len()], vec![T::CANARY; plan.b_len()]);
    for product in 0..batch {
        let seed = cx.seed ^ (product as u64 * 16);
        a_place.put(product, &rounded::<T>(&generate::random_values(M * k, seed ^ 2)), &mut a);
        b_place.put(product, &rounded::<T>(&generate::random_values(N * k, seed ^ 3)), &mut b);
    }

    let mut worst = 0.0_f64;
    let aligned = [Placement::WHOLE, Placement::slices(8, 16)];
    let usual = [Placement::WHOLE, Placement::slices(2, 4), Placement::slices(1, 3)];
    let placements = if options.algorithm == sddmm::Algorithm::Auto { &usual[..] } else { &aligned };
    for &at in placements {
        let (a_buffer, b_buffer) = (Guarded::new(cx.device, &a, at.c)?, Guarded::new(cx.device, &b, at.b)?);
        for scale in [None, Some(&c), Some(&cs)] {
            let mut d = c.with_value_batch(batch, &vec![T::POISON; nnz * batch])?;
            let (a_slice, b_slice) = (a_buffer.slice()?, b_buffer.slice()?);
            match scale {
                None => plan.run(cx.stream, a_slice, b_slice, &mut d)?,
                Some(scale) => plan.run_scaled(cx.stream, a_slice, b_slice, scale, &mut d)?,
            }
            for product in 0..batch {
                let own_b = b_place.get(product, &b);
                let own_b = if options.b_transposed { transposed(&own_b, N) } else { own_b };
                let reference = lacuna_reference::sddmm(&pattern, &a_place.get(product, &a), &own_b, k)?;
                let reference = reference.precision(precision_at::<T>(plan.choice(), at))?;
                let got = d.batch_values(product)?.download(cx.stream)?;
                let report = match scale {
                    None => reference.check(&got),
                    Some(scale) if scale.batch() == 1 => reference.check_scaled(&scales[..nnz], &got),
                    Some(_) => reference.check_scaled(&scales[product * nnz..][..nnz], &got),
                };
                let report = report.with_context(|| {
                    format!("{}, {at:?}, product {product}, {}", plan.choice().entry.name, T::TYPE)
                })?;
                worst = worst.max(report.worst_over_bound);
            }
        }
        same_bits("A before and after", &a, &a_buffer.read("A", cx.stream)?, 0)?;
        same_bits("B before and after", &b, &b_buffer.read("B", cx.stream)?, 0)?;
    }
    Ok(worst)
}
