//! `model`: whole networks.
use anyhow::Result;
use lacuna::Device;
use lacuna_cases::data::{Data, Folder};
use lacuna_cases::exit::{Outcome, Usage};
use lacuna_models::files::Archive;
use lacuna_models::weights::Weights;

use super::prune::in_input;
use crate::cli::ModelOptions;
use crate::networks::{Case, How, Named, Suite, layer_table, line, measure, of_network, summary};
use crate::record::append;
use crate::{energy, machine};

/// Measures networks.
///
/// # Errors
/// A device that cannot be used; [`Usage`] for sizes that a network cannot have, and for a file without its weights.
pub fn model(options: &ModelOptions) -> Result<Outcome> {
    let cases = cases(options)?;
    let device = machine::device(&options.device)?;
    let weights = weights(options, &cases, &device)?;
    let data = dlmc(options, &cases, &device)?;
    let dlmc = match data.folder(DLMC) {
        Folder::At(folder) => Some(folder),
        _ => None,
    };
    let counter = options.energy.then(|| energy::counter(&device)).flatten();
    let how = How {
        suite: options.suite.map_or("run", Suite::name),
        value: options.value,
        layout: options.layout.into(),
        samples: options.samples,
        seed: options.seed,
        weights: weights.as_ref(),
        dlmc: dlmc.as_deref(),
        check_whole: options.check_whole,
        faster: options.faster,
        twins: options.twins || options.suite.is_some(),
        layers: options.layers,
        counter: counter.as_ref(),
    };
    if !options.json {
        println!("{} on {}", env!("LACUNA_REVISION"), device.info().name);
        match &options.weights {
            Some(path) => println!("Weights are those of {}.", path.display()),
            None => println!("Weights are drawn: they are for speed, and know nothing."),
        }
        if device.is_simulator() {
            println!("Networks are cut, and times are the simulator's model, not measurements.");
        }
    }
    let mut records = Vec::new();
    for case in cases {
        let record = measure(&device, &case, how)?;
        append(options.out.as_deref(), &record)?;
        if options.json {
            println!("{}", serde_json::to_string(&record)?);
        } else {
            println!("{}", line(&record));
            if options.layers {
                println!("{}", layer_table(&record));
            }
        }
        records.push(record);
    }
    if !options.json && records.len() > 1 {
        summary(&records).iter().for_each(|line| println!("{line}"));
    }
    Ok(Outcome::good_if(records.iter().all(|record| record.is_right())))
}

/// The networks that are asked for.
fn cases(options: &ModelOptions) -> Result<Vec<Case>> {
    let cases = match (options.suite, options.network) {
        (Some(suite), _) => of_suite(options, suite)?,
        (None, Some(network)) => {
            if options.width.is_some() && network != Named::MobileNetV1 {
                let name = network.name();
                return Err(
                    Usage(format!("{name} has one width; leave --width out, or take mobilenet-v1")).into()
                );
            }
            let (batch, resolution) = (options.batch.unwrap_or(1) as usize, size(options, network)?);
            let width = options.width.unwrap_or(1.0);
            vec![Case { network, width, batch, resolution, sparsity: options.sparsity }]
        }
        (None, None) => return Err(Usage("name a network, or a suite".into()).into()),
    };
    for Case { network, width, resolution, batch, .. } in &cases {
        network.network(*width, *resolution, *batch).map_err(|error| Usage(error.to_string()))?;
    }
    Ok(cases)
}

/// The networks of a suite.
fn of_suite(options: &ModelOptions, suite: Suite) -> Result<Vec<Case>> {
    let mut cases = suite.cases();
    if suite != Suite::TransformerBase && (options.batch.is_some() || options.tokens.is_some()) {
        let why = format!("suite {} has sizes of its own; leave --batch and --tokens out", suite.name());
        return Err(Usage(why).into());
    }
    for case in &mut cases {
        case.batch = options.batch.map_or(case.batch, |batch| batch as usize);
        case.resolution = options.tokens.map_or(case.resolution, |tokens| tokens as usize);
    }
    Ok(cases)
}

/// Rows and columns of the input, or its tokens.
fn size(options: &ModelOptions, network: Named) -> Result<usize> {
    let (own, other) = if network.has_tokens() {
        (options.tokens, options.resolution)
    } else {
        (options.resolution, options.tokens)
    };
    if other.is_some() {
        let (wrong, right) =
            if network.has_tokens() { ("resolution", "tokens") } else { ("tokens", "resolution") };
        return Err(Usage(format!("{} has no --{wrong}; give it --{right}", network.name())).into());
    }
    Ok(own.map_or(network.usual_size(), |size| size as usize))
}

/// The folder of real masks.
const DLMC: &str = "dlmc";

/// The data with real masks, where a network has a use for them; none is told on stderr.
fn dlmc(options: &ModelOptions, cases: &[Case], device: &Device) -> Result<Data> {
    let is_drawn = options.weights.is_none() && !device.is_simulator();
    if !is_drawn || !cases.iter().any(Case::has_masks) {
        return Ok(Data::none());
    }
    let mut data = Data::find(options.data.as_deref())?;
    data.unpack(DLMC);
    match data.folder(DLMC) {
        Folder::Missing(why) if options.data.is_some() => return Err(Usage(why).into()),
        Folder::Missing(why) => eprintln!("lacuna-bench: all masks are drawn: {why}"),
        _ => {}
    }
    Ok(data)
}

/// The weights of the file, where one is named: all that the network needs are there.
fn weights(options: &ModelOptions, cases: &[Case], device: &Device) -> Result<Option<Weights>> {
    let Some(path) = &options.weights else { return Ok(None) };
    // Counters beside the weights, as torchvision has them, are left out.
    let mut archive = Archive::open(path, |_, _| {}).map_err(in_input(path))?;
    archive.decompress().map_err(in_input(path))?;
    let weights = archive.dense;
    for case in cases {
        let network = case.network(device).map_err(|error| Usage(error.to_string()))?;
        of_network(&network, &weights).map_err(|error| {
            let cut = if device.is_simulator() {
                "; on the simulator networks are cut, so that weights of whole ones do not fit: run on a GPU"
            } else {
                ""
            };
            Usage(format!("{}: {error}{cut}", path.display()))
        })?;
    }
    Ok(Some(weights))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use lacuna::matrix::io::safetensors::Dtype;
    use lacuna_models::files::Other;

    use super::*;
    use crate::cli::{Cli, Command};

    fn options(arguments: &str) -> Result<ModelOptions, String> {
        let words = ["lacuna-bench", "model"].into_iter().chain(arguments.split_whitespace());
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
            Command::Model(options) => Ok(options),
            other => Err(format!("{other:?}")),
        }
    }

    fn parsed(arguments: &str) -> Result<Vec<Case>, String> {
        cases(&options(arguments)?).map_err(|error| error.to_string())
    }

    #[test]
    fn a_network_is_named_with_its_sizes() {
        let cases = parsed("mobilenet-v1 --width 1.4 --batch 16 --resolution 192 --sparsity 0.9").unwrap();
        let case =
            Case { network: Named::MobileNetV1, width: 1.4, batch: 16, resolution: 192, sparsity: 0.9 };
        assert_eq!(cases, [case]);
        let case = parsed("vgg-19").unwrap()[0];
        assert_eq!((case.network, case.width, case.sparsity), (Named::Vgg19, 1.0, 0.0));
        assert_eq!(parsed("--suite table4 --layers").unwrap().len(), 9);
        assert_eq!(parsed("--suite feature-maps").unwrap().len(), 6);
        let sequences = parsed("transformer --tokens 4096 --layout nhwc").unwrap()[0];
        assert_eq!((sequences.network, sequences.resolution), (Named::Transformer, 4096));
        assert_eq!(parsed("transformer").unwrap()[0].resolution, crate::networks::TOKENS);
        assert_eq!(parsed("--suite table3").unwrap().len(), 2);
        let base = parsed("transformer-base --sparsity 0.9").unwrap()[0];
        assert_eq!((base.network, base.resolution, base.batch), (Named::TransformerBase, 256, 1));
        let suite = parsed("--suite transformer-base --tokens 64 --batch 4").unwrap();
        let sizes = |case: &Case| (case.sparsity, case.resolution, case.batch);
        let expected = [(0.7, 64, 4), (0.8, 64, 4), (0.9, 64, 4), (0.95, 64, 4)];
        assert_eq!(suite.iter().map(sizes).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (arguments, why) in [
            ("", "<NETWORK>"),
            ("alexnet", "mobilenet-v1"),
            ("resnet-50 --width 2", "one width"),
            ("mobilenet-v1 --width=-1", "the width"),
            ("mobilenet-v1 --sparsity 1.5", "from 0 to 1"),
            ("mobilenet-v1 --batch 0", "--batch"),
            ("vgg-16 --resolution 16", "features.30"),
            ("vgg-16 --tokens 16", "--resolution"),
            ("transformer --resolution 224", "--tokens"),
            ("transformer-base --resolution 224", "--tokens"),
            ("transformer-base --tokens 100000", "fit 32 bits"),
            ("--suite table3 --tokens 64", "leave --batch and --tokens out"),
            ("--suite table4 --batch 2", "leave --batch and --tokens out"),
            ("vgg-16 --suite table4", "cannot be used with"),
            ("--suite table4 --sparsity 0.5", "cannot be used with"),
            ("--suite table4 --weights a.safetensors", "cannot be used with"),
        ] {
            let error = parsed(arguments).unwrap_err();
            assert!(error.contains(why), "{arguments}: {error}");
        }
    }

    /// What a file with these tensors gives for MobileNetV1 of width 1, as the simulator has it.
    fn of_file(archive: &Archive) -> Result<Option<Weights>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.safetensors");
        archive.save(&path).unwrap();
        let mut options = options("mobilenet-v1").unwrap();
        options.weights = Some(path);
        let cases = cases(&options).unwrap();
        weights(&options, &cases, &Device::simulator()).map_err(|error| error.to_string())
    }

    #[test]
    fn weights_of_a_file_have_the_networks_names_and_shapes() {
        let case = parsed("mobilenet-v1").unwrap()[0];
        let network = case.network(&Device::simulator()).unwrap();
        let drawn = Weights::drawn(&network, 3).unwrap();
        let mut archive = Archive { dense: drawn.clone(), ..Archive::default() };
        archive.compress(["fc.weight", "model.0.0.weight"]).unwrap();
        // A counter, as batch norms of PyTorch have one.
        let counter = Other { dtype: Dtype::I64, shape: vec![], bytes: vec![0; 8] };
        archive.others.insert("model.0.1.num_batches_tracked".into(), counter);
        assert_eq!(of_file(&archive).unwrap(), Some(drawn.clone()));

        let mut less = archive.clone();
        less.dense.remove("fc.bias");
        let error = of_file(&less).unwrap_err();
        assert!(
            error.contains("tensor fc.bias: expected") && error.contains("weights.safetensors"),
            "{error}"
        );

        let whole = Named::MobileNetV1.network(1.0, 224, 1).unwrap();
        let whole = Archive { dense: Weights::drawn(&whole, 3).unwrap(), ..Archive::default() };
        let error = of_file(&whole).unwrap_err();
        assert!(
            error.contains("expected shape") && error.contains("on the simulator networks are cut"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_is_none_is_refused() {
        let options = options("mobilenet-v1 --weights nowhere.safetensors").unwrap();
        let cases = cases(&options).unwrap();
        let error = weights(&options, &cases, &Device::simulator()).unwrap_err();
        assert!(error.is::<Usage>() && error.to_string().contains("nowhere.safetensors"), "{error}");
    }
}
