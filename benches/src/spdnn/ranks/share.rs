//! Which images a rank has.
use std::borrow::Cow;

use lacuna::matrix::{FormatError, Pattern};

/// Images that lie in one word of bits.
const TILE: usize = 32;

/// The images of one rank.
///
/// Images are dealt in tiles of 32, as many as a word of their bits has, round about: rank r of R has the tiles r, r + R, r + 2R, …
/// How long an image is worked on depends on it, as those that become all zero are left out; and MNIST's neighbours are alike. So
/// ranks with every R-th tile have about the same work all the way down the network, and ranks with one long piece each have not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    images: Vec<u32>,
    most: usize,
}

impl Share {
    /// The share of `rank` among `size` ranks.
    pub fn new(rank: usize, size: usize, images: usize) -> Self {
        let tiles = (rank..images.div_ceil(TILE)).step_by(size);
        let dealt = tiles.flat_map(|tile| tile * TILE..images.min((tile + 1) * TILE));
        let most = images.min(images.div_ceil(TILE).div_ceil(size) * TILE);
        Self { images: dealt.map(|image| image as u32).collect(), most }
    }

    /// The images, ascending.
    pub fn images(&self) -> &[u32] {
        &self.images
    }

    /// At least as many images as the largest share has: the same for all ranks, so that they choose the same kernels.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Of all images those of this share.
    ///
    /// # Errors
    /// As [`Pattern::new`].
    pub fn of<'i>(&self, all: &'i Pattern) -> Result<Cow<'i, Pattern>, FormatError> {
        if self.images.len() == all.rows() {
            return Ok(Cow::Borrowed(all));
        }
        all.select_rows(self.images.iter().map(|&image| image as usize)).map(Cow::Owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_image_is_dealt_once() {
        for images in [0, 1, 31, 32, 33, 96, 100, 1000] {
            for size in 1..=6 {
                let shares: Vec<Share> = (0..size).map(|rank| Share::new(rank, size, images)).collect();
                let mut dealt: Vec<u32> = shares.iter().flat_map(|share| share.images.clone()).collect();
                dealt.sort_unstable();
                assert_eq!(dealt, (0..images as u32).collect::<Vec<_>>(), "{images} images, {size} ranks");
                assert!(
                    shares.iter().all(|share| share.images.is_sorted() && share.images.len() <= share.most)
                );
                let sizes = shares.iter().map(|share| share.images.len());
                assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= TILE);
                assert!(shares.iter().all(|share| share.most == shares[0].most));
            }
        }
        assert!(Share::new(2, 3, 64).images().is_empty());
    }

    #[test]
    fn tiles_stay_whole_and_keep_their_places() {
        let share = Share::new(1, 2, 110);
        assert_eq!(share.images(), (32..64).chain(96..110).collect::<Vec<_>>());
        let all = Pattern::new(110, 110, (0..=110).collect(), (0..110).collect()).unwrap();
        let own = share.of(&all).unwrap();
        assert_eq!((own.rows(), own.col_indices()), (46, share.images()));
        let none = Share::new(5, 6, 110);
        assert_eq!(none.of(&all).unwrap().rows(), 0);
        assert!(matches!(Share::new(0, 1, 110).of(&all), Ok(Cow::Borrowed(_))));
    }
}
