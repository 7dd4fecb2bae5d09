//! `transpose`: the transpose of one matrix.
use anyhow::Result;
use lacuna::matrix::{Csr, generate};

use crate::cli::TransposeOptions;
use crate::machine;
use crate::timing::Timing;
use crate::transpose::{Record, measure};
use lacuna_cases::exit::{Outcome, Usage};
use lacuna_cases::{Problem, Values};

/// Measures the transpose of one matrix.
///
/// # Errors
/// A matrix or a device that cannot be used.
pub fn transpose(options: &TransposeOptions) -> Result<Outcome> {
    let (name, matrix) = matrix(options)?;
    let device = machine::device(&options.device)?;
    let record = measure(&device, &name, &matrix, options.seed, options.samples)?;
    if options.json {
        println!("{}", serde_json::to_string(&record)?);
    } else {
        print(&record);
    }
    Ok(Outcome::good_if(record.right))
}

/// The matrix of the file, or one that is drawn, with its name.
fn matrix(options: &TransposeOptions) -> Result<(String, Csr<f32>)> {
    if let Some(path) = &options.matrix {
        let problem = Problem::read(path, Values::Drawn, 1, 1, options.seed)?;
        return Ok((problem.name.clone(), problem.sparse()?.clone()));
    }
    let (rows, cols) = (options.rows as usize, options.cols as usize);
    let pattern = generate::uniform(rows, cols, options.sparsity, options.seed)
        .map_err(|error| Usage(error.to_string()))?;
    let values = generate::random_values(pattern.nnz(), options.seed);
    Ok((format!("{rows} {cols} {}", options.sparsity), Csr::with_values(pattern, values)?))
}

fn print(record: &Record) {
    println!("{}: {} × {}, {} nonzeros", record.case, record.m, record.k, record.nnz);
    let timed = |what: &str, timing: &Option<Timing>| {
        if let Some(Timing { median, min, max }) = timing {
            println!("{what:28} {median:10.1} us ({min:.1} to {max:.1})");
        }
    };
    timed("pattern, on the device", &record.build_us);
    timed("pattern, on the host", &record.host_us);
    timed("values, gathered", &record.gather_us);
    if let Some(Timing { median, .. }) = record.gather_us {
        println!("{:28} {:10.0} GB/s", "", record.gather_bytes as f64 / median / 1e3);
    }
    for (what, model) in [("pattern", &record.build_model_us), ("values", &record.gather_model_us)] {
        for (machine, us) in model {
            println!("{what}, modelled on {machine}: {us:.1} us");
        }
    }
    if !record.right {
        println!("WRONG: order or values are not the host's");
    }
}
