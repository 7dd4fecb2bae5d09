//! The constants of a cost model: data, a file for an operation and a family of GPUs.
use serde::{Deserialize, Serialize};

/// A cost model as data: what it is for, where it comes from, and its constants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFile {
    /// What the file is.
    pub about: String,
    /// The GPUs that it is for.
    pub gpus: Vec<String>,
    /// The measurements that it was fitted to.
    pub provenance: Provenance,
    /// The constants, by what they are about.
    pub sections: Vec<Section>,
}

/// Where a model's constants come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The GPU that was measured.
    pub gpu: String,
    /// The revision whose kernels were measured.
    pub revision: String,
    /// The measurements.
    pub records: String,
    /// The command that finds the constants again.
    pub command: String,
}

/// Constants that belong together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// The measurements that tell its constants: `f32` or `16-bit`, or `all`.
    pub fitted_to: String,
    /// The constants.
    pub constants: Vec<Constant>,
}

/// A constant of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Where the fit begins: an earlier value.
    pub start: f64,
    /// Its unit.
    pub unit: String,
    /// The least and the largest value that the fit may give it.
    pub bounds: [f64; 2],
    /// What it means.
    pub about: String,
}

impl ModelFile {
    /// The constants that these measurements tell, `f32`, `16-bit` or `all`, in order.
    pub fn fitted_to<'f>(&'f self, kind: &'f str) -> impl Iterator<Item = &'f Constant> {
        self.sections.iter().filter(move |section| section.fitted_to == kind).flat_map(|of| &of.constants)
    }

    /// The same with other values, in the same order.
    #[must_use]
    pub fn with_values(mut self, kind: &str, values: &[f64]) -> Self {
        let sections = self.sections.iter_mut().filter(|section| section.fitted_to == kind);
        for (constant, &value) in sections.flat_map(|section| &mut section.constants).zip(values) {
            constant.value = value;
        }
        self
    }

    /// The value of a constant.
    ///
    /// # Panics
    /// If there is none of this name.
    pub(crate) fn value(&self, section: &str, name: &str) -> f64 {
        let mut sections = self.sections.iter().filter(|known| known.name == section);
        let constant = sections.find_map(|known| known.constants.iter().find(|known| known.name == name));
        constant.unwrap_or_else(|| panic!("expected the constant {section}.{name} in the model's file")).value
    }
}

/// Defines constants, and how they are read from a section; or (`of`) how some are read over others.
macro_rules! section {
    ($(#[$about:meta])* $type:ident: $($name:ident)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(super) struct $type {
            $(pub(super) $name: f64,)*
        }

        impl $type {
            fn read(file: &$crate::op::ModelFile, section: &str) -> Self {
                Self { $($name: file.value(section, stringify!($name)),)* }
            }
        }
    };
    ($(#[$about:meta])* $read:ident of $type:ident: $($name:ident)*) => {
        impl $type {
            $(#[$about])*
            fn $read(self, file: &$crate::op::ModelFile, section: &str) -> Self {
                Self { $($name: file.value(section, stringify!($name)),)* ..self }
            }
        }
    };
}
pub(crate) use section;
