//! Feature maps in another order, and with gaps.
use anyhow::{Result, ensure};

use crate::Number;

/// Images × channels × pixels as images × pixels × channels: channels last.
pub fn channels_last<T: Copy>(maps: &[T], channels: usize, pixels: usize) -> Vec<T> {
    let image = |image: &[T]| {
        (0..pixels * channels).map(|at| image[at % channels * pixels + at / channels]).collect::<Vec<_>>()
    };
    maps.chunks_exact((channels * pixels).max(1)).flat_map(image).collect()
}

/// The way back.
pub fn channels_first<T: Copy>(maps: &[T], channels: usize, pixels: usize) -> Vec<T> {
    channels_last(maps, pixels, channels)
}

/// Planes of so many pixels, each with `gap` after it, up to the next one, `stride` elements on.
pub fn apart<T: Number>(maps: &[T], pixels: usize, stride: usize, gap: T) -> Vec<T> {
    let gaps = vec![gap; stride.saturating_sub(pixels)];
    maps.chunks(pixels.max(1)).flat_map(|plane| [plane, &gaps].concat()).collect()
}

/// The same planes without the gaps.
///
/// # Errors
/// Where something else than `gap` stands in one.
pub fn together<T: Number>(maps: &[T], pixels: usize, stride: usize, gap: T) -> Result<Vec<T>> {
    let mut planes = Vec::with_capacity(maps.len());
    for (number, whole) in maps.chunks(stride).enumerate() {
        let (plane, gaps) = whole.split_at(pixels.min(whole.len()));
        let is_left = gaps.iter().all(|&element| element.bits() == gap.bits());
        ensure!(is_left, "behind plane {number} is something else than before");
        planes.extend_from_slice(plane);
    }
    Ok(planes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_keep_their_pixels() {
        let maps: Vec<u32> = (0..12).collect();
        let last = channels_last(&maps, 2, 3);
        assert_eq!(last, [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]);
        assert_eq!(channels_first(&last, 2, 3), maps);
        assert!(channels_last(&maps[..0], 0, 3).is_empty());
    }
}
