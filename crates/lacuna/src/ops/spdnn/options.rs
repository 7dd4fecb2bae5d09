//! What may be asked of a network.
use super::Algorithm;
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
        /// Whether samples that have become all zero are left out of later layers, where these keep zeros. Results are the same.
        pub prune: bool = true => set,
    }
}
