//! `import`: networks in files.
use anyhow::Result;
use lacuna_cases::exit::Outcome;

use crate::cli::ImportOptions;
use crate::machine;
use crate::networks::{FileCase, How, layer_table, line, measure_file};
use crate::record::append;

/// Measures the network of a file.
///
/// # Errors
/// A device that cannot be used; files that cannot be read or imported.
pub fn import(options: &ImportOptions) -> Result<Outcome> {
    let device = machine::device(&options.device)?;
    let how = How {
        suite: "import",
        value: options.value,
        layout: options.layout.into(),
        samples: options.samples,
        seed: options.seed,
        weights: None,
        dlmc: None,
        check_whole: true,
        faster: options.faster,
        twins: options.twins,
        layers: options.layers,
        counter: None,
    };
    let case = FileCase {
        file: options.file.clone(),
        batch: options.batch as usize,
        export: options.export.clone(),
    };
    let record = measure_file(&device, &case, how)?;
    append(options.out.as_deref(), &record)?;
    if options.json {
        println!("{}", serde_json::to_string(&record)?);
    } else {
        println!("{} on {}", env!("LACUNA_REVISION"), device.info().name);
        println!("{}", line(&record));
        if options.layers {
            println!("{}", layer_table(&record));
        }
    }
    Ok(Outcome::good_if(record.is_right()))
}
