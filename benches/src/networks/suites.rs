//! Networks of papers' tables and figures.
use clap::ValueEnum;

use super::{Case, Named, TABLE_IV};

/// Networks to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// MobileNetV1 as in table IV of SC 2020: dense of widths 1.0 to 1.4, and 90 % sparse of 1.3 to 1.8.
    Table4,
    /// The Transformer with a sparse mask, as in table III of SC 2020, with dense weights and with 90 % zeros.
    Table3,
    /// The Transformer for translation with DLMC's masks, of 70, 80, 90 and 95 % zeros: sentences of --tokens tokens (256), --batch of them (1).
    TransformerBase,
    /// ResNet, DenseNet and VGG as in PACT 2022, section 4.4.
    FeatureMaps,
}

/// Parts of zeros for which there are masks.
const DLMC: [f64; 4] = [0.7, 0.8, 0.9, 0.95];
/// Those with zeros in their feature maps.
const FEATURE_MAPS: [Named; 6] =
    [Named::ResNet50, Named::ResNet152, Named::DenseNet169, Named::DenseNet201, Named::Vgg16, Named::Vgg19];

impl Suite {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table4 => "table4",
            Self::Table3 => "table3",
            Self::TransformerBase => "transformer-base",
            Self::FeatureMaps => "feature-maps",
        }
    }

    /// Its networks, with one image or sequence each.
    pub fn cases(self) -> Vec<Case> {
        let case = |network: Named, width, sparsity| {
            let resolution = network.usual_size();
            Case { network, width, batch: 1, resolution, sparsity }
        };
        match self {
            Self::Table4 => {
                let rows = TABLE_IV.iter();
                let sparsity = |is_sparse| if is_sparse { 0.9 } else { 0.0 };
                rows.map(|row| case(Named::MobileNetV1, row.width, sparsity(row.is_sparse))).collect()
            }
            Self::Table3 => [0.0, 0.9].map(|sparsity| case(Named::Transformer, 1.0, sparsity)).to_vec(),
            Self::TransformerBase => {
                DLMC.map(|sparsity| case(Named::TransformerBase, 1.0, sparsity)).to_vec()
            }
            Self::FeatureMaps => FEATURE_MAPS.into_iter().map(|network| case(network, 1.0, 0.0)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_has_the_networks_of_its_paper() {
        let cases = Suite::Table4.cases();
        let sparse: Vec<f64> =
            cases.iter().filter(|case| case.sparsity == 0.9).map(|case| case.width).collect();
        assert_eq!((cases.len(), &sparse[..]), (9, &[1.3, 1.4, 1.5, 1.6, 1.7, 1.8][..]));
        assert!(cases.iter().all(|case| case.published().is_some()));
        assert!(Suite::FeatureMaps.cases().iter().all(|case| case.sparsity == 0.0 && case.batch == 1));
        let base = Suite::TransformerBase.cases();
        assert!(base.iter().all(|case| case.resolution == 256 && case.published().is_none()));
        // The names of the command line are those of records.
        for suite in Suite::value_variants() {
            assert_eq!(suite.to_possible_value().unwrap().get_name(), suite.name());
        }
    }
}
