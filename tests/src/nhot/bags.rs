//! Bags of every length, with and without weights and padding.
use lacuna::nhot;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::{Problem, conform};
use crate::{Case, Effort, Options};

/// Name, what it is, how long it takes, and how the problem is made from a seed.
type Bags = (&'static str, &'static str, Effort, fn(u64) -> Problem);

const CASES: [Bags; 15] = [
    ("none", "no bags, and no indices", Effort::Quick, |seed| Problem::of_lengths(&[], 5, 8, seed)),
    ("all_empty", "no indices: zeros", Effort::Quick, |seed| Problem::of_lengths(&[0; 9], 5, 8, seed)),
    ("empty_table", "no rows: bags are empty", Effort::Quick, |seed| {
        Problem::of_lengths(&[0; 3], 0, 8, seed)
    }),
    ("ones", "an index a bag, more bags than a block has", Effort::Quick, |seed| {
        Problem::of_lengths(&[1; 37], 20, 16, seed)
    }),
    ("empty", "empty bags at the ends and between", Effort::Quick, |seed| {
        Problem::of_lengths(&[0, 0, 3, 0, 1, 9, 0, 0], 20, 16, seed)
    }),
    ("short", "lengths 0 to 9, weighted", Effort::Quick, |seed| {
        Problem::of_lengths(&(0..10).collect::<Vec<_>>(), 30, 8, seed).weighted(seed)
    }),
    ("around_warps", "lengths about 32", Effort::Quick, |seed| {
        Problem::of_lengths(&[31, 32, 33, 7, 2, 63, 64, 65], 50, 8, seed)
    }),
    ("around_turns", "lengths about what eight subwarps have under way, means", Effort::Quick, |seed| {
        Problem::of_lengths(&[63, 64, 65, 1, 100], 50, 16, seed)
            .with(|options| options.mode(nhot::Mode::Mean))
    }),
    ("long", "a bag of 1000 among short ones, weighted", Effort::Quick, |seed| {
        Problem::of_lengths(&[3, 1000, 0, 7], 40, 8, seed).weighted(seed)
    }),
    ("twice", "a table of one row: all indices are alike", Effort::Quick, |seed| {
        Problem::of_lengths(&[5, 0, 40, 1], 1, 8, seed).weighted(seed)
    }),
    ("mean", "means of weighted rows, some of no rows", Effort::Quick, |seed| {
        let problem = Problem::of_lengths(&[3, 0, 1, 40], 20, 16, seed).weighted(seed);
        problem.with(|options| options.mode(nhot::Mode::Mean))
    }),
    ("padding", "a row that is left out", Effort::Quick, |seed| {
        Problem::of_lengths(&[9, 0, 1, 40, 2, 3], 4, 16, seed).with(|options| options.padding_index(Some(2)))
    }),
    ("padding_mean", "a row that is left out of means, and bags of it alone", Effort::Quick, |seed| {
        let mut problem = Problem::of_lengths(&[9, 3, 0, 1, 40], 3, 16, seed).weighted(seed);
        problem.indices[9..12].fill(0);
        problem.with(|options| options.padding_index(Some(0)).mode(nhot::Mode::Mean))
    }),
    ("paper", "100 bags of 10, a table of 10,240 × 512", Effort::Gpu, |seed| {
        Problem::of_lengths(&[10; 100], 10_240, 512, seed)
    }),
    ("many", "65,536 bags of 32, 128 columns", Effort::Gpu, |seed| {
        Problem::of_lengths(&[32; 65_536], 300_000, 128, seed).weighted(seed)
    }),
];

/// Random problems on the simulator, and on a GPU, unless asked for another number.
const RANDOM: [usize; 2] = [4, 60];

pub(super) fn cases(options: Options) -> Vec<Case> {
    let fixed = CASES.into_iter().map(|(name, about, effort, make)| {
        let check = move |cx: &crate::Context<'_>| conform(cx, &make(cx.seed));
        Case::new(format!("nhot/bags/{name}"), about, check).effort(effort)
    });
    let check = |cx: &crate::Context<'_>| conform(cx, &random(cx.seed));
    let random = Case::random(options, RANDOM, "nhot/random", "bags drawn by the seed", check);
    fixed.chain(random).collect()
}

fn random(seed: u64) -> Problem {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let longest = [1, 5, 40][random.random_range(0..3)];
    let lengths: Vec<usize> =
        (0..random.random_range(1..=12)).map(|_| random.random_range(0..=longest)).collect();
    let (table_rows, columns) = (random.random_range(1..=60), random.random_range(1..=70));
    let mut problem = Problem::of_lengths(&lengths, table_rows, columns, random.random());
    if random.random() {
        problem = problem.weighted(seed);
    }
    if random.random() {
        problem = problem.with(|options| options.mode(nhot::Mode::Mean));
    }
    if random.random() {
        problem = problem.with(|options| options.layout(nhot::Layout::Transposed));
    }
    let padding = random.random_range(0..table_rows);
    if random.random() { problem.with(|options| options.padding_index(Some(padding))) } else { problem }
}
