//! `decoder`: a step of a translation decoder.
use anyhow::Result;
use lacuna_cases::exit::Outcome;
use lacuna_models::decoder::Config;

use crate::cli::DecoderOptions;
use crate::decoder::{How, line, measure};
use crate::machine;
use crate::record::append;

/// Measures decoders.
///
/// # Errors
/// A device that cannot be used; sizes that a decoder cannot have.
pub fn decoder(options: &DecoderOptions) -> Result<Outcome> {
    let device = machine::device(&options.device)?;
    let how = How {
        sparsity: options.sparsity,
        precision: options.precision,
        check_whole: options.check_whole,
        samples: options.samples,
        seed: options.seed,
    };
    if !options.json {
        println!("{} on {}", env!("LACUNA_REVISION"), device.info().name);
        println!("Weights are drawn: they are for speed, and know nothing.");
        if device.is_simulator() {
            println!("Decoders are cut, and times are the simulator's model, not measurements.");
        }
    }
    let mut outcome = Outcome::Good;
    for config in configs(options) {
        let record = measure(&device, &config, how)?;
        append(options.out.as_deref(), &record)?;
        if options.json {
            println!("{}", serde_json::to_string(&record)?);
        } else {
            println!("{}", line(&record));
        }
        if !record.is_right() {
            outcome = Outcome::Failure;
        }
    }
    Ok(outcome)
}

/// Each size with each.
fn configs(options: &DecoderOptions) -> Vec<Config> {
    let mut configs = Vec::new();
    for &vocabulary in &options.vocabulary {
        for &hidden in &options.hidden {
            for &beams in &options.beams {
                configs.extend(options.batch.iter().map(|&sentences| Config {
                    sentences: sentences as usize,
                    beams: beams as usize,
                    vocabulary: vocabulary as usize,
                    hidden: hidden as usize,
                    inner: (hidden * options.inner) as usize,
                    ..Config::default()
                }));
            }
        }
    }
    configs
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    fn parsed(arguments: &str) -> Result<Vec<Config>, String> {
        let words = ["lacuna-bench", "decoder"].into_iter().chain(arguments.split_whitespace());
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
            Command::Decoder(options) => Ok(configs(&options)),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn sizes_are_measured_each_with_each() {
        let all = parsed("").unwrap();
        assert_eq!(all.len(), 15);
        assert_eq!(
            (all[0].vocabulary, all[0].sentences, all[14].vocabulary, all[14].sentences),
            (10_240, 1, 151_936, 64)
        );
        let some = parsed("--vocabulary 32000 --hidden 512,1024 --beams 4,10 --batch 16 --inner 0").unwrap();
        let sizes: Vec<[usize; 3]> = some.iter().map(|it| [it.hidden, it.beams, it.inner]).collect();
        assert_eq!(sizes, [[512, 4, 0], [512, 10, 0], [1024, 4, 0], [1024, 10, 0]]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (arguments, why) in [
            ("--beams 65", "--beams"),
            ("--batch 0", "--batch"),
            ("--vocabulary 2", "--vocabulary"),
            ("--sparsity 2", "from 0 to 1"),
            ("--precision half", "single"),
        ] {
            let error = parsed(arguments).unwrap_err();
            assert!(error.contains(why), "{arguments}: {error}");
        }
    }
}
