//! C = A·B on memory and a stream of `cudarc`'s: nothing is copied, and both libraries' work is in order on one stream.
//!
//! ```text
//! cargo run --release -p lacuna --features cuda --example cudarc
//! ```
//! The exit code is 1 where the result is wrong, and 3 without a GPU.
use std::process::ExitCode;

use anyhow::{Result, ensure};
use cudarc::driver::{CudaContext, DevicePtr as _, DevicePtrMut as _};
use lacuna::matrix::{Csr, generate};
use lacuna::{CsrMatrix, Device, Error, Precision, Slice, SliceMut, Spmm, Stream, spmm};

fn main() -> Result<ExitCode> {
    // Both have the GPU's primary context, and number GPUs as the driver does.
    let device = match Device::cuda(0) {
        Err(error @ (Error::NoDriver { .. } | Error::NoDevice { .. })) => {
            eprintln!("cudarc: {error}");
            return Ok(ExitCode::from(3));
        }
        other => other?,
    };
    let context = CudaContext::new(0)?;
    let their_stream = context.new_stream()?;

    let (rows, cols, n) = (4096, 1024, 128);
    let pattern = generate::uniform(rows, cols, 0.9, 1)?;
    let values = generate::random_values(pattern.nnz(), 2);
    let host = Csr::with_values(pattern, values)?;
    let b = generate::random_values(cols * n, 3);

    // A in cudarc's memory, as a program would have it that made it there. Values have some elements to spare, whose contents do not matter.
    let their_offsets = their_stream.clone_htod(host.row_offsets())?;
    let their_columns = their_stream.clone_htod(host.col_indices())?;
    let their_b = their_stream.clone_htod(&b)?;
    let mut their_c = their_stream.alloc_zeros::<f32>(rows * n)?;

    // SAFETY: cudarc's stream and slices live until the end of this function, which waits for the stream before it reads C. The guards
    // are for programs with several streams: cudarc orders them by what they record when they go, which is after the launches.
    unsafe {
        let stream = Stream::from_raw(&device, their_stream.cu_stream().cast())?;
        let (offsets, _offsets) = their_offsets.device_ptr(&their_stream);
        let (columns, _columns) = their_columns.device_ptr(&their_stream);
        let offsets = Slice::<u32>::from_raw(&device, offsets, rows + 1)?;
        let columns = Slice::<u32>::from_raw(&device, columns, host.nnz())?;
        // Checked once; the pattern has columns of its own.
        let pattern = CsrMatrix::<f32>::from_indices(&stream, [rows, cols], offsets, columns)?;

        let mut their_values = their_stream.alloc_zeros::<f32>(pattern.values_stride())?;
        their_stream.memcpy_htod(host.values(), &mut their_values.slice_mut(..host.nnz()))?;
        {
            let (values, _values) = their_values.device_ptr(&their_stream);
            let (b, _b) = their_b.device_ptr(&their_stream);
            let (c, _c) = their_c.device_ptr_mut(&their_stream);
            let a = pattern.with_foreign_values::<f32>(1, values)?;
            ensure!(a.values()?.address() == values, "the values were copied");

            // With the bound that the check below has.
            let options = spmm::Options::default().precision(Precision::Fma);
            let plan = Spmm::plan_with(&a, n, options)?;
            let b = Slice::from_raw(&device, b, plan.input_len())?;
            plan.run(&stream, &a, b, SliceMut::from_raw(&device, c, plan.output_len())?)?;
            println!("{}: {} on cudarc's memory", device.info().name, plan.choice().entry.name);
        }

        // The stream orders this after the product.
        let c = their_stream.clone_dtoh(&their_c)?;
        their_stream.synchronize()?;
        let report = lacuna_reference::spmm(&host, &b, n)?.check(&c)?;
        println!("largest error: {:.3} of its bound", report.worst_over_bound);
    }
    Ok(ExitCode::SUCCESS)
}
