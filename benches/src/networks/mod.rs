//! Whole networks of papers: MobileNetV1 with sparse weights (SC 2020, table IV), the Transformer with a sparse mask (table III), the one for translation with DLMC's
//! masks, and ResNet, DenseNet and VGG with zeros in their feature maps (PACT
//! 2022, section 4.4), beside their dense twins.
mod case;
mod export;
mod imported;
mod layers;
mod measure;
mod named;
mod planned;
mod plot;
mod print;
mod prune;
mod published;
mod record;
mod suites;
mod twins;

pub use case::{Case, of_network};
pub use imported::{FileCase, measure as measure_file};
pub(crate) use measure::difference;
pub use measure::{How, measure};
pub use named::Named;
pub use plot::{is_first_of, plot};
pub use print::{layers as layer_table, line, summary};
pub use published::{Row, TABLE_III, TABLE_IV, TOKENS};
pub use record::{
    CUDNN, Cost, DENSE, LIMIT, LIMIT_BF16, LIMIT_F16, LayerRecord, MaskRecord, Record, SAME_ACCURACY, Twin,
};
pub use suites::Suite;
