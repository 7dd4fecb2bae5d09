//! Sums of a table's rows: the grid of *Accelerating Sparse Matrix Operations in Neural Networks on Graphics Processing Units*
//! (ACL 2019), Table 1; and a table that no cache holds.
use super::{Case, PatternKind};
use crate::op::Op;

/// The suite's name.
pub(crate) const NAME: &str = "nhot";
/// The group of the paper's grid.
pub(crate) const GRID: &str = "Table 1";

/// The paper's bags, rows and columns of its table, and nonzeros a bag.
const ROWS: usize = 100;
const TABLE: [usize; 2] = [10_240, 512];
const NONZEROS: [usize; 8] = [1, 2, 3, 4, 5, 10, 50, 100];

/// Bags, nonzeros of each, and rows and columns of a table of 512 MB: an embedding in training or in recommendation.
const LARGE: (usize, usize, [usize; 2]) = (65_536, 32, [1_000_000, 128]);

/// The name of a case of the grid.
pub(crate) fn name(nonzeros: usize) -> String {
    format!("{ROWS} rows of {nonzeros}, {}×{}", TABLE[0], TABLE[1])
}

fn case(name: String, rows: usize, nonzeros: usize, [cols, width]: [usize; 2], group: &str) -> Case {
    let pattern = PatternKind::Varied { mean: nonzeros as f64, cov: 0.0 };
    Case { group: group.into(), ..Case::new(Op::NHot, name, [rows, cols, width], pattern) }
}

pub(super) fn cases() -> Vec<Case> {
    let grid = NONZEROS.map(|nonzeros| case(name(nonzeros), ROWS, nonzeros, TABLE, GRID));
    let (rows, nonzeros, table) = LARGE;
    let name = format!("{rows} rows of {nonzeros}, {}×{}", table[0], table[1]);
    let large = case(name, rows, nonzeros, table, "table of 512 MB");
    grid.into_iter().chain([large]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Problem;

    #[test]
    fn bags_have_as_many_nonzeros_each_as_the_paper_names() {
        for (case, nonzeros) in cases().iter().zip(NONZEROS) {
            let problem = Problem::generate(case, 1).unwrap();
            let pattern = problem.a.pattern();
            assert!((0..ROWS).all(|row| pattern.row_columns(row).len() == nonzeros), "{}", case.name);
            assert_eq!(problem.sizes(), [100, 10_240, 512]);
        }
    }
}
