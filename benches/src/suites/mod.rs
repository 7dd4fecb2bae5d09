//! Suites: lists of problems under a name.
mod rnn;
mod shapes;
mod smoke;
mod table;

use crate::exit::Usage;

/// A problem of a suite: a matrix to generate, and N.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Its name in tables.
    pub name: String,
    /// Rows of A.
    pub m: usize,
    /// Columns of A.
    pub k: usize,
    /// Columns of B.
    pub n: usize,
    /// The pattern of A.
    pub pattern: PatternKind,
}

/// How a pattern is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PatternKind {
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
    /// Row lengths by a power law, as in graphs.
    PowerLaw {
        /// Nonzeros of the average row.
        mean: f64,
        /// The law's exponent.
        exponent: f64,
    },
}

/// Name, what it is for, and its cases.
type Suite = (&'static str, &'static str, fn() -> Vec<Case>);

const SUITES: [Suite; 4] = [
    ("smoke", "small problems of every kind, for the simulator: under two minutes", smoke::cases),
    ("rnn", "weights of recurrent networks, hidden sizes 1k to 8k (SC 2020, Fig. 10): for a GPU", rnn::cases),
    ("shapes", "problems of every shape, to which the chooser's model is fitted: for a GPU", shapes::cases),
    ("table", "fourteen uniform problems from 512 to 16,384 rows: for a GPU", table::cases),
];

/// The cases of a suite.
///
/// # Errors
/// [`Usage`] for a name that is none, with a list of those that are.
pub fn find(name: &str) -> Result<Vec<Case>, Usage> {
    match SUITES.iter().find(|suite| suite.0 == name) {
        Some((_, _, cases)) => Ok(cases()),
        None => {
            let list: Vec<String> =
                SUITES.iter().map(|(name, about, _)| format!("  {name:8} {about}")).collect();
            Err(Usage(format!("there is no suite `{name}`; there are:\n{}", list.join("\n"))))
        }
    }
}

/// A uniform case, named by its numbers.
fn uniform(m: usize, k: usize, n: usize, sparsity: f64) -> Case {
    Case { name: format!("{m} {k} {n} {sparsity}"), m, k, n, pattern: PatternKind::Uniform { sparsity } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_their_cases() {
        assert_eq!(find("rnn").unwrap().len(), 72);
        assert_eq!(find("table").unwrap().len(), 14);
        assert!(find("smoke").unwrap().len() >= 10);
    }

    #[test]
    fn another_name_lists_the_suites() {
        let error = find("help").unwrap_err().to_string();
        assert!(error.contains("smoke") && error.contains("rnn"), "{error}");
    }
}
