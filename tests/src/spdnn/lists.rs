//! Lists of so many samples that the one block that makes them takes several turns.
use anyhow::{Result, ensure};
use lacuna::matrix::Csr;
use lacuna::spdnn::{Activation, Algorithm, Bias, Layer};

use super::Network;
use super::host::{Expected, same_as_host};
use crate::{Case, Context};

/// Samples of a turn: 1,024 words of bits.
const TURN: usize = 1024 * 32;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("spdnn/lists/one_turn", "32,768 samples, as many as a turn lists", |cx| check(cx, TURN)),
        Case::new("spdnn/lists/turns", "two turns and a part, from lists of lists", |cx| {
            check(cx, 2 * TURN + 39)
        }),
    ]
}

/// Three inputs, of which the first layer leaves two, and the second one.
fn check(cx: &Context<'_>, rows: usize) -> Result<f64> {
    let relu = Activation::Relu;
    let first = Csr::new(2, 3, vec![0, 2, 4], vec![0, 1, 1, 2], vec![1.0, -1.0, 1.0, -1.0])?;
    let second = Csr::new(1, 2, vec![0, 2], vec![0, 1], vec![1.0, 1.0])?;
    let layers =
        vec![Layer::new(first, Bias::Scalar(-1.0), relu)?, Layer::new(second, Bias::Scalar(-2.0), relu)?];
    let samples = (0..rows).flat_map(sample).collect();
    let network = Network { layers, rows, samples };
    let expected = Expected::of(&network);
    let shares = [expected.alive[0], expected.alive[1]].map(|alive| alive * 10 / rows);
    ensure!(shares[0] > shares[1] && shares[1] > 0, "the case is not one: alive are {:?}", expected.alive);
    let groups = Algorithm::InputGroups { outputs: 16, tiles: 1 };
    let lists = same_as_host(cx, &network, &[groups])?;
    ensure!(lists == [0, 1], "samples are listed after {lists:?}");
    Ok(0.0)
}

/// Numbers from 0 to 7; stretches of samples that all die, and ones that all live.
fn sample(row: usize) -> [f32; 3] {
    match row / 32 % 97 {
        7 | 50..75 => [0.0; 3],
        9 | 80..86 => [7.0, 0.0, 0.0],
        _ => {
            let bits = (row as u32).wrapping_mul(0x9e37_79b9) >> 20;
            [bits & 7, bits >> 3 & 7, bits >> 6 & 7].map(|number| number as f32)
        }
    }
}
