//! What may be asked of a network.
use super::Algorithm;
use crate::Precision;
use crate::op::options;

options! {
    /// What may be asked of a network. The default leaves all to the library.
    ///
    /// ```
    /// # use lacuna::spdnn;
    /// let paper = spdnn::Options::default().algorithm(spdnn::Algorithm::StagedEll);
    /// let all_rows = spdnn::Options::default().prune(false);
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct Options {
        /// The algorithm of all layers, if not the library's choice for each.
        pub algorithm: Algorithm = Algorithm::Auto => set,
        /// How sums are computed. By default tensor cores may be taken where all weights of a layer are numbers of bfloat16: products stay
        /// exact, and an addition errs by four times what `f32` rounds at most. [`Precision::Fma`] keeps to `f32`; `Tf32` is as `Single`.
        pub precision: Precision = Precision::Single => set,
        /// Whether samples that have become all zero are left out of later layers, where these keep zeros. Results
        /// are the same of the same kernels; the library may choose tensor cores for one and not for the other.
        pub prune: bool = true => set,
    }
}
