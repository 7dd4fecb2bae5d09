//! The networks by their names on the command line, in full and cut.
use clap::ValueEnum;
use lacuna_models::network::{Network, NetworkError};
use lacuna_models::networks::{DenseNet, MobileNetV1, ResNet, Transformer, TransformerBase, Vgg};

use super::published::TOKENS;

/// A network of a paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Named {
    /// MobileNetV1, of any width.
    #[value(name = "mobilenet-v1")]
    MobileNetV1,
    /// ResNet-50.
    #[value(name = "resnet-50")]
    ResNet50,
    /// ResNet-101.
    #[value(name = "resnet-101")]
    ResNet101,
    /// ResNet-152.
    #[value(name = "resnet-152")]
    ResNet152,
    /// DenseNet-121.
    #[value(name = "densenet-121")]
    DenseNet121,
    /// DenseNet-169.
    #[value(name = "densenet-169")]
    DenseNet169,
    /// DenseNet-201.
    #[value(name = "densenet-201")]
    DenseNet201,
    /// VGG-16.
    #[value(name = "vgg-16")]
    Vgg16,
    /// VGG-19.
    #[value(name = "vgg-19")]
    Vgg19,
    /// The Transformer with a sparse attention mask.
    #[value(name = "transformer")]
    Transformer,
    /// The Transformer for translation, of DLMC's shapes: encoder, decoder and dense attention.
    #[value(name = "transformer-base")]
    TransformerBase,
}

/// How far a network is cut, so that the host can work it out in `f64`: its layers stay, but have fewer channels and pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// For a GPU: a quarter of the channels.
    Quarter,
    /// For the simulator: a sixteenth or so.
    Least,
}

/// Tokens of a sentence, as suite `dlmc` has them.
const SENTENCE: usize = 256;

/// Of the tokens that the Transformer's mask has by chance.
const MASK_SEED: u64 = 1;

/// Images of a cut network at most.
const CUT_BATCH: usize = 2;

impl Named {
    /// Its name.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The network for so many images of so many rows and columns, or sequences of so many tokens; the width is MobileNetV1's.
    ///
    /// # Errors
    /// Sizes that do not fit.
    pub fn network(self, width: f64, resolution: usize, batch: usize) -> Result<Network, NetworkError> {
        let size = [resolution; 2];
        match self.kind() {
            Kind::MobileNet => MobileNetV1 { width, size, ..MobileNetV1::default() }.network(batch),
            Kind::ResNet(full) => ResNet { size, ..full }.network(batch),
            Kind::DenseNet(full) => DenseNet { size, ..full }.network(batch),
            Kind::Vgg(full) => Vgg { size, ..full }.network(batch),
            Kind::Transformer => Transformer::table_iii(resolution, MASK_SEED)?.network(batch),
            Kind::TransformerBase => TransformerBase::dense(resolution, resolution)?.network(batch),
        }
    }

    /// Whether its input are tokens, and not images.
    pub fn has_tokens(self) -> bool {
        matches!(self, Self::Transformer | Self::TransformerBase)
    }

    /// Rows and columns of the input, or tokens, if nothing is said.
    pub fn usual_size(self) -> usize {
        match self {
            Self::Transformer => TOKENS,
            Self::TransformerBase => SENTENCE,
            _ => 224,
        }
    }

    /// The same layers, cut.
    ///
    /// # Errors
    /// A width that is none.
    pub(super) fn cut(self, cut: Cut, width: f64, batch: usize) -> Result<Network, NetworkError> {
        let batch = batch.min(CUT_BATCH);
        let is_least = cut == Cut::Least;
        let (size, classes) = if is_least { ([32, 32], 10) } else { ([64, 64], 100) };
        match self.kind() {
            Kind::MobileNet => {
                let width = width / if is_least { 8.0 } else { 4.0 };
                MobileNetV1 { width, size, classes, ..MobileNetV1::default() }.network(batch)
            }
            Kind::ResNet(full) => {
                let width = if is_least { 4 } else { full.width / 4 };
                ResNet { width, size, classes, ..full }.network(batch)
            }
            Kind::DenseNet(full) => {
                let growth = if is_least { 4 } else { full.growth / 4 };
                DenseNet { growth, size, classes, ..full }.network(batch)
            }
            Kind::Vgg(full) => {
                let (width, hidden) = if is_least { (4, 16) } else { (full.width / 4, full.hidden / 16) };
                // One pixel is left, which lies alike in both layouts.
                Vgg { width, hidden, size: [32, 32], classes, ..full }.network(batch)
            }
            Kind::Transformer => {
                let (tokens, hidden) = if is_least { (128, 64) } else { (512, 256) };
                let full = Transformer::table_iii(tokens, MASK_SEED)?;
                let (filter, vocabulary) = (4 * hidden, Some(classes));
                Transformer { hidden, filter, vocabulary, ..full }.network(batch)
            }
            Kind::TransformerBase => {
                // The larger one has heads of 64 features, as the whole network.
                let (tokens, hidden, heads) = if is_least { (16, 32, 8) } else { (32, 128, 2) };
                let full = TransformerBase::dense(tokens, tokens)?;
                TransformerBase { hidden, heads, filter: 4 * hidden, ..full }.network(batch)
            }
        }
    }

    fn kind(self) -> Kind {
        match self {
            Self::MobileNetV1 => Kind::MobileNet,
            Self::ResNet50 => Kind::ResNet(ResNet::R50),
            Self::ResNet101 => Kind::ResNet(ResNet::R101),
            Self::ResNet152 => Kind::ResNet(ResNet::R152),
            Self::DenseNet121 => Kind::DenseNet(DenseNet::D121),
            Self::DenseNet169 => Kind::DenseNet(DenseNet::D169),
            Self::DenseNet201 => Kind::DenseNet(DenseNet::D201),
            Self::Vgg16 => Kind::Vgg(Vgg::V16),
            Self::Vgg19 => Kind::Vgg(Vgg::V19),
            Self::Transformer => Kind::Transformer,
            Self::TransformerBase => Kind::TransformerBase,
        }
    }
}

/// What networks have in common.
enum Kind {
    MobileNet,
    ResNet(ResNet),
    DenseNet(DenseNet),
    Vgg(Vgg),
    Transformer,
    TransformerBase,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_network_has_the_layers_of_the_whole_one() {
        for named in Named::value_variants() {
            let resolution = if *named == Named::Transformer { 4096 } else { named.usual_size() };
            let full = named.network(1.4, resolution, 1).unwrap();
            for cut in [Cut::Quarter, Cut::Least] {
                let small = named.cut(cut, 1.4, 5).unwrap();
                let names = |network: &Network| -> Vec<String> {
                    network.layers().iter().map(|layer| layer.name.clone()).collect()
                };
                assert_eq!(names(&small), names(&full));
                assert_eq!(small.input_shape().images, CUT_BATCH);
                assert!(small.multiply_adds() < full.multiply_adds() / 50, "{named:?} {cut:?}");
            }
        }
    }

    #[test]
    fn names_are_those_of_papers() {
        let names: Vec<String> = Named::value_variants().iter().map(|named| named.name()).collect();
        assert_eq!(names[0], "mobilenet-v1");
        assert!(["resnet-152", "densenet-201", "vgg-19"].iter().all(|name| names.contains(&(*name).into())));
    }
}
