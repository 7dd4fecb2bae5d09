//! What each rank found out about its images, and what that is together.
use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Result, ensure};
use lacuna::spdnn::Inference;
use serde::{Deserialize, Serialize};

use super::Share;

/// The most bytes of scores that are fetched for their checksum: of all images, so that it does not depend on the ranks.
const CHECKED_BYTES: usize = 256 << 20;

/// What one rank had.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RankRecord {
    /// Images of its share.
    pub images: usize,
    /// The median of its own times, as `whole_us`; none on the simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole_us: Option<f64>,
    /// Edges of the images that it worked on.
    pub effective_edges: u64,
}

/// The results of one rank.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Part {
    /// What it had.
    pub(super) rank: RankRecord,
    /// Where its images come from: must be the same everywhere.
    pub(super) source: String,
    /// Its categories, with their numbers among all images.
    pub(super) categories: Vec<u32>,
    /// For each category a checksum of its scores; none where scores are too many to fetch.
    pub(super) sums: Option<Vec<u64>>,
    /// The course of pruning: layers from 0, images.
    pub(super) live: Vec<(usize, usize)>,
    /// The modelled times.
    pub(super) model_us: BTreeMap<String, f64>,
}

/// The results of all ranks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Whole {
    /// Ascending.
    pub(super) categories: Vec<u32>,
    /// A checksum of the scores of all categories, and of their numbers.
    pub(super) scores: Option<String>,
    /// The course of pruning.
    pub(super) live: Vec<(usize, usize)>,
    /// Edges of the images that were worked on.
    pub(super) effective_edges: u128,
    /// The modelled times of the slowest rank.
    pub(super) model_us: BTreeMap<String, f64>,
    /// What each rank had.
    pub(super) ranks: Vec<RankRecord>,
}

impl Part {
    /// Puts the results of a share into words that do not depend on it.
    pub(super) fn categories(share: &Share, inference: &Inference) -> Vec<u32> {
        inference.categories().iter().map(|&row| share.images()[row as usize]).collect()
    }

    /// Whether the scores of so many images are few enough to have checksums.
    pub(super) fn is_summed(images: usize, outputs: usize) -> bool {
        images.saturating_mul(outputs).saturating_mul(size_of::<f32>()) <= CHECKED_BYTES
    }

    /// The checksum of each category's scores. `scores` are those of all images of the share, row by row.
    pub(super) fn sums(inference: &Inference, scores: &[f32], outputs: usize) -> Vec<u64> {
        let row = |&row: &u32| &scores[row as usize * outputs..][..outputs];
        let bits = |row: &[f32]| checksum(row.iter().map(|score| score.to_bits().into()));
        inference.categories().iter().map(row).map(bits).collect()
    }
}

impl Whole {
    /// What the parts are together, in the order of the images: the same for any number of ranks.
    ///
    /// # Errors
    /// If ranks have images from different places.
    pub(super) fn of(parts: Vec<Part>) -> Result<Self> {
        let mut whole = Self {
            categories: Vec::new(),
            scores: None,
            live: Vec::new(),
            effective_edges: 0,
            model_us: BTreeMap::new(),
            ranks: Vec::new(),
        };
        let mut sums = Vec::new();
        let are_summed = parts.iter().all(|part| part.sums.is_some());
        let source = parts.first().map(|part| part.source.clone()).unwrap_or_default();
        for (rank, part) in parts.into_iter().enumerate() {
            let other = &part.source;
            ensure!(
                *other == source,
                "rank 0 has {source} images and rank {rank} has {other} ones: give all hosts the same data folder"
            );
            let of_category = part.sums.unwrap_or_else(|| vec![0; part.categories.len()]);
            sums.extend(part.categories.into_iter().zip(of_category));
            if rank == 0 {
                whole.live = part.live;
            } else {
                // Layers are the same everywhere, and so are those after which images are listed.
                whole.live.iter_mut().zip(&part.live).for_each(|(all, own)| all.1 += own.1);
            }
            for (machine, us) in part.model_us {
                let slowest = whole.model_us.entry(machine).or_insert(us);
                *slowest = slowest.max(us);
            }
            whole.effective_edges += u128::from(part.rank.effective_edges);
            whole.ranks.push(part.rank);
        }
        sums.sort_unstable();
        whole.categories = sums.iter().map(|&(image, _)| image).collect();
        if are_summed {
            let words = sums.iter().flat_map(|&(image, sum)| [image.into(), sum]);
            whole.scores = Some(format!("{:016x}", checksum(words)));
        }
        Ok(whole)
    }
}

/// The images that each of these layers works on: of `images` those of the last list before it. `live` has the layers that lists
/// come after, ascending.
pub(super) fn images_of_layers(
    layers: Range<usize>,
    images: usize,
    live: &[(usize, usize)],
) -> impl Iterator<Item = usize> {
    let mut lists = live.iter().peekable();
    layers.scan(images, move |left, layer| {
        let live = lists.next_if(|&&(listed, _)| listed == layer).map_or(*left, |&(_, live)| live);
        Some(std::mem::replace(left, live))
    })
}

/// FNV-1a, over the bytes of words.
fn checksum(words: impl Iterator<Item = u64>) -> u64 {
    words
        .flat_map(u64::to_le_bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(categories: &[u32], live: usize, us: f64) -> Part {
        Part {
            rank: RankRecord { images: 32, whole_us: None, effective_edges: 10 * live as u64 },
            source: "MNIST".into(),
            categories: categories.to_vec(),
            sums: Some(categories.iter().map(|&image| u64::from(image) + 100).collect()),
            live: vec![(0, 2 * live), (3, live)],
            model_us: BTreeMap::from([("H200".into(), us)]),
        }
    }

    #[test]
    fn parts_are_the_same_whole_however_they_are_cut() {
        let one = Whole::of(vec![part(&[1, 5, 40, 70], 4, 9.0)]).unwrap();
        let two = Whole::of(vec![part(&[1, 5, 70], 3, 4.0), part(&[40], 1, 5.0)]).unwrap();
        assert_eq!(two.categories, [1, 5, 40, 70]);
        assert_eq!((&two.scores, &two.live, two.effective_edges), (&one.scores, &vec![(0, 8), (3, 4)], 40));
        assert_eq!((two.model_us["H200"], two.ranks.len()), (5.0, 2));
        assert_eq!(two.live, one.live);
    }

    #[test]
    fn a_score_that_differs_is_seen_and_so_is_another_source() {
        let one = Whole::of(vec![part(&[1, 5], 2, 1.0)]).unwrap();
        let mut other = part(&[1, 5], 2, 1.0);
        other.sums.as_mut().unwrap()[1] ^= 1;
        assert_ne!(Whole::of(vec![other.clone()]).unwrap().scores, one.scores);
        other.sums = None;
        assert_eq!(Whole::of(vec![other.clone()]).unwrap().scores, None);
        other.source = "drawn".into();
        let error = Whole::of(vec![part(&[], 0, 1.0), other]).unwrap_err().to_string();
        assert!(error.contains("rank 1 has drawn"), "{error}");
    }

    #[test]
    fn one_bit_of_one_score_changes_its_sum() {
        assert!(Part::is_summed(60_000, 1024) && !Part::is_summed(60_000, 4096));
        let sum = |scores: &[f32]| checksum(scores.iter().map(|score| score.to_bits().into()));
        assert_ne!(sum(&[1.0, 0.0]), sum(&[1.0, -0.0]));
        assert_ne!(sum(&[1.0, 2.0]), sum(&[2.0, 1.0]));
    }
}
