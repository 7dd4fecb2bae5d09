//! Passes that make a network smaller before it is packed. Nothing is assumed: what they use, they find in its weights.
mod dead;
mod join;
mod select;

use super::{Layer, OPERATION};
use crate::Error;
use crate::op::options;

options! {
    /// Which passes [`simplify`] makes; all of them, if nothing is said.
    ///
    /// Each leaves the network the function that it is, and its inputs and outputs as they are. `dead` changes no bit of a result.
    /// The others may add up the products of an output in fewer steps, or in another order; [`Passed::regrouped`] says for how many outputs. There the
    /// result has another rounding, within the bound that holds for any order of the sum.
    ///
    /// ```
    /// # use lacuna::spdnn::Passes;
    /// let same_bits = Passes::default().merge(false).constants(false);
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct Passes {
        /// Neurons that are the same number for all samples become part of the biases of the next layer.
        pub constants: bool = true => set,
        /// Neurons of a layer that have the same inputs, weights and bias become one, whose weights in the next layer are the sums of
        /// theirs.
        pub merge: bool = true => set,
        /// Neurons that no later layer reads are left out.
        pub dead: bool = true => set,
    }
}

/// What the passes made of a layer, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Passed {
    /// Outputs before.
    pub outputs: usize,
    /// Weights before.
    pub edges: usize,
    /// Weights after.
    pub edges_left: usize,
    /// Outputs that are constant and that the next layer has in its biases.
    pub constant: usize,
    /// Outputs that became one with another.
    pub merged: usize,
    /// Outputs that nobody reads, and that were left out.
    pub dead: usize,
    /// Outputs that are left and whose sums have other terms than before, or another order: weights added up, or constants in the bias.
    pub regrouped: usize,
    /// Whether outputs could not become one, as a sum of their weights in the next layer is too large for `f32`.
    pub overflows: bool,
}

/// A network that passes have gone over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Simplified {
    /// The layers that are left: as many as before, of as many inputs and outputs at both ends.
    pub layers: Vec<Layer>,
    /// What became of each.
    pub passed: Vec<Passed>,
}

impl Simplified {
    /// What became of all layers together.
    pub fn total(&self) -> Passed {
        self.passed.iter().fold(Passed::default(), |sum, layer| Passed {
            outputs: sum.outputs + layer.outputs,
            edges: sum.edges + layer.edges,
            edges_left: sum.edges_left + layer.edges_left,
            constant: sum.constant + layer.constant,
            merged: sum.merged + layer.merged,
            dead: sum.dead + layer.dead,
            regrouped: sum.regrouped + layer.regrouped,
            overflows: sum.overflows | layer.overflows,
        })
    }
}

/// Makes a network smaller, by these passes. Layers are taken one after another; of those before only what is left is kept.
///
/// ```
/// use lacuna::matrix::Csr;
/// use lacuna::spdnn::{Activation, Bias, Layer, Passes, simplify};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Outputs 0 and 2 of the first layer are the same, and output 1 is 0.5 for all samples.
/// let first = Csr::new(3, 2, vec![0, 2, 2, 4], vec![0, 1, 0, 1], vec![1.0, 2.0, 1.0, 2.0])?;
/// let second = Csr::new(1, 3, vec![0, 3], vec![0, 1, 2], vec![1.0, 4.0, 2.0])?;
/// let layer = |weights, bias| Layer::new(weights, Bias::Scalar(bias), Activation::Relu);
/// let layers = [layer(first, 0.5), layer(second, 0.25)];
///
/// let small = simplify::<lacuna::Error>(layers, Passes::default())?;
/// let [first, second] = &small.layers[..] else { unreachable!() };
/// assert_eq!((first.outputs(), second.weights().values()), (1, &[3.0][..]));
/// assert_eq!(*second.bias(), Bias::PerOutput(vec![2.25]));
/// assert_eq!((small.total().merged, small.total().constant), (1, 1));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of the layers; [`Error::Parameter`] where a layer has not as many inputs as the layer before has outputs.
pub fn simplify<E: From<Error>>(
    layers: impl IntoIterator<Item = std::result::Result<Layer, E>>,
    passes: Passes,
) -> std::result::Result<Simplified, E> {
    let (mut done, mut passed) = (Vec::new(), Vec::<Passed>::new());
    let mut before: Option<Layer> = None;
    for layer in layers {
        let layer = layer?;
        passed.push(Passed { outputs: layer.outputs(), edges: layer.weights().nnz(), ..Passed::default() });
        let Some(own) = before.take() else {
            before = Some(layer);
            continue;
        };
        let at = passed.len() - 1;
        let [expected, got] = [own.outputs(), layer.inputs()];
        let tell = || format!("{expected}, the outputs of layer {} before it", at - 1);
        Error::expect(got == expected, OPERATION, "the number of inputs of a layer", tell, got)?;
        let [of_own, of_layer] = &mut passed[at - 1..] else { unreachable!("two layers are known") };
        let (own, layer) = join::join(own, layer, passes, of_own, of_layer)?;
        done.push(own);
        before = Some(layer);
    }
    done.extend(before);
    if passes.dead {
        dead::leave_out(&mut done, &mut passed)?;
    }
    for (layer, passed) in done.iter().zip(&mut passed) {
        passed.edges_left = layer.weights().nnz();
    }
    Ok(Simplified { layers: done, passed })
}
