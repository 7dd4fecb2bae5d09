//! Maps in wider ones, so that what is read or written beside them shows.
use anyhow::{Result, ensure};

use crate::Number;

/// Where the images of a map lie in a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Elements after each channel.
    pub(super) gap: usize,
    /// Channels of other maps before those of an image.
    pub(super) before: usize,
    /// And after them.
    pub(super) after: usize,
    /// Elements before all.
    pub(super) offset: usize,
}

/// A map of images × channels × pixels at a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    place: Place,
    images: usize,
    channels: usize,
    pixels: usize,
}

impl Placed {
    pub(super) fn new(place: Place, images: usize, channels: usize, pixels: usize) -> Self {
        Self { place, images, channels, pixels }
    }

    pub(super) fn channel_stride(&self) -> usize {
        self.pixels + self.place.gap
    }

    pub(super) fn image_stride(&self) -> usize {
        (self.place.before + self.channels + self.place.after) * self.channel_stride()
    }

    /// The first element.
    pub(super) fn start(&self) -> usize {
        self.place.offset + self.place.before * self.channel_stride()
    }

    /// The buffer: `map`, and canaries around it.
    pub(super) fn spread<T: Number>(&self, map: &[T]) -> Vec<T> {
        // Also of no images there is a first element.
        let len = self.place.offset + self.images.max(1) * self.image_stride();
        let mut buffer = vec![T::CANARY; len];
        for (plane, pixels) in map.chunks_exact(self.pixels.max(1)).enumerate() {
            let at = self.plane(plane);
            buffer[at..at + self.pixels].copy_from_slice(pixels);
        }
        buffer
    }

    /// The map in a buffer, if the canaries are alive and all of it was written.
    pub(super) fn collect<T: Number>(&self, mut buffer: Vec<T>) -> Result<Vec<T>> {
        let mut map = Vec::new();
        for plane in 0..self.images * self.channels {
            let at = self.plane(plane);
            for value in &mut buffer[at..at + self.pixels] {
                ensure!(value.bits() != T::POISON.bits(), "a pixel of plane {plane} was never written");
                map.push(std::mem::replace(value, T::CANARY));
            }
        }
        let written = buffer.iter().position(|value| value.bits() != T::CANARY.bits());
        ensure!(written.is_none(), "element {written:?} beside the result was written");
        Ok(map)
    }

    /// Where a plane begins, of those of all images.
    fn plane(&self, plane: usize) -> usize {
        let (image, channel) = (plane / self.channels, plane % self.channels);
        self.start() + image * self.image_stride() + channel * self.channel_stride()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_come_back_and_what_is_beside_them_is_watched() {
        let placed = Placed::new(Place { gap: 1, before: 2, after: 1, offset: 3 }, 2, 2, 2);
        assert_eq!((placed.channel_stride(), placed.image_stride(), placed.start()), (3, 15, 9));
        let map: Vec<f32> = (0..8).map(|x| x as f32).collect();
        let mut buffer = placed.spread(&map);
        assert_eq!((buffer[9], buffer[10], buffer[12], buffer[24]), (0.0, 1.0, 2.0, 4.0));
        assert_eq!(placed.collect(buffer.clone()).unwrap(), map);
        buffer[11] = 0.0;
        assert!(placed.collect(buffer).unwrap_err().to_string().contains("beside the result"));
        assert!(placed.collect(placed.spread(&[f32::POISON; 8])).is_err());
    }
}
