//! Pruning by magnitude: of each layer's weights the smallest become zero.
use anyhow::Result;
use lacuna_models::network::{Convolution, Network};
use lacuna_models::weights::Weights;

/// The tensors that are pruned: filters of 1×1 taps and matrices of linear layers, but those of the first layer with weights.
fn prunable(network: &Network) -> Vec<(String, Vec<usize>)> {
    let with_weights = network.layers().iter().filter_map(|layer| network.convolution(layer));
    with_weights.skip(1).filter(Convolution::may_be_sparse).filter_map(|conv| conv.filters).collect()
}

/// Sets this part of each of them to zero: the smallest.
///
/// # Errors
/// Weights that are not the network's.
pub(super) fn prune(network: &Network, weights: &mut Weights, part: f64) -> Result<()> {
    if part <= 0.0 {
        return Ok(());
    }
    for (name, shape) in prunable(network) {
        let mut tensor = weights.get(&name, &shape)?.clone();
        zero_smallest(tensor.values_mut(), part);
        weights.insert(name, tensor);
    }
    Ok(())
}

/// Sets the smallest to zero; of equal ones the first.
fn zero_smallest(values: &mut [f32], part: f64) {
    let count = ((values.len() as f64 * part).round() as usize).min(values.len());
    if count == 0 {
        return;
    }
    let mut sizes: Vec<f32> = values.iter().map(|value| value.abs()).collect();
    let (below, &mut limit, _) = sizes.select_nth_unstable_by(count - 1, f32::total_cmp);
    let mut equal = count - below.iter().filter(|&&size| size < limit).count();
    for value in values {
        let is_equal = value.abs() == limit && equal > 0;
        equal -= usize::from(is_equal);
        if is_equal || value.abs() < limit {
            *value = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Named;
    use super::super::named::Cut;
    use super::*;

    #[test]
    fn the_smallest_become_zero_and_no_more() {
        let pruned = |mut values: Vec<f32>, part| {
            zero_smallest(&mut values, part);
            values
        };
        assert_eq!(pruned(vec![3.0, -1.0, 2.0, -4.0], 0.5), [3.0, 0.0, 0.0, -4.0]);
        assert_eq!(pruned(vec![1.0; 4], 0.5), [0.0, 0.0, 1.0, 1.0]);
        assert_eq!(pruned(vec![0.0, 2.0, 0.0, 1.0], 0.75), [0.0, 2.0, 0.0, 0.0]);
        assert_eq!(pruned(vec![1.0, 2.0], 1.0), [0.0, 0.0]);
        assert_eq!(pruned(vec![1.0, 2.0], 0.1), [1.0, 2.0]);
        assert!(pruned(Vec::new(), 0.5).is_empty());
    }

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
