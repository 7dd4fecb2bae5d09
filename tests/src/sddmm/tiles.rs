//! Patterns around the edges of tiles, and tiles of which a pattern has nothing.
use anyhow::{Result, ensure};
use lacuna::matrix::generate;
use lacuna::{CsrMatrix, Sddmm};

use super::conform;
use super::problem::Problem;
use crate::{Case, Context};

/// The lowest compute capability with tiles.
pub(super) const MIN_SM: u32 = 80;

/// Rows, columns and K, around tiles of 32, 64, 128 and 256 and steps of 32 and 64.
const SIZES: [[usize; 3]; 10] = [
    [31, 33, 64],
    [33, 31, 72],
    [32, 128, 64],
    [64, 127, 80],
    [63, 129, 128],
    [65, 64, 96],
    [128, 32, 136],
    [129, 65, 64],
    [1, 256, 64],
    [257, 193, 64],
];

/// Name, what it is, and how the problem is made from a seed.
type Form = (&'static str, &'static str, fn(u64) -> Result<Problem>);

const FORMS: [Form; 4] = [
    ("diagonal_blocks", "dense blocks of 40 on the diagonal: most tiles are empty", |seed| {
        let row = |row: u32| (row / 40 * 40..row / 40 * 40 + 40).filter(|&column| column < SIDE).collect();
        Problem::of_rows(SIDE as usize, &(0..SIDE).map(row).collect::<Vec<_>>(), 64, seed)
    }),
    ("causal", "every column up to the row: tiles are full, cut, and empty", |seed| {
        let rows: Vec<Vec<u32>> = (0..140).map(|row| (0..=row).collect()).collect();
        Problem::of_rows(140, &rows, 64, seed)
    }),
    ("corner", "the last element alone", |seed| {
        let mut rows = vec![vec![]; SIDE as usize];
        rows[SIDE as usize - 1].push(SIDE - 1);
        Problem::of_rows(SIDE as usize, &rows, 64, seed)
    }),
    ("first_chunks", "empty columns from the 32nd on", |seed| {
        Problem::of_rows(SIDE as usize, &vec![(0..32).collect(); 70], 72, seed)
    }),
];

/// Rows and columns of patterns with empty tiles.
const SIDE: u32 = 280;

pub(super) fn cases() -> Vec<Case> {
    let sizes = SIZES.into_iter().map(|[rows, cols, k]| {
        let make = move |seed| Problem::draw(generate::uniform(rows, cols, 0.7, seed)?, k, seed);
        let about = format!("M = {rows}, N = {cols}, K = {k}");
        case(format!("sddmm/tiles/{rows}x{cols}_k{k}"), about, make)
    });
    let forms =
        FORMS.into_iter().map(|(name, about, make)| case(format!("sddmm/tiles/{name}"), about.into(), make));
    sizes.chain(forms).collect()
}

/// A case that makes a problem from a seed and checks it, by tiles among others.
fn case(name: String, about: String, make: impl Fn(u64) -> Result<Problem> + Send + Sync + 'static) -> Case {
    Case::new(name, about, move |cx| {
        let problem = make(cx.seed)?;
        expect_tiles(cx, &problem)?;
        conform(cx, &problem)
    })
}

/// Tiles are legal on every GPU that has them.
fn expect_tiles(cx: &Context<'_>, problem: &Problem) -> Result<()> {
    let c = CsrMatrix::new(cx.device, &problem.c)?;
    let [legal, ..] = Sddmm::plan(&c, problem.k)?.legal();
    let tiles = legal.iter().filter(|choice| choice.entry.tile.scheme.arithmetic().is_some()).count();
    ensure!((tiles > 0) == (cx.device.info().sm >= MIN_SM), "{tiles} kernels by tiles are legal");
    Ok(())
}
