//! Candidates: the kernels that can do a problem, ranked by what they are estimated to cost.
use std::fmt::Debug;

use lacuna_kernels::Entry;

use crate::Error;

/// A kernel that can do a problem, and what the heuristic thinks of it.
#[derive(Debug)]
pub struct Choice<A, T: 'static> {
    /// Its entry point: name, threads, shared memory, and the constants of its kernel.
    pub entry: &'static Entry<T>,
    /// The algorithm by which it can be asked for.
    pub algorithm: A,
    /// The estimated cost, comparable within one problem only.
    pub cost: f64,
}

// Not derived: that would ask for a tile that can be copied and compared, though only a reference is.
impl<A: Copy, T> Copy for Choice<A, T> {}
impl<A: Copy, T> Clone for Choice<A, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<A: PartialEq, T> PartialEq for Choice<A, T> {
    fn eq(&self, other: &Self) -> bool {
        self.entry.name == other.entry.name && self.algorithm == other.algorithm && self.cost == other.cost
    }
}

/// A problem shape: all that the choice of a kernel may depend on.
pub(crate) trait Problem: Clone + Debug {
    /// What errors call the operation.
    const OPERATION: &'static str;
    /// How the operation can be asked to be computed. The default leaves it to the library.
    type Algorithm: Copy + Debug + Default + PartialEq + 'static;
    /// The constants of the operation's kernels.
    type Tile: Copy + Debug + 'static;

    /// The operation's entry points.
    const ENTRIES: fn() -> &'static [Entry<Self::Tile>];

    /// The algorithms by which this entry point can do the problem: mostly one, none where it is not legal.
    fn algorithms(&self, entry: &'static Entry<Self::Tile>) -> impl IntoIterator<Item = Self::Algorithm>;

    /// The cost of doing it so, in any unit.
    fn cost(&self, entry: &'static Entry<Self::Tile>, algorithm: Self::Algorithm) -> f64;

    /// Whether the library may choose this algorithm. Others must be asked for.
    fn is_offered(_algorithm: Self::Algorithm) -> bool {
        true
    }
}

/// What [`choose`] gives.
pub(crate) type ChoiceOf<P> = Choice<<P as Problem>::Algorithm, <P as Problem>::Tile>;

/// All candidates, in the order of the list of kernels.
fn candidates<P: Problem>(problem: &P) -> impl Iterator<Item = ChoiceOf<P>> {
    (P::ENTRIES)().iter().flat_map(move |entry| {
        let algorithms = problem.algorithms(entry).into_iter();
        algorithms.map(move |algorithm| Choice { entry, algorithm, cost: problem.cost(entry, algorithm) })
    })
}

/// The kernels that the library may choose, cheapest first. Of several with one algorithm the first in the list stays.
pub(crate) fn choose<P: Problem>(problem: &P) -> Vec<ChoiceOf<P>> {
    let mut choices: Vec<ChoiceOf<P>> = Vec::new();
    for choice in candidates(problem).filter(|choice| P::is_offered(choice.algorithm)) {
        if choices.iter().all(|known| known.algorithm != choice.algorithm) {
            choices.push(choice);
        }
    }
    choices.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    choices
}

/// The kernel that is this algorithm, where it is legal; for the default algorithm the cheapest of all.
pub(crate) fn find<P: Problem>(problem: &P, wanted: P::Algorithm) -> Option<ChoiceOf<P>> {
    if wanted == P::Algorithm::default() {
        return choose(problem).into_iter().next();
    }
    candidates(problem).find(|choice| choice.algorithm == wanted)
}

/// The error that says that `wanted` cannot do `problem`, and what could.
pub(crate) fn illegal<P: Problem>(problem: &P, wanted: P::Algorithm, why: String) -> Error {
    let legal: Vec<String> = choose(problem).iter().map(|choice| format!("{:?}", choice.algorithm)).collect();
    Error::Illegal { operation: P::OPERATION, algorithm: format!("{wanted:?}"), why, legal: legal.join(", ") }
}
