//! Sparse products on candle's CUDA tensors, where they are: checked against candle's dense products, in each type, with gradients.
//!
//! ```text
//! cargo run --release --features cuda --example spmm
//! cargo run --release --example spmm -- --simulate
//! ```
//! The exit code is 1 where a result is wrong, or memory was copied.
use std::time::Instant;

use anyhow::{Result, ensure};
use candle_core::{DType, Device, Tensor, Var};
use clap::Parser;
use half::{bf16, f16};
use lacuna::matrix::{Csr, generate};
use lacuna_candle::{Backend, Pattern, SparseMatrix};

/// C = A·B for a sparse A, on candle's tensors.
#[derive(Parser)]
struct Options {
    /// Tensors of the CPU, on Lacuna's simulator, and small.
    #[arg(long)]
    simulate: bool,
    /// The GPU.
    #[arg(long, default_value_t = 0)]
    gpu: usize,
    /// The part of A that is zero.
    #[arg(long, default_value_t = 0.9)]
    sparsity: f64,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let backend = match options.simulate {
        true => Backend::simulator(),
        false => Backend::of(&Device::new_cuda(options.gpu)?)?,
    };
    let [rows, cols, n] = if options.simulate { [64, 96, 32] } else { [4096, 2048, 512] };
    let pattern = generate::uniform(rows, cols, options.sparsity, 1)?;
    let values = generate::random_values(pattern.nnz(), 2);
    let host = Csr::with_values(pattern, values)?;
    println!("{}: A {rows}×{cols}, {} nonzeros, N = {n}", backend.lacuna().info().name, host.nnz());
    let pattern = Pattern::new(&backend, host.pattern().clone())?;
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        check(&backend, &pattern, &host, n, dtype)?;
    }
    #[cfg(feature = "cuda")]
    if !options.simulate {
        gpu::no_copy(&backend, &pattern, &host)?;
    }
    Ok(())
}

/// Checks a product, and its gradients, against candle's dense ones.
fn check(backend: &Backend, pattern: &Pattern, host: &Csr<f32>, n: usize, dtype: DType) -> Result<()> {
    let device = backend.device();
    let (rows, cols) = (pattern.rows(), pattern.cols());
    let values = Var::from_tensor(&pattern.values(host.values())?.to_dtype(dtype)?)?;
    let b = Tensor::from_vec(generate::random_values(cols * n, 3), (cols, n), device)?.to_dtype(dtype)?;
    let b = Var::from_tensor(&b)?;
    // The dense A has the same numbers: those of the type.
    let dense = Tensor::from_vec(host.to_dense()?, (rows, cols), device)?.to_dtype(dtype)?;
    let weight =
        Tensor::from_vec(generate::random_values(rows * n, 4), (rows, n), device)?.to_dtype(dtype)?;

    let c = pattern.spmm(&values, &b)?;
    let gradients = (&c * &weight)?.sum_all()?.backward()?;
    let [dense, b_wide, weight] = [&dense, b.as_tensor(), &weight].map(|tensor| tensor.to_dtype(DType::F32));
    let (dense, b_wide, weight) = (dense?, b_wide?, weight?);
    let part = match dtype {
        DType::F32 => 1e-4,
        DType::F16 => 4e-3,
        _ => 3e-2,
    };
    let product =
        |a: &Tensor, b: &Tensor| -> Result<[Tensor; 2]> { Ok([a.matmul(b)?, a.abs()?.matmul(&b.abs()?)?]) };
    judge("C", dtype, part, &c, product(&dense, &b_wide)?)?;
    let of_b = gradients.get(&b).expect("B is a variable");
    judge("gradient of B", dtype, part, of_b, product(&dense.t()?.contiguous()?, &weight)?)?;

    let of_values = pattern.without_room(gradients.get(&values).expect("the values are a variable"))?;
    let row_of = |row: usize| host.row(row).0.iter().map(move |&column| (row * cols) as u32 + column);
    let places = Tensor::from_iter((0..rows).flat_map(row_of), device)?;
    let at_nonzeros = |dense: &Tensor| dense.flatten_all()?.index_select(&places, 0);
    let [expected, bound] = product(&weight, &b_wide.t()?.contiguous()?)?;
    judge("gradient of values", dtype, part, &of_values, [at_nonzeros(&expected)?, at_nonzeros(&bound)?])?;

    // Weights that stay: prepacked.
    let packed = match dtype {
        DType::F32 => b.apply_op1(SparseMatrix::prepacked(backend, host)?)?,
        DType::F16 => b.apply_op1(SparseMatrix::prepacked(backend, &host.map_values(f16::from_f32))?)?,
        _ => b.apply_op1(SparseMatrix::prepacked(backend, &host.map_values(bf16::from_f32))?)?,
    };
    judge("C, prepacked", dtype, part, &packed, product(&dense, &b_wide)?)?;
    if device.is_cuda() {
        let dense = dense.to_dtype(dtype)?;
        let ours = times(device, || Ok(pattern.spmm(&values, &b)?))?;
        let theirs = times(device, || Ok(dense.matmul(&b)?))?;
        println!("  calls in a row, by the host's clock: {ours:.1} us, dense {theirs:.1} us");
    }
    Ok(())
}

/// Fails where a result is further from the expected one than this part of the sum of magnitudes.
fn judge(
    what: &str,
    dtype: DType,
    part: f64,
    got: &Tensor,
    [expected, magnitudes]: [Tensor; 2],
) -> Result<()> {
    let error = (got.to_dtype(DType::F32)? - expected)?.abs()?;
    let over = error.broadcast_div(&((magnitudes * part)? + 1e-30)?)?.flatten_all()?.to_vec1::<f32>()?;
    // A NaN is wrong, which a greatest one would hide.
    ensure!(over.iter().all(|&over| over <= 1.0), "{what} in {dtype:?} is wrong");
    println!(
        "{dtype:?} {what}: largest error {:.3} of what is allowed",
        over.into_iter().fold(0.0, f32::max)
    );
    Ok(())
}

/// Microseconds of a call, of many in a row.
fn times(device: &Device, mut work: impl FnMut() -> Result<Tensor>) -> Result<f64> {
    const CALLS: u32 = 200;
    work()?;
    device.synchronize()?;
    let start = Instant::now();
    for _ in 0..CALLS {
        work()?;
    }
    device.synchronize()?;
    Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS))
}

#[cfg(feature = "cuda")]
mod gpu {
    use anyhow::{Context, Result, bail, ensure};
    use candle_core::cuda::cudarc::driver::DevicePtr as _;
    use candle_core::{DType, Storage, Tensor};
    use lacuna::Slice;
    use lacuna::matrix::{Csr, generate};
    use lacuna_candle::{Backend, Pattern};

    /// Where a tensor of `f32` is on the GPU.
    fn address(tensor: &Tensor) -> Result<u64> {
        let (storage, layout) = tensor.storage_and_layout();
        let Storage::Cuda(storage) = &*storage else { bail!("the tensor is not on a GPU") };
        let stream = storage.device.cuda_stream();
        let (address, _guard) = storage.as_cuda_slice::<f32>()?.device_ptr(&stream);
        Ok(address + (layout.start_offset() * size_of::<f32>()) as u64)
    }

    /// Shows that Lacuna reads candle's memory where it is: by its address, and by the memory that a product takes.
    pub(super) fn no_copy(backend: &Backend, pattern: &Pattern, host: &Csr<f32>) -> Result<()> {
        let values = pattern.values(host.values())?;
        let at = address(&values)?;
        // SAFETY: the tensor stays, and nobody writes it.
        let slice = unsafe { Slice::<f32>::from_raw(backend.lacuna(), at, pattern.nnz())? };
        let seen = slice.download(&backend.lacuna().stream()?)?;
        println!("candle has the values at {at:#x}, and Lacuna reads them at {:#x}", slice.address());
        ensure!(seen == host.values(), "Lacuna sees other values at candle's address");

        let device = backend.device().as_cuda_device()?;
        let context = device.cuda_stream().context().clone();
        let free = || -> Result<usize> {
            backend.device().synchronize()?;
            Ok(context.mem_get_info()?.0)
        };
        // B is far larger than C and the rest together.
        let (rows, cols, n) = (64, 1 << 16, 2048);
        let host = generate::uniform(rows, cols, 0.99, 5)?;
        let nnz = host.nnz();
        let pattern = Pattern::new(backend, host)?;
        let values = pattern.values(&generate::random_values(nnz, 6))?;
        let b = Tensor::ones((cols, n), DType::F32, backend.device())?;
        let before = free()?;
        let c = pattern.spmm(&values, &b)?;
        let taken = before.saturating_sub(free()?) >> 20;
        let [of_b, of_c] = [&b, &c].map(|tensor| (tensor.elem_count() * size_of::<f32>()) >> 20);
        println!("B has {of_b} MiB, and C {of_c}; the product took {taken} MiB of the GPU's memory");
        ensure!(taken < of_b / 2, "there was a copy of B");
        c.sum_all()?.to_scalar::<f32>().context("the product")?;
        Ok(())
    }
}
