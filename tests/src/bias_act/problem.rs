//! Matrices for the cases.
use anyhow::Result;
use lacuna::matrix::generate;

/// What is added and activated, in f32, without gaps.
#[derive(Clone, Debug)]
pub struct Dense {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) input: Vec<f32>,
    pub(super) residual: Vec<f32>,
    /// Enough for a bias per row and one per column.
    pub(super) bias: Vec<f32>,
}

impl Dense {
    /// Numbers from -4 to 4.
    ///
    /// # Errors
    /// Sizes that this machine has no room for.
    pub fn drawn(rows: usize, columns: usize, seed: u64) -> Result<Self> {
        let draw = |len, salt| -> Vec<f32> {
            generate::random_values(len, seed ^ salt).iter().map(|value| 4.0 * value).collect()
        };
        let (input, residual) = (draw(rows * columns, 1), draw(rows * columns, 2));
        Ok(Self { rows, columns, input, residual, bias: draw(rows.max(columns), 3) })
    }

    /// Rows of `columns` numbers; what is added is 0.
    pub(super) fn of(input: Vec<f32>, columns: usize) -> Result<Self> {
        let rows = input.len() / columns;
        let (residual, bias) = (vec![0.0; input.len()], vec![0.0; rows.max(columns)]);
        Ok(Self { rows, columns, input, residual, bias })
    }

    /// Every pair of numbers that are not usual ones meets.
    pub(super) fn strange(rows: usize, columns: usize) -> Result<Self> {
        const STRANGE: [f32; 13] = [
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            0.0,
            -0.0,
            1e-45,
            -1e-40,
            f32::MAX,
            f32::MIN,
            -14.0,
            3e38,
            -1e-7,
            6.0,
        ];
        let cycle = |len: usize, step: usize| (0..len).map(|i| STRANGE[i * step % STRANGE.len()]).collect();
        let len = rows * columns;
        Ok(Self {
            rows,
            columns,
            input: cycle(len, 1),
            residual: cycle(len, 5),
            bias: cycle(rows.max(columns), 3),
        })
    }
}
