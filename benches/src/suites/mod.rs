//! Suites: lists of problems under a name.
mod attention;
mod crossover;
mod cut;
mod dlmc;
pub(crate) mod imbalance;
pub(crate) mod mobilenet;
pub(crate) mod nhot;
mod rnn;
pub(crate) mod sddmm;
mod shapes;
mod smoke;
mod table;
pub(crate) mod topn;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use lacuna::matrix::Pattern;

pub use cut::{Sample, for_simulator, thinned};

use crate::exit::Usage;
use crate::op::Op;
use crate::peers::MOST_DENSE_BYTES;
use crate::profile::Profile;

/// A problem of a suite: an operation, a matrix to generate, and the width of the dense operands.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The operation.
    pub op: Op,
    /// Its name in tables.
    pub name: String,
    /// Rows of the sparse matrix.
    pub rows: usize,
    /// Its columns.
    pub cols: usize,
    /// Columns of the dense operands, as in [`Problem::width`](crate::problem::Problem::width).
    pub width: usize,
    /// How often it is done in one call, with other values.
    pub batch: usize,
    /// The pattern of the sparse matrix.
    pub pattern: PatternKind,
    /// The part of the suite that it is summed up with, or nothing.
    pub group: String,
}

impl Case {
    /// A case of an operation with a sparse matrix of rows × columns and dense ones of a width, in no group.
    fn new(op: Op, name: String, [rows, cols, width]: [usize; 3], pattern: PatternKind) -> Self {
        Self { op, name, rows, cols, width, batch: 1, pattern, group: String::new() }
    }

    /// The `top` largest of each of `rows` rows of `cols` logits, named by these numbers.
    pub fn logits(rows: usize, cols: usize, top: usize) -> Self {
        let name = format!("{rows}×{cols}, top {top}");
        Self::new(Op::TopN, name, [rows, cols, top], PatternKind::Dense)
    }

    /// The part of zeros that the suite means, as far as it names one: a drawn matrix has it up to chance.
    pub fn level(&self) -> Option<f64> {
        let percent = |sparsity: f64| (sparsity * 100.0).round() / 100.0;
        match &self.pattern {
            PatternKind::Uniform { sparsity } => Some(*sparsity),
            PatternKind::Varied { mean, .. } => Some(percent(1.0 - mean / self.cols as f64)),
            PatternKind::Given(pattern) => Some(percent(pattern.stats().sparsity)),
            PatternKind::PowerLaw { .. } | PatternKind::Dense => None,
            PatternKind::Mask { sparsity, .. } => Some(*sparsity),
        }
    }

    /// The coefficient of variation of the row lengths that the suite means, as far as it names one.
    pub fn cov(&self) -> Option<f64> {
        if let PatternKind::Varied { cov, .. } = self.pattern { Some(cov) } else { None }
    }

    /// Nonzeros that the matrix will have, up to rounding and chance; elements of a dense one.
    fn nonzeros(&self) -> f64 {
        let (rows, cols) = (self.rows as f64, self.cols as f64);
        match &self.pattern {
            PatternKind::Uniform { sparsity } => (1.0 - sparsity) * rows * cols,
            PatternKind::Varied { mean, .. } | PatternKind::PowerLaw { mean, .. } => mean * rows,
            PatternKind::Given(pattern) => pattern.nnz() as f64,
            PatternKind::Mask { band, sparsity } => {
                let (band, below) = ((*band as f64).min(rows), (rows - *band as f64).max(0.0));
                band * (rows - 0.5 * band) + (1.0 - sparsity) * 0.5 * below * below
            }
            PatternKind::Dense => rows * cols,
        }
    }

    /// Products: nonzeros times the width; of softmax and top-N, what takes the simulator as long.
    fn products(&self) -> f64 {
        let width = self.width as f64;
        let each = match self.op {
            Op::Spmm | Op::Sddmm | Op::NHot => width,
            Op::Attention => 2.0 * width,
            Op::SparseSoftmax => 16.0 * width,
            Op::TopN => 16.0,
        };
        each * self.nonzeros() * self.batch as f64
    }

    /// Bytes of all operands in f32, ours and the peers', and of the sparse matrix without its sparsity, as the dense peers
    /// need it.
    fn bytes(&self) -> f64 {
        let [rows, cols, width, batch] =
            [self.rows, self.cols, self.width, self.batch].map(|size| size as f64);
        let nonzeros = self.nonzeros();
        match self.op {
            // A twice, B, C twice.
            Op::Spmm => 8.0 * nonzeros + 4.0 * (rows * cols + cols * width + 2.0 * rows * width),
            // A, B, D twice.
            Op::Sddmm => 16.0 * nonzeros + 4.0 * (rows * cols + (rows + cols) * width),
            Op::SparseSoftmax => 4.0 * nonzeros * (1.0 + 2.0 * batch),
            // The mask, Q, K, V, O twice, and scores: sparse ones, twice, and dense ones.
            Op::Attention => {
                8.0 * nonzeros * (1.0 + batch)
                    + 4.0 * batch * (rows * cols + (3.0 * rows + 2.0 * cols) * width)
            }
            // The bags twice, the table, Y three times. A dense X is left out where it is too large.
            Op::NHot => {
                12.0 * nonzeros
                    + 4.0 * (cols + 3.0 * rows) * width
                    + (4.0 * rows * cols).min(MOST_DENSE_BYTES as f64)
            }
            // The logits, and a copy from and to another place.
            Op::TopN => 12.0 * nonzeros + 8.0 * rows * width,
        }
    }
}

/// Where a pattern comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum PatternKind {
    /// This one.
    Given(Arc<Pattern>),
    /// Positions uniform over the matrix.
    Uniform {
        /// The part that is zero.
        sparsity: f64,
    },
    /// Row lengths with a coefficient of variation.
    Varied {
        /// Nonzeros of the average row.
        mean: f64,
        /// Standard deviation of the row lengths over their mean.
        cov: f64,
    },
    /// None: the matrix is dense.
    Dense,
    /// Causal attention: a dense band, and ever fewer positions away from it.
    Mask {
        /// Columns of the band, the diagonal among them.
        band: usize,
        /// The part of what is below the band that is zero.
        sparsity: f64,
    },
    /// Row lengths by a power law, as in graphs.
    PowerLaw {
        /// Nonzeros of the average row.
        mean: f64,
        /// The law's exponent.
        exponent: f64,
    },
}

/// What a suite is made for.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The machine.
    pub profile: Profile,
    /// The folder of real matrices, where one was named.
    pub data: Option<PathBuf>,
    /// The most cases that are to run, where a number was named.
    pub limit: Option<usize>,
}

/// A list of problems.
struct Suite {
    name: &'static str,
    about: &'static str,
    cases: fn(&Setup) -> Result<Vec<Case>>,
}

const SUITES: [Suite; 15] = [
    Suite {
        name: "smoke",
        about: "small problems of every kind, for the simulator: under two minutes",
        cases: |_| Ok(smoke::cases()),
    },
    Suite {
        name: "rnn",
        about: "weights of recurrent networks, hidden sizes 1k to 8k (SC 2020, Fig. 10)",
        cases: |_| Ok(rnn::cases()),
    },
    Suite {
        name: "dlmc",
        about: "weights of ResNet-50 and a Transformer, real with --data (SC 2020, Fig. 9, Table I)",
        cases: dlmc::cases,
    },
    Suite {
        name: imbalance::NAME,
        about: "an LSTM's weights with more and more uneven rows (SC 2020, Fig. 7)",
        cases: |setup| Ok(imbalance::cases(setup)),
    },
    Suite {
        name: "crossover",
        about: "an LSTM's weights from 50 % to 99 % zeros (SC 2020, Fig. 1)",
        cases: |setup| Ok(crossover::cases(setup)),
    },
    Suite {
        name: "mobilenet",
        about: "1×1 convolutions of MobileNetV1, widths 1.3 to 1.8 (SC 2020, Table IV)",
        cases: |_| Ok(mobilenet::cases()),
    },
    Suite {
        name: "shapes",
        about: "problems of every shape, to which the chooser's model is fitted",
        cases: |_| Ok(shapes::cases()),
    },
    Suite {
        name: "table",
        about: "fourteen uniform problems from 512 to 16,384 rows",
        cases: |_| Ok(table::cases()),
    },
    Suite {
        name: sddmm::RNN,
        about: "SDDMM: gradients of the weights of `rnn` (SC 2020, Fig. 10), and six problems more",
        cases: |_| Ok(sddmm::rnn_cases()),
    },
    Suite {
        name: sddmm::DLMC,
        about: "SDDMM: gradients of the weights of `dlmc` (SC 2020, Fig. 9, Table I)",
        cases: sddmm::dlmc_cases,
    },
    Suite {
        name: sddmm::GRAPHS,
        about: "SDDMM along the edges of graphs, real with --data, K from 32 to 1024 (PRedS, Table II)",
        cases: sddmm::graph_cases,
    },
    Suite {
        name: "softmax",
        about: "sparse softmax of attention's scores, and of uniform ones, 1k to 12k tokens",
        cases: |_| Ok(attention::softmax_cases()),
    },
    Suite {
        name: "attention",
        about: "sparse attention, 8 heads of 64, 1k to 12k tokens (SC 2020, section VII-C)",
        cases: |_| Ok(attention::cases()),
    },
    Suite {
        name: nhot::NAME,
        about: "few-hot lookup: sums of 1 to 100 rows of a table (ACL 2019, Table 1), and a table larger than caches",
        cases: |_| Ok(nhot::cases()),
    },
    Suite {
        name: topn::NAME,
        about: "softmax and top-N: 10,240 logits a row (ACL 2019, Table 2), and vocabularies of 32k to 152k",
        cases: |_| Ok(topn::cases()),
    },
];

/// The cases of a suite that fit the machine's memory; what does not is named on stderr.
///
/// # Errors
/// [`Usage`] for a name that is none, with a list of those that are; data that cannot be read.
pub fn find(name: &str, setup: &Setup) -> Result<Vec<Case>> {
    let Some(suite) = SUITES.iter().find(|suite| suite.name == name) else {
        let list: Vec<String> =
            SUITES.iter().map(|suite| format!("  {:12} {}", suite.name, suite.about)).collect();
        return Err(Usage(format!("there is no suite `{name}`; there are:\n{}", list.join("\n"))).into());
    };
    let mut cases = (suite.cases)(setup)?;
    cases.retain(|case| {
        let fits = case.bytes() <= setup.profile.usable_bytes();
        if !fits {
            eprintln!("lacuna-bench: {} does not fit the memory of {}", case.name, setup.profile.name());
        }
        fits
    });
    Ok(cases)
}

/// A uniform case of SpMM, named by its numbers.
fn uniform(m: usize, k: usize, n: usize, sparsity: f64) -> Case {
    let pattern = PatternKind::Uniform { sparsity };
    Case::new(Op::Spmm, format!("{m} {k} {n} {sparsity}"), [m, k, n], pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(profile: &str) -> Setup {
        Setup { profile: Profile::named(profile).unwrap(), data: None, limit: None }
    }

    #[test]
    fn suites_have_their_cases() {
        let count = |name, profile| find(name, &setup(profile)).unwrap().len();
        assert_eq!(count("rnn", "h200"), 72);
        assert_eq!(count("rnn", "v100"), 72);
        assert_eq!(count("table", "a100"), 14);
        assert!(count("smoke", "v100") >= 10);
        assert_eq!(count("imbalance", "v100") * 2, count("imbalance", "h200"));
        assert_eq!(count("crossover", "v100") * 2, count("crossover", "a100"));
        assert_eq!(count("mobilenet", "v100"), 72);
        assert_eq!(count("sddmm-rnn", "v100"), 78);
        assert_eq!(count("sddmm-dlmc", "h200"), 216);
        assert_eq!(count("sddmm-graphs", "h200"), 30);
        assert_eq!((count("softmax", "v100"), count("attention", "v100")), (10, 5));
        assert_eq!((count("nhot", "v100"), count("topn", "v100")), (9, 36));
    }

    #[test]
    fn names_tell_cases_apart() {
        for name in SUITES.map(|suite| suite.name).into_iter().filter(|name| !name.ends_with("dlmc")) {
            let cases = find(name, &setup("h200")).unwrap();
            let mut keys: Vec<_> = cases.iter().map(|case| (&case.name, case.width)).collect();
            keys.sort();
            keys.dedup();
            assert_eq!(keys.len(), cases.len(), "{name}");
        }
    }

    #[test]
    fn another_name_lists_the_suites() {
        let error = find("help", &setup("h200")).unwrap_err().to_string();
        assert!(SUITES.iter().all(|suite| error.contains(suite.name)), "{error}");
    }
}
