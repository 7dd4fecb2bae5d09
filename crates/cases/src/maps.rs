//! Feature maps in another order.

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
