//! Which tensors are pruned.
use crate::weights::Tensor;

/// Whether a tensor has two dimensions or more: filters and matrices, not biases and scales. What is pruned where nothing is said.
pub fn is_matrix(_name: &str, tensor: &Tensor) -> bool {
    tensor.shape().len() >= 2
}

/// Patterns of names. A name fits one if the pattern's parts between `*` are in the name, one after another: `conv` fits all names
/// with `conv`, and `layer1*weight` those with `layer1` and, after it, `weight`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patterns {
    patterns: Vec<String>,
}

impl Patterns {
    /// These patterns.
    pub fn new(patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { patterns: patterns.into_iter().map(Into::into).collect() }
    }

    /// Whether a name fits one of them.
    pub fn fit(&self, name: &str) -> bool {
        self.patterns.iter().any(|pattern| fits(pattern, name))
    }

    /// Those that fit none of these names.
    pub fn unused<'n>(&self, names: impl Iterator<Item = &'n str> + Clone) -> Vec<&str> {
        let unused = |pattern: &&String| !names.clone().any(|name| fits(pattern, name));
        self.patterns.iter().filter(unused).map(String::as_str).collect()
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    let mut rest = name;
    pattern.split('*').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}
