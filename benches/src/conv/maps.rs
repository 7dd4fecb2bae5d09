//! What is convolved: drawn maps, and real ones.
use anyhow::{Context as _, Result, ensure};
use lacuna::conv::Shape;
use lacuna::matrix::generate;
use lacuna::matrix::io::npy;
use lacuna_cases::data::{Data, Folder, named_files};
use lacuna_cases::exit::Usage;

use super::Layer;

/// A layer with its input and its filters, in NCHW and N × C × R × S.
#[derive(Clone, Debug)]
pub struct Input {
    /// The network, or the file.
    pub name: String,
    /// The sizes.
    pub shape: Shape,
    /// The part of zeros that was asked for, of drawn maps.
    pub level: Option<f64>,
    /// The maps.
    pub input: Vec<f32>,
    /// The filters.
    pub weights: Vec<f32>,
    /// What is added to each channel of the result.
    pub bias: Vec<f32>,
}

impl Input {
    /// The part of the maps that is zero.
    pub fn zeros(&self) -> f64 {
        let zeros = self.input.iter().filter(|&&x| x == 0.0).count();
        zeros as f64 / self.input.len().max(1) as f64
    }
}

/// A layer whose maps are drawn as after a ReLU: positive numbers, and a part of zeros anywhere.
pub fn drawn(layer: &Layer, batch: usize, zeros: f64, seed: u64) -> Input {
    let shape = layer.shape(batch);
    let draw = |len, salt| generate::random_values(len, seed ^ salt);
    let keeps = draw(shape.input_len(), 2);
    let mut input = draw(shape.input_len(), 1);
    for (x, keep) in input.iter_mut().zip(keeps) {
        *x = if f64::from(keep + 1.0) / 2.0 < zeros { 0.0 } else { x.abs() };
    }
    let (weights, bias) = (draw(shape.filters_len(), 3), draw(shape.filters, 4));
    Input { name: layer.network.into(), shape, level: Some(zeros), input, weights, bias }
}

/// The real maps of a data folder, by name.
///
/// # Errors
/// [`Usage`] where there are none; a file that cannot be read.
pub fn real(data: &mut Data) -> Result<Vec<Input>> {
    const FOLDER: &str = "feature_maps";
    data.unpack(FOLDER);
    let folder = match data.folder(FOLDER) {
        Folder::At(folder) => folder,
        Folder::Missing(why) => return Err(Usage(why).into()),
        Folder::Packed => return Err(Usage(format!("{FOLDER} is packed, and could not be unpacked")).into()),
    };
    let files = named_files(&folder, "npy").map_err(Usage)?;
    let names = files.iter().filter_map(|(name, _)| name.strip_suffix("_input_hwc"));
    names.map(|name| of_files(&folder, name).with_context(|| format!("the feature map {name}"))).collect()
}

fn of_files(folder: &std::path::Path, name: &str) -> Result<Input> {
    let read = |part: &str| npy::read_array_path(folder.join(format!("{name}_{part}.npy")));
    let (input, weights) = (read("input_hwc")?, read("weight_ncrs")?);
    let ([height, width, channels], [filters, of_channels, rows, columns]) =
        (&input.shape[..], &weights.shape[..])
    else {
        anyhow::bail!("expected H × W × C and N × C × R × S, got {:?} and {:?}", input.shape, weights.shape);
    };
    ensure!(channels == of_channels, "the map has {channels} channels, the filters {of_channels}");
    let bias = match read("bias_n") {
        Ok(bias) => bias.values,
        Err(error) if folder.join(format!("{name}_bias_n.npy")).exists() => return Err(error.into()),
        Err(_) => vec![0.0; *filters],
    };
    ensure!(bias.len() == *filters, "expected {filters} biases, got {}", bias.len());
    let pixels = height * width;
    let at = |at: usize| input.values[at % pixels * channels + at / pixels];
    Ok(Input {
        name: name.into(),
        shape: Shape::new(*channels, [*height, *width], *filters, [*rows, *columns])
            .padding([rows / 2, columns / 2]),
        level: None,
        input: (0..channels * pixels).map(at).collect(),
        weights: weights.values,
        bias,
    })
}
