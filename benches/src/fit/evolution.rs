//! CMA-ES (Hansen, *The CMA Evolution Strategy: A Tutorial*, 2016), with a Cholesky factor for the root of the covariance.
use rayon::prelude::*;

/// Candidates of a generation.
const POPULATION: usize = 28;
/// A narrower search than this is at its end.
const LEAST_STEP: f64 = 1e-4;

/// A point of the unit cube where `loss` is small: as far as so many generations find from `start`, with steps of `step` at
/// first. The same arguments give the same point.
pub(super) fn minimize(
    loss: &(impl Fn(&[f64]) -> f64 + Sync),
    start: Vec<f64>,
    mut step: f64,
    generations: i32,
    seed: u64,
) -> (Vec<f64>, f64) {
    let dimensions = start.len();
    let n = dimensions as f64;
    let parents = POPULATION / 2;
    let weights: Vec<f64> =
        (0..parents).map(|rank| (parents as f64 + 0.5).ln() - (rank as f64 + 1.0).ln()).collect();
    let sum: f64 = weights.iter().sum();
    let weights: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
    let mass = 1.0 / weights.iter().map(|weight| weight * weight).sum::<f64>();
    let along = (4.0 + mass / n) / (n + 4.0 + 2.0 * mass / n);
    let short = (mass + 2.0) / (n + mass + 5.0);
    let rank_one = 2.0 / ((n + 1.3).powi(2) + mass);
    let rank_many = (1.0 - rank_one).min(2.0 * (mass - 2.0 + 1.0 / mass) / ((n + 2.0).powi(2) + mass));
    let damping = 1.0 + 2.0 * (((mass - 1.0) / (n + 1.0)).sqrt() - 1.0).max(0.0) + short;
    let expected = n.sqrt() * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n));

    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut best = (start.clone(), loss(&start));
    let mut mean = start;
    let mut covariance: Vec<Vec<f64>> =
        (0..dimensions).map(|i| (0..dimensions).map(|j| f64::from(i == j)).collect()).collect();
    let (mut path, mut step_path) = (vec![0.0; dimensions], vec![0.0; dimensions]);
    for generation in 1..=generations {
        let root = cholesky(&covariance);
        let drawn: Vec<[Vec<f64>; 2]> = (0..POPULATION)
            .map(|_| {
                let normal: Vec<f64> = (0..dimensions).map(|_| random.normal()).collect();
                let moved =
                    root.iter().map(|row| row.iter().zip(&normal).map(|(a, z)| a * z).sum()).collect();
                [normal, moved]
            })
            .collect();
        let points: Vec<Vec<f64>> = drawn
            .iter()
            .map(|[_, moved]| mean.iter().zip(moved).map(|(m, y)| m + step * y).collect())
            .collect();
        let outside = |point: &Vec<f64>| point.iter().map(|u| (u - u.clamp(0.0, 1.0)).powi(2)).sum::<f64>();
        let losses: Vec<f64> = points.par_iter().map(|point| loss(point) + outside(point)).collect();
        let mut ranks: Vec<usize> = (0..POPULATION).collect();
        ranks.sort_by(|&a, &b| losses[a].total_cmp(&losses[b]));
        if losses[ranks[0]] < best.1 {
            best = (points[ranks[0]].iter().map(|u| u.clamp(0.0, 1.0)).collect(), losses[ranks[0]]);
        }

        let weighted = |of: usize, i: usize| -> f64 {
            ranks.iter().zip(&weights).map(|(&rank, weight)| weight * drawn[rank][of][i]).sum()
        };
        let moved: Vec<f64> = (0..dimensions).map(|i| weighted(1, i)).collect();
        for i in 0..dimensions {
            mean[i] += step * moved[i];
            step_path[i] =
                (1.0 - short) * step_path[i] + (short * (2.0 - short) * mass).sqrt() * weighted(0, i);
        }
        let length = step_path.iter().map(|x| x * x).sum::<f64>().sqrt();
        let unbiased = length / (1.0 - (1.0 - short).powi(2 * generation)).sqrt();
        let is_short = f64::from(unbiased < (1.4 + 2.0 / (n + 1.0)) * expected);
        for i in 0..dimensions {
            path[i] = (1.0 - along) * path[i] + is_short * (along * (2.0 - along) * mass).sqrt() * moved[i];
        }
        for i in 0..dimensions {
            for j in 0..dimensions {
                let many: f64 = ranks
                    .iter()
                    .zip(&weights)
                    .map(|(&rank, weight)| weight * drawn[rank][1][i] * drawn[rank][1][j])
                    .sum();
                let one = path[i] * path[j] + (1.0 - is_short) * along * (2.0 - along) * covariance[i][j];
                covariance[i][j] =
                    (1.0 - rank_one - rank_many) * covariance[i][j] + rank_one * one + rank_many * many;
            }
        }
        step = (step * ((short / damping) * (length / expected - 1.0)).exp()).min(0.5);
        if step < LEAST_STEP {
            break;
        }
    }
    best
}

/// The lower triangle whose product with its transpose is `matrix`.
fn cholesky(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut root = vec![vec![0.0; matrix.len()]; matrix.len()];
    for i in 0..matrix.len() {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| root[i][k] * root[j][k]).sum();
            root[i][j] = if i == j {
                (matrix[i][i] - sum).max(1e-12).sqrt()
            } else {
                (matrix[i][j] - sum) / root[j][j]
            };
        }
    }
    root
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().max(f64::MIN_POSITIVE).ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skew_bowl_is_descended_to_its_ground() {
        let loss = |x: &[f64]| (x[0] - 0.3).powi(2) + 100.0 * (x[1] - x[0]).powi(2) + (x[2] - 0.9).powi(2);
        let found = || minimize(&loss, vec![0.5; 3], 0.2, 150, 1);
        assert!(found().1 < 1e-6, "{:?}", found());
        assert_eq!(found(), found());
    }
}
