//! The kernel for each alignment of the operands' addresses.
use super::choice::ChoiceOf;
use super::{Problem, choose, find, illegal};
use crate::tune::Candidate;
use crate::{Error, Result};

/// Elements that addresses, strides and sizes may allow to load at once, widest first.
pub(crate) const VECTORS: [u32; 4] = [8, 4, 2, 1];

/// The widest of [`VECTORS`] that is allowed; single elements always are.
pub(crate) fn widest(is_allowed: impl Fn(u32) -> bool) -> u32 {
    VECTORS.into_iter().find(|&vector| is_allowed(vector)).unwrap_or(1)
}

/// A choice for each alignment that addresses may have, made once when a plan is made.
#[derive(Clone, Debug)]
pub(crate) struct Selection<P: Problem> {
    wanted: P::Algorithm,
    /// Bytes of an element.
    bytes: u64,
    /// The problem for each of [`VECTORS`].
    problems: [P; VECTORS.len()],
    choices: [Option<ChoiceOf<P>>; VECTORS.len()],
}

impl<P: Problem> Selection<P> {
    /// Chooses for elements of `bytes` bytes; `problem_at` gives the problem where addresses allow so many elements at once.
    pub(crate) fn new(wanted: P::Algorithm, bytes: u32, problem_at: impl Fn(u32) -> P) -> Self {
        let problems = VECTORS.map(problem_at);
        let choices = problems.each_ref().map(|problem| find(problem, wanted));
        Self { wanted, bytes: bytes.into(), problems, choices }
    }

    /// Fails where no alignment has a kernel. `shape` is what distinguishes the problem, as in `N = 3`.
    pub(crate) fn expect_some(self, shape: impl FnOnce() -> String) -> Result<Self> {
        if self.first().is_some() {
            return Ok(self);
        }
        Err(self.illegal(format!("no kernel can do this shape with {}", shape())))
    }

    /// The choice for operands that are aligned as whole buffers are, if there is any.
    pub(crate) fn first(&self) -> Option<&ChoiceOf<P>> {
        self.iter().next()
    }

    /// The same of a selection that has one.
    pub(crate) fn best(&self) -> &ChoiceOf<P> {
        self.first().expect("a plan is made with at least one choice")
    }

    /// The choices, that for the best alignment first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ChoiceOf<P>> {
        self.choices.iter().flatten()
    }

    /// The problem where addresses allow all that sizes and strides do.
    pub(crate) fn problem(&self) -> &P {
        &self.problems[0]
    }

    /// Whether the library chooses.
    pub(crate) fn is_auto(&self) -> bool {
        self.wanted == P::Algorithm::default()
    }

    /// The choice for addresses whose bits are in `addresses`; `operands` names what is not aligned where there is none.
    pub(crate) fn at(&self, addresses: u64, operands: &str) -> Result<&ChoiceOf<P>> {
        let allowed =
            VECTORS.into_iter().position(|vector| addresses.is_multiple_of(self.bytes * u64::from(vector)));
        let allowed = allowed.unwrap_or(VECTORS.len() - 1);
        self.choices[allowed..].iter().flatten().next().ok_or_else(|| {
            illegal(&self.problems[allowed], self.wanted, format!("{operands} not aligned for its vectors"))
        })
    }

    /// The kernels that are legal for each alignment, the best alignment first, each list cheapest first.
    pub(crate) fn legal(&self) -> [Vec<ChoiceOf<P>>; VECTORS.len()] {
        self.problems.each_ref().map(choose)
    }

    /// Takes, for each alignment, the first of the entry points `names` that is legal there. Where none is, the choice stays.
    pub(crate) fn prefer(&mut self, names: &[&str]) {
        for (choice, legal) in self.choices.iter_mut().zip(self.problems.each_ref().map(choose)) {
            let preferred = |name: &&str| legal.iter().find(|choice| choice.entry.name == *name);
            *choice = names.iter().find_map(preferred).copied().or(*choice);
        }
    }

    /// Makes what the choices read that `need` it. Where the device has no room for it, and the library chooses, the cheapest of
    /// the others take their place, for each alignment.
    pub(crate) fn prepare<M>(
        &mut self,
        need: impl Fn(&ChoiceOf<P>) -> bool,
        make: impl FnOnce() -> Result<M>,
    ) -> Result<()> {
        if !self.iter().any(&need) {
            return Ok(());
        }
        match make() {
            Err(Error::OutOfMemory { .. }) if self.is_auto() => {
                self.choices = self.legal().map(|legal| legal.into_iter().find(|choice| !need(choice)));
                Ok(())
            }
            made => made.map(|_| ()),
        }
    }

    /// The [legal](Self::legal) kernels as an autotuner's candidates; of those whose cost is finite.
    pub(crate) fn candidates(&self) -> Vec<Vec<Candidate>> {
        let candidate =
            |choice: &ChoiceOf<P>| Candidate { name: choice.entry.name.into(), cost: choice.cost };
        let is_able = |choice: &&ChoiceOf<P>| choice.cost.is_finite();
        self.legal().iter().map(|legal| legal.iter().filter(is_able).map(candidate).collect()).collect()
    }

    /// The algorithm of the kernel with this name, of those for whole buffers.
    ///
    /// # Panics
    /// If there is none: it is asked for [candidates](Self::candidates).
    pub(crate) fn algorithm_of(&self, name: &str) -> P::Algorithm {
        let choice = choose(self.problem()).into_iter().find(|choice| choice.entry.name == name);
        choice.expect("it is a candidate").algorithm
    }

    /// The error that says that the algorithm asked for cannot do this.
    pub(crate) fn illegal(&self, why: String) -> Error {
        illegal(self.problem(), self.wanted, why)
    }
}

/// What plans tell of their [`Selection`] and their options, alike in every operation.
macro_rules! tells_choice {
    ($plan:ident<$($parameter:ident: $bound:ident),+>) => {
        impl<$($parameter: $bound),+> $plan<$($parameter),+> {
            /// The kernel that runs where all operands are aligned to 16 bytes, as whole buffers are.
            pub fn choice(&self) -> &Choice {
                self.selection.best()
            }
            /// The kernels that are legal for each alignment of the operands' addresses, the best alignment first; each list
            /// in the order of the cost model.
            pub fn legal(&self) -> [Vec<Choice>; 4] {
                self.selection.legal()
            }
            /// The options that were planned with.
            pub fn options(&self) -> &Options {
                &self.options
            }
        }
    };
}
pub(crate) use tells_choice;

/// Of [`Tunable`](crate::Tunable), what plans with a [`Selection`] have alike; `$prepared` makes what other kernels need.
macro_rules! tunes_selection {
    ($($prepared:ident)?) => {
        fn candidates(&self) -> Vec<Vec<crate::tune::Candidate>> {
            self.selection.candidates()
        }
        fn preferring(mut self, names: &[&str]) -> Result<Self> {
            self.selection.prefer(names);
            $(self = self.$prepared()?;)?
            Ok(self)
        }
    };
}
pub(crate) use tunes_selection;
