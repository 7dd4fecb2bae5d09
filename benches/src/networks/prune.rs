//! Pruning by magnitude: of each layer's weights the smallest become zero.
use anyhow::Result;
use lacuna_models::network::{Convolution, Network};
use lacuna_models::weights::Weights;

/// The tensors that are pruned: filters of 1×1 taps and matrices of linear layers. The first layer of networks for images has more taps.
fn prunable(network: &Network) -> Vec<(String, Vec<usize>)> {
    let with_weights = network.layers().iter().filter_map(|layer| network.convolution(layer));
    with_weights.filter(Convolution::may_be_sparse).filter_map(|conv| conv.filters).collect()
}

/// Sets this part of each of them to zero: the smallest.
///
/// # Errors
/// Weights that are not the network's.
pub(super) fn prune(network: &Network, weights: &mut Weights, part: f64) -> Result<()> {
    if part <= 0.0 {
        return Ok(());
    }
    let chosen = prunable(network);
    for (name, shape) in &chosen {
        weights.get(name, shape)?;
    }
    Ok(lacuna_models::prune::each(weights, part, |name, _| chosen.iter().any(|(chosen, _)| chosen == name))?)
}

#[cfg(test)]
mod tests {
    use super::super::Named;
    use super::super::named::Cut;
    use super::*;

    #[test]
    fn pointwise_and_linear_layers_are_pruned_and_no_others() {
        let names = |named: Named| -> Vec<String> {
            let network = named.cut(Cut::Least, 1.0, 1).unwrap();
            prunable(&network).into_iter().map(|(name, _)| name).collect()
        };
        let mobilenet = names(Named::MobileNetV1);
        assert_eq!(mobilenet.len(), 14);
        assert_eq!((mobilenet[0].as_str(), mobilenet[13].as_str()), ("model.1.3.weight", "fc.weight"));
        assert_eq!(
            names(Named::Vgg16),
            ["classifier.0.weight", "classifier.3.weight", "classifier.6.weight"]
        );
        // Two of a block's three, four downsamplings, and the last.
        assert_eq!(names(Named::ResNet50).len(), 2 * 16 + 4 + 1);
        // A norm of its own has one tap too, and no filters.
        assert!(names(Named::DenseNet121).iter().all(|name| !name.contains("norm")));
    }

    #[test]
    fn as_much_is_zero_as_was_asked_for() {
        let network = Named::MobileNetV1.cut(Cut::Least, 1.0, 1).unwrap();
        let dense = Weights::drawn(&network, 1).unwrap();
        let mut weights = dense.clone();
        prune(&network, &mut weights, 0.0).unwrap();
        assert_eq!(weights, dense);
        prune(&network, &mut weights, 0.9).unwrap();
        let pruned = prunable(&network);
        for ((name, after), (_, before)) in weights.iter().zip(dense.iter()) {
            let zeros = after.values().iter().filter(|&&value| value == 0.0).count() as f64;
            let is_pruned = pruned.iter().any(|(pruned, _)| pruned == name);
            let wanted = if is_pruned { (0.9 * after.values().len() as f64).round() } else { 0.0 };
            assert_eq!(zeros, wanted, "{name}");
            assert!(is_pruned || after == before, "{name}");
        }
    }
}
