//! The 1×1 convolutions of MobileNetV1 at 90 % zeros, one image, as wide as in SC 2020, Table IV. The first one stays
//! dense, as there.
use super::{Case, PatternKind};
use crate::op::Op;

/// Width multipliers of the paper's sparse networks.
pub(crate) const WIDTHS: [f64; 6] = [1.3, 1.4, 1.5, 1.6, 1.7, 1.8];
const SPARSITY: f64 = 0.9;
/// Sparse 1×1 convolutions of a network.
pub(crate) const LAYERS: usize = 12;

/// Inputs, outputs and pixels a side of the 1×1 convolutions after the first, at width 1.
const CONVOLUTIONS: [(usize, usize, usize); LAYERS] = [
    (64, 128, 56),
    (128, 128, 56),
    (128, 256, 28),
    (256, 256, 28),
    (256, 512, 14),
    (512, 512, 14),
    (512, 512, 14),
    (512, 512, 14),
    (512, 512, 14),
    (512, 512, 14),
    (512, 1024, 7),
    (1024, 1024, 7),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for width in WIDTHS {
        for (index, &(inputs, outputs, side)) in CONVOLUTIONS.iter().enumerate() {
            cases.push(Case {
                group: group(width),
                ..Case::new(
                    Op::Spmm,
                    format!("width {width} block {}", index + 2),
                    [channels(outputs, width), channels(inputs, width), (side * side).next_multiple_of(4)],
                    PatternKind::Uniform { sparsity: SPARSITY },
                )
            });
        }
    }
    cases
}

/// The group of a network's cases.
pub(crate) fn group(width: f64) -> String {
    format!("width {width}")
}

/// Channels of a wider layer: the nearest multiple of eight.
fn channels(count: usize, width: f64) -> usize {
    (count as f64 * width / 8.0).round() as usize * 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_fit_each_other() {
        let cases = cases();
        assert_eq!(cases.len(), 72);
        for network in cases.chunks(CONVOLUTIONS.len()) {
            assert!(
                network.windows(2).all(|pair| pair[0].rows == pair[1].cols && pair[0].width >= pair[1].width)
            );
        }
        let first = (cases[0].rows, cases[0].cols, cases[0].width, cases[11].width);
        assert_eq!(first, (168, 80, 3136, 52));
    }
}
