//! Parts of suites: so many cases, or what the simulator runs, which takes a second for some ten million products.
use std::sync::Arc;

use lacuna::matrix::FormatError;
use lacuna_cases::{Draw, Source, Values};

use super::case::Case;

/// The most products (nonzeros times N, or what takes as long) of a case on the simulator.
const MOST_PRODUCTS: f64 = 24e6;
/// Rows and columns below which the other is halved first.
const ENOUGH: usize = 128;
const FEW: usize = 32;

/// The part of a suite that the simulator runs.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The cases, in the suite's order.
    pub cases: Vec<Case>,
    /// Cases of the whole suite.
    pub of: usize,
    /// How many of `cases` are parts of their problems, as their names say.
    pub cut: usize,
}

/// Cuts large problems to fewer rows and columns, and takes cases of `budget` products together, spread over the suite.
/// The simulator does some ten million a second on a core. The same suite gives the same sample.
///
/// # Errors
/// None that a checked pattern can cause.
pub fn for_simulator(cases: Vec<Case>, budget: f64) -> Result<Sample, FormatError> {
    let of = cases.len();
    let mut cases = cases.into_iter().map(cut).collect::<Result<Vec<_>, _>>()?;
    if cases.iter().map(|(case, _)| products(case)).sum::<f64>() > budget {
        let mut left = budget;
        cases = spread(cases, |(case, _)| {
            left -= products(case);
            left >= 0.0
        });
    }
    let cut = cases.iter().filter(|(_, cut)| *cut).count();
    Ok(Sample { cases: cases.into_iter().map(|(case, _)| case).collect(), of, cut })
}

/// At most so many cases, spread over the suite, in its order. The same suite and number give the same cases.
pub fn thinned(cases: Vec<Case>, most: usize) -> Vec<Case> {
    let mut places = 0..most;
    spread(cases, |_| places.next().is_some())
}

/// The cases that `takes` wants, in their order; it is asked about cases here and there, as [`place`] says.
fn spread<C>(cases: Vec<C>, mut takes: impl FnMut(&C) -> bool) -> Vec<C> {
    let mut cases: Vec<_> = cases.into_iter().enumerate().collect();
    cases.sort_by(|a, b| place(a.0).total_cmp(&place(b.0)));
    cases.retain(|(_, case)| takes(case));
    cases.sort_by_key(|&(index, _)| index);
    cases.into_iter().map(|(_, case)| case).collect()
}

/// Where a case stands in the order in which cases are taken. Multiples of the golden ratio, less their whole parts, spread
/// evenly however many are taken: no sparsity or batch is missed because the suite repeats it in step with the sample.
fn place(index: usize) -> f64 {
    (index as f64 * 0.618_033_988_749_895).fract()
}

/// What a case takes the simulator, in products.
fn products(case: &Case) -> f64 {
    (case.op.simulated)(&case.spec.size())
}

/// A case of at most [`MOST_PRODUCTS`], and whether it lost some.
fn cut(mut case: Case) -> Result<(Case, bool), FormatError> {
    if products(&case) <= MOST_PRODUCTS {
        return Ok((case, false));
    }
    let (name, whole) = (case.spec.name.clone(), size(&case));
    let cuts_width = cuts_width(&case);
    while products(&case) > MOST_PRODUCTS && (case.spec.rows > 1 || (case.spec.width > 1 && cuts_width)) {
        let spec = &mut case.spec;
        let of_width = cuts_width
            && (spec.width > ENOUGH || (spec.rows <= ENOUGH && spec.width > FEW) || spec.rows == 1);
        if spec.batch > 1 {
            spec.batch /= 2;
        } else if of_width {
            spec.width /= 2;
        } else {
            keep_first_rows(&mut case)?;
        }
    }
    case.spec.name = format!("{name}, part of {whole}");
    Ok((case, true))
}

/// Whether dense operands may lose columns.
fn cuts_width(case: &Case) -> bool {
    case.op.width.is_some_and(|width| width.is_cut)
}

/// What is cut: the matrix's rows, the width, and of several at once, how many.
fn size(case: &Case) -> String {
    let spec = &case.spec;
    let width = if cuts_width(case) { format!("×{}", spec.width) } else { String::new() };
    let batch = if spec.batch > 1 { format!("{}×", spec.batch) } else { String::new() };
    format!("{batch}{}{width}", spec.rows)
}

/// Keeps the first half of the rows; of a mask, which is square, also of the columns; of bags, also of the table.
fn keep_first_rows(case: &mut Case) -> Result<(), FormatError> {
    let spec = &mut case.spec;
    spec.rows /= 2;
    let Source::Sparse { pattern, values } = &mut spec.source else { return Ok(()) };
    match pattern {
        Draw::Given(given) => *given = Arc::new(given.select_rows(0..spec.rows)?),
        Draw::Mask { .. } | Draw::Blocks { .. } | Draw::Documents { .. } => spec.cols = spec.rows,
        // A table that is as large for ever fewer bags would be most of what the simulator holds.
        Draw::Varied { .. } if *values == Values::Ones => spec.cols /= 2,
        Draw::Uniform { .. } | Draw::Varied { .. } | Draw::PowerLaw { .. } => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use lacuna::matrix::Pattern;
    use lacuna_cases::Spec;

    use super::super::tests::{cases_of, uniform};
    use super::*;

    const BUDGET: f64 = 500e6;

    #[test]
    fn a_small_suite_stays_whole() {
        let cases = vec![uniform(64, 64, 32, 0.9), uniform(256, 512, 128, 0.7)];
        let sample = for_simulator(cases.clone(), BUDGET).unwrap();
        assert_eq!((sample.cases, sample.of, sample.cut), (cases, 2, 0));
    }

    #[test]
    fn a_thinned_suite_has_a_bit_of_everything_in_order() {
        // Five networks, two batches, three sparsities.
        let all: Vec<_> = (0..30)
            .map(|index| {
                let [m, n, sparsity] = [index / 6, index / 3 % 2, index % 3];
                uniform(64 << m, 64, 32 << n, 0.1 * (7 + sparsity) as f64)
            })
            .collect();
        let some = thinned(all.clone(), 10);
        assert_eq!((some.len(), &some), (10, &thinned(all.clone(), 10)));
        let place = |case: &Case| all.iter().position(|other| other == case).unwrap();
        assert!(some.is_sorted_by_key(place));
        let count =
            |of: fn(&Case) -> usize| some.iter().map(of).collect::<std::collections::BTreeSet<_>>().len();
        let percent = |case: &Case| (100.0 * case.spec.level().unwrap()) as usize;
        assert_eq!(
            (count(|case| case.spec.rows), count(|case| case.spec.width), count(percent)),
            (5, 2, 3),
            "{some:?}"
        );
        assert_eq!(thinned(all.clone(), 100), all);
    }

    #[test]
    fn large_problems_are_cut_and_the_sample_fits_the_budget() {
        let cases: Vec<_> = (0..1000).map(|_| uniform(8192, 2048, 128, 0.7)).collect();
        let sample = for_simulator(cases, BUDGET).unwrap();
        assert!(
            (20..1000).contains(&sample.cases.len()) && sample.cut == sample.cases.len() && sample.of == 1000
        );
        assert!(sample.cases.iter().map(products).sum::<f64>() <= BUDGET);
        assert!(sample.cases[0].spec.name.ends_with(", part of 8192×128"), "{}", sample.cases[0].spec.name);
    }

    #[test]
    fn heads_are_left_out_before_tokens_and_masks_stay_square() {
        let case = cases_of("attention").remove(3);
        let (case, was_cut) = cut(case).unwrap();
        assert!(was_cut && products(&case) <= MOST_PRODUCTS);
        let spec = &case.spec;
        assert_eq!((spec.batch, spec.rows, spec.width), (1, spec.cols, 64));
        assert_eq!(spec.name, "8192 tokens, part of 8×8192×64");
    }

    #[test]
    fn tables_shrink_with_the_bags_and_rows_of_logits_stay_whole() {
        for case in cases_of("nhot") {
            let (case, was_cut) = cut(case).unwrap();
            assert!(products(&case) <= MOST_PRODUCTS && (!was_cut || case.spec.cols < 100_000), "{case:?}");
        }
        for whole in cases_of("topn") {
            let (case, _) = cut(whole.clone()).unwrap();
            assert!(products(&case) <= MOST_PRODUCTS && case.spec.rows > 0, "{case:?}");
            assert_eq!((case.spec.cols, case.spec.width), (whole.spec.cols, whole.spec.width));
        }
    }

    #[test]
    fn a_given_pattern_keeps_its_first_rows() {
        let pattern = Pattern::new(2, 1 << 12, (0..3).map(|row| row << 12).collect(), {
            (0..1 << 12).chain(0..1 << 12).collect()
        });
        let source =
            Source::Sparse { pattern: Draw::Given(Arc::new(pattern.unwrap())), values: Values::Drawn };
        let case = uniform(2, 1 << 12, 3000, 0.0);
        let case = Case { spec: Spec { source, ..case.spec }, ..case };
        let (case, was_cut) = cut(case).unwrap();
        assert!(was_cut && products(&case) <= MOST_PRODUCTS);
        let Some(Draw::Given(pattern)) = case.spec.pattern() else { panic!("another kind") };
        assert_eq!(pattern.rows(), case.spec.rows);
    }
}
