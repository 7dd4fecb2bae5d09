//! What a warp's memory request costs the hardware.
use crate::cost::request::Request;
use crate::order::marks::SECTOR;
use crate::report::operation::Operation;

/// A small sorted set without allocation: an aligned request of 32 lanes touches at most 32 sectors,
/// and a part of it that goes through the banks at once at most 32 words.
struct Distinct {
    values: [u64; 32],
    count: usize,
}

impl Distinct {
    fn of(values: impl Iterator<Item = u64>) -> Self {
        let mut set = Self { values: [0; 32], count: 0 };
        let mut sorted = true;
        for value in values {
            if set.count > 0 && set.values[set.count - 1] == value {
                continue;
            }
            sorted &= set.count == 0 || set.values[set.count - 1] < value;
            set.values[set.count] = value;
            set.count += 1;
        }
        if !sorted {
            let (mut kept, values) = (1, &mut set.values[..set.count]);
            values.sort_unstable();
            for next in 1..values.len() {
                if values[next] != values[kept - 1] {
                    values[kept] = values[next];
                    kept += 1;
                }
            }
            set.count = kept;
        }
        set
    }

    fn as_slice(&self) -> &[u64] {
        &self.values[..self.count]
    }
}

/// Calls `touch` with the index (address / 32) of every distinct sector of the request; gives their number.
pub(crate) fn sectors(request: &Request, mut touch: impl FnMut(u64)) -> u64 {
    // Accesses are aligned and at most 16 bytes: each lies in one sector.
    let distinct = Distinct::of(request.addresses().map(|(_, address)| address / SECTOR));
    distinct.as_slice().iter().for_each(|&sector| touch(sector));
    distinct.count as u64
}

/// Passes that the request needs through the 32 banks of 4 bytes of shared memory.
///
/// 8-byte accesses go in two halves of the warp and 16-byte accesses in four quarters. In a pass every bank gives one
/// word, to all lanes that want it; neighbouring parts that get along without a conflict share a pass. Matrices go one
/// after the other, a quarter each, and share none.
pub(crate) fn wavefronts(request: &Request) -> u64 {
    let words = u64::from(request.bytes.div_ceil(4));
    let parts = words as u32;
    let mut passes = 0;
    let mut open: Option<Banks> = None;
    for part in 0..parts {
        let lanes = request.addresses().filter(|(lane, _)| lane * parts / 32 == part);
        let wanted = lanes.flat_map(|(_, address)| address / 4..address / 4 + words);
        if wanted.clone().next().is_none() {
            continue;
        }
        let shared = open.filter(|_| request.operation != Operation::SharedLoadMatrices);
        if let Some(shared) = shared.and_then(|banks| banks.with(wanted.clone())) {
            open = Some(shared);
        } else {
            open = Banks::IDLE.with(wanted.clone());
            passes += if open.is_some() { 1 } else { conflicts(wanted) };
        }
    }
    passes
}

/// The word that each bank gives in one pass.
#[derive(Clone, Copy)]
struct Banks([u64; BANKS]);

const BANKS: usize = 32;

impl Banks {
    /// No word has this index.
    const IDLE: Self = Self([u64::MAX; BANKS]);

    /// The pass with more words in it, if they fit.
    fn with(mut self, words: impl Iterator<Item = u64>) -> Option<Self> {
        for word in words {
            let bank = &mut self.0[word as usize % BANKS];
            if *bank != word && *bank != u64::MAX {
                return None;
            }
            *bank = word;
        }
        Some(self)
    }
}

/// The most distinct words wanted from one bank.
fn conflicts(words: impl Iterator<Item = u64>) -> u64 {
    let mut banks = [0; BANKS];
    for &word in Distinct::of(words).as_slice() {
        banks[word as usize % BANKS] += 1;
    }
    banks.into_iter().max().unwrap_or(0)
}
