//! What layers with weights have in common: each is a convolution, and has its weights by name.
use lacuna::conv;

use super::Activation;

/// A layer with weights as the convolution that it is: act(w·x + bias + residual).
///
/// A linear layer has taps of 1×1 on maps of one pixel; a factor and a sum for each channel are a depthwise convolution of 1×1 taps.
#[derive(Clone, Debug, PartialEq)]
pub struct Convolution {
    /// Its sizes.
    pub shape: conv::Shape,
    /// The tensor of its filters and that tensor's shape; none where all are 1, before the norm is folded in.
    pub filters: Option<(String, Vec<usize>)>,
    /// The tensor of its bias, an element a filter.
    pub bias: Option<String>,
    /// The batch norm after it.
    pub norm: Option<Norm>,
    /// What is made of sums.
    pub activation: Activation,
    /// Whether the second input is added before the activation.
    pub residual: bool,
}

/// A batch norm, whose tensors begin with one name: `.weight`, `.bias`, `.running_mean`, `.running_var`, as PyTorch has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Norm {
    /// What the names begin with.
    pub prefix: String,
    /// What is added to variances.
    pub epsilon: f32,
}

/// What a tensor of weights is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Filters, or the matrix of a linear layer.
    Filters {
        /// Products of a sum.
        products: usize,
    },
    /// What is added to each channel.
    Bias,
    /// Factors of a norm.
    Gamma,
    /// What a norm adds.
    Beta,
    /// Means of a batch norm.
    Mean,
    /// Variances of a batch norm.
    Variance,
}

impl Role {
    /// Whether training changes it, so that it counts as a parameter: means and variances are statistics.
    pub fn is_trained(self) -> bool {
        !matches!(self, Self::Mean | Self::Variance)
    }
}

/// A tensor of weights that a network needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// What it is for.
    pub role: Role,
}

impl Parameter {
    /// Its elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().fold(1, |product: usize, &extent| product.saturating_mul(extent))
    }
}

impl Convolution {
    /// Products of a sum, zeros and padding counted.
    pub fn products_of_a_sum(&self) -> usize {
        let conv::Shape { channels, taps: [rows, columns], .. } = self.shape;
        let channels = if self.shape.is_depthwise() { 1 } else { channels };
        channels.saturating_mul(rows).saturating_mul(columns)
    }

    /// Multiply-adds, those with zeros and padding counted.
    pub fn products(&self) -> u64 {
        (self.shape.output_len() as u64).saturating_mul(self.products_of_a_sum() as u64)
    }

    /// Whether its weights may be a sparse matrix: taps of 1×1 that reach all channels.
    pub fn may_be_sparse(&self) -> bool {
        self.shape.taps == [1, 1] && !self.shape.is_depthwise()
    }

    /// Whether each pixel of its result is made of the same pixel of its input alone.
    pub(crate) fn is_pixelwise(&self) -> bool {
        self.may_be_sparse() && self.shape.strides == [1, 1] && self.shape.padding == [0, 0]
    }

    /// Whether it is a product with rows of a matrix: one tap on maps of one pixel, without padding.
    pub fn is_linear(&self) -> bool {
        let conv::Shape { size, padding, .. } = self.shape;
        self.may_be_sparse() && size == [1, 1] && padding == [0, 0]
    }

    /// The tensors that it needs.
    pub fn parameters(&self) -> Vec<Parameter> {
        let of_channels = |name: String, role| Parameter { name, shape: vec![self.shape.filters], role };
        let mut parameters = Vec::new();
        if let Some((name, shape)) = &self.filters {
            let role = Role::Filters { products: self.products_of_a_sum() };
            parameters.push(Parameter { name: name.clone(), shape: shape.clone(), role });
        }
        parameters.extend(self.bias.iter().map(|name| of_channels(name.clone(), Role::Bias)));
        if let Some(norm) = &self.norm {
            let roles = [Role::Gamma, Role::Beta, Role::Mean, Role::Variance];
            parameters
                .extend(norm.tensors().into_iter().zip(roles).map(|(name, role)| of_channels(name, role)));
        }
        parameters
    }
}

impl Norm {
    /// A norm whose tensors' names begin so, with PyTorch's usual epsilon, 10⁻⁵.
    pub fn new(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), epsilon: 1e-5 }
    }

    /// The names of factors, sums, means and variances.
    pub fn tensors(&self) -> [String; 4] {
        ["weight", "bias", "running_mean", "running_var"].map(|part| format!("{}.{part}", self.prefix))
    }
}
