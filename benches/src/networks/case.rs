//! A network to be measured, and its weights.
use std::path::Path;

use anyhow::Result;
use lacuna::matrix::generate;
use lacuna::{Device, Stream};
use lacuna_cases::Number;
use lacuna_cases::exit::Usage;
use lacuna_models::model::Options;
use lacuna_models::network::{Network, NetworkError};
use lacuna_models::networks::TransformerBase;
use lacuna_models::prune::Masks;
use lacuna_models::weights::{Weights, WeightsError};

use super::How;
use super::named::{Cut, Named};
use super::planned::Planned;
use super::prune::prune;
use super::published::{Row, TABLE_III, TOKENS};
use super::record::MaskRecord;

/// A network to be measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// Which.
    pub network: Named,
    /// The width of MobileNetV1.
    pub width: f64,
    /// Images.
    pub batch: usize,
    /// Rows and columns of the input; of a network with tokens, how many.
    pub resolution: usize,
    /// The part of the weights of 1×1 and linear layers that is pruned.
    pub sparsity: f64,
}

/// A network with drawn weights or those of a file, pruned, and a drawn input.
pub(super) struct Drawn {
    pub(super) network: Network,
    pub(super) weights: Weights,
    pub(super) input: Vec<f32>,
    /// Where masks are from, of a network that DLMC has.
    pub(super) masks: Option<MaskRecord>,
}

/// What is drawn for the input, in place of the weights.
const INPUT_SALT: u64 = 0x1ace;

impl Case {
    /// The network in the size that the device runs: on the simulator it is cut.
    ///
    /// # Errors
    /// Sizes that do not fit.
    pub fn network(&self, device: &Device) -> Result<Network, NetworkError> {
        let Self { network, width, batch, resolution, .. } = *self;
        if device.is_simulator() {
            network.cut(Cut::Least, width, batch)
        } else {
            network.network(width, resolution, batch)
        }
    }

    /// That network, with these weights, or drawn ones where there are none.
    pub(super) fn drawn(&self, device: &Device, how: How<'_>) -> Result<Drawn> {
        // Real masks fit whole networks alone.
        let dlmc = how.dlmc.filter(|_| !device.is_simulator() && how.weights.is_none());
        self.draw(self.network(device), how.seed, how.weights, dlmc)
    }

    /// A cut network, with drawn weights.
    pub(super) fn cut(&self, cut: Cut, seed: u64) -> Result<Drawn> {
        self.draw(self.network.cut(cut, self.width, self.batch), seed, None, None)
    }

    fn draw(
        &self,
        network: Result<Network, NetworkError>,
        seed: u64,
        weights: Option<&Weights>,
        dlmc: Option<&Path>,
    ) -> Result<Drawn> {
        let network = network.map_err(|error| Usage(error.to_string()))?;
        let is_drawn = weights.is_none();
        let mut weights = match weights {
            Some(weights) => of_network(&network, weights)?,
            None => Weights::drawn(&network, seed)?,
        };
        let masks = self.masks(&network, dlmc)?;
        let masked = masks.masked_drawn(&weights)?;
        prune(&network, &mut weights, self.sparsity)?;
        weights.append(masked);
        let masks = (self.has_masks() && is_drawn).then(|| MaskRecord::of(&network, &masks));
        // Numbers around 0, as those of an image after normalisation.
        let input = generate::random_values(network.input_len(), seed ^ INPUT_SALT);
        Ok(Drawn { network, weights, input, masks })
    }

    /// Whether DLMC has the masks of its layers.
    pub fn has_masks(&self) -> bool {
        self.network == Named::TransformerBase && self.sparsity > 0.0
    }

    /// Those of the collection in this folder, with as many zeros.
    fn masks(&self, network: &Network, dlmc: Option<&Path>) -> Result<Masks> {
        let Some(folder) = dlmc.filter(|_| self.has_masks()) else { return Ok(Masks::default()) };
        let folder = folder.join("transformer/magnitude_pruning").join(self.sparsity.to_string());
        Ok(Masks::read(&folder, network, TransformerBase::dlmc_file)?)
    }

    /// The width, of a network that has one.
    pub(super) fn width(&self) -> Option<f64> {
        (self.network == Named::MobileNetV1).then_some(self.width)
    }

    /// The paper's images or sequences a second.
    pub(super) fn paper_frames_per_s(&self) -> Option<f64> {
        if self.network == Named::Transformer {
            // There weights are dense.
            let is_papers = self.resolution == TOKENS && self.sparsity == 0.0;
            return is_papers.then_some(TABLE_III / TOKENS as f64);
        }
        self.published().map(|row| row.frames_per_s)
    }

    /// The paper's row of it.
    pub(super) fn published(&self) -> Option<&'static Row> {
        let is_papers = self.batch == 1 && self.resolution == 224;
        let is_sparse = self.sparsity > 0.0;
        let is_pruned_as_there = !is_sparse || (self.sparsity - 0.9).abs() < 1e-9;
        Row::of(is_sparse, self.width()?).filter(|_| is_papers && is_pruned_as_there)
    }
}

/// Of these weights those that a network needs.
///
/// # Errors
/// A tensor that is not there, or has another shape.
pub fn of_network(network: &Network, weights: &Weights) -> Result<Weights, WeightsError> {
    let mut needed = Weights::new();
    for parameter in network.parameters() {
        let tensor = weights.get(&parameter.name, &parameter.shape)?.clone();
        needed.insert(parameter.name, tensor);
    }
    Ok(needed)
}

impl Drawn {
    pub(super) fn plan<'s, T: Number>(
        &self,
        stream: &'s Stream,
        options: &Options,
    ) -> Result<Planned<'s, T>> {
        Ok(Planned::new(stream, &self.network, &self.weights, options, &self.input)?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use lacuna::matrix::io::smtx;

    use super::super::measure::tests::SPARSE;
    use super::*;

    #[test]
    fn rows_of_the_paper_are_of_one_image_of_its_size() {
        assert!(SPARSE.published().is_some());
        for other in [
            Case { batch: 16, ..SPARSE },
            Case { resolution: 192, ..SPARSE },
            Case { sparsity: 0.8, ..SPARSE },
            Case { width: 1.0, ..SPARSE },
            Case { network: Named::ResNet50, ..SPARSE },
        ] {
            assert_eq!(other.published(), None, "{other:?}");
        }
        assert!(Case { sparsity: 0.0, width: 1.0, ..SPARSE }.published().is_some());
    }

    #[test]
    fn layers_that_dlmc_has_get_its_masks() {
        let case =
            Case { network: Named::TransformerBase, width: 1.0, batch: 1, resolution: 32, sparsity: 0.75 };
        let draw = |dlmc| case.draw(case.network.cut(Cut::Least, 1.0, 1), 1, None, dlmc);
        let data = tempfile::tempdir().unwrap();
        let without = draw(Some(data.path())).unwrap();
        assert_eq!(without.masks, Some(MaskRecord { real: vec![], drawn: 6 * (6 + 10) }));
        let layer = "decoder.0.encdec_attention.k";
        let folder = data.path().join("transformer/magnitude_pruning/0.75");
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(TransformerBase::dlmc_file(layer).unwrap());
        let mask = generate::uniform(32, 32, 0.7, 5).unwrap();
        smtx::write_path(&mask, &file).unwrap();
        let drawn = draw(Some(data.path())).unwrap();
        assert_eq!(drawn.masks, Some(MaskRecord { real: vec![layer.into()], drawn: 95 }));
        for ((name, after), (_, before)) in drawn.weights.iter().zip(without.weights.iter()) {
            if name == format!("{layer}.weight") {
                let is_kept = |at: usize| mask.row_columns(at / 32).contains(&((at % 32) as u32));
                assert!(after.values().iter().enumerate().all(|(at, &value)| (value != 0.0) == is_kept(at)));
            } else {
                assert_eq!(after, before, "{name}");
            }
        }
        smtx::write_path(&generate::uniform(32, 16, 0.7, 5).unwrap(), &file).unwrap();
        let error = draw(Some(data.path())).err().unwrap().to_string();
        assert!(error.contains(layer) && error.contains("32 × 32") && error.contains("32 × 16"), "{error}");
    }
}
