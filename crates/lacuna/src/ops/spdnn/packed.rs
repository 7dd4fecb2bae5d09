//! The arrays of a layer in one piece of memory, as kernels read them.
use lacuna_gpu::GlobalPtr;

/// Words to which arrays are aligned: 64 bytes.
pub(super) const ALIGNED: usize = 16;

/// Arrays one after another.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrays {
    pub(super) words: Vec<u32>,
}

/// Where an array is, in words from the first.
pub(super) type Place = u64;

impl Arrays {
    /// Appends an array.
    pub(super) fn push(&mut self, array: &[u32]) -> Place {
        self.append(array.iter().copied())
    }

    /// Appends an array of numbers.
    pub(super) fn push_f32(&mut self, array: impl IntoIterator<Item = f32>) -> Place {
        self.append(array.into_iter().map(f32::to_bits))
    }

    /// Appends an array of 16-bit indices.
    pub(super) fn push_u16(&mut self, array: &[u16]) -> Place {
        let word = |pair: &[u16]| {
            let high = pair.get(1).copied().unwrap_or(0);
            u32::from(pair[0]) | u32::from(high) << 16
        };
        self.append(array.chunks(2).map(word))
    }

    fn append(&mut self, array: impl IntoIterator<Item = u32>) -> Place {
        let place = self.words.len();
        self.words.extend(array);
        self.words.resize(self.words.len().next_multiple_of(ALIGNED), 0);
        place as Place
    }
}

/// The device's address of an array, of arrays that begin at `base`.
pub(super) fn at<T>(base: u64, place: Place) -> GlobalPtr<T> {
    GlobalPtr::from_address(base + 4 * place)
}
