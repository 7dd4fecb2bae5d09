//! MATLAB's default random stream: the Mersenne Twister MT19937, in doubles of 53 bits.
//!
//! Matsumoto and Nishimura, "Mersenne Twister", 1998. The challenge's layers were drawn from it, so no other generator
//! will do.

/// Words of the state.
const WORDS: usize = 624;

/// The distance at which words are combined.
const SHIFT: usize = 397;

/// The generator, and how much of its state is used.
pub(super) struct Twister {
    state: [u32; WORDS],
    used: usize,
}

impl Twister {
    /// The stream that MATLAB starts with.
    pub(super) fn matlab() -> Self {
        Self::new(5489)
    }

    fn new(seed: u32) -> Self {
        let mut state = [seed; WORDS];
        for at in 1..WORDS {
            let before = state[at - 1];
            state[at] = (before ^ (before >> 30)).wrapping_mul(1_812_433_253).wrapping_add(at as u32);
        }
        Self { state, used: WORDS }
    }

    /// A real in [0, 1), a multiple of 2⁻⁵³: MATLAB's `rand`.
    pub(super) fn real(&mut self) -> f64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        (f64::from(high) * 2f64.powi(26) + f64::from(low)) * 2f64.powi(-53)
    }

    fn word(&mut self) -> u32 {
        if self.used == WORDS {
            self.renew();
        }
        let mut word = self.state[self.used];
        self.used += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    fn renew(&mut self) {
        for at in 0..WORDS {
            let joined = (self.state[at] & 0x8000_0000) | (self.state[(at + 1) % WORDS] & 0x7fff_ffff);
            let odd = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[at] = self.state[(at + SHIFT) % WORDS] ^ (joined >> 1) ^ odd;
        }
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The C++ standard asks of its `mt19937`, which starts from the same seed, that the 10,000th word is this.
    #[test]
    fn words_are_those_of_the_standard() {
        let mut twister = Twister::matlab();
        let word = (0..10_000).map(|_| twister.word()).last();
        assert_eq!(word, Some(4_123_659_995));
    }

    /// What MATLAB answers to `rand` right after its start: 0.8147, 0.9058, 0.1270, 0.9134.
    #[test]
    fn reals_are_matlabs() {
        let mut twister = Twister::matlab();
        for known in [0.8147, 0.9058, 0.1270, 0.9134] {
            let real = twister.real();
            assert!((real - known).abs() < 5e-5, "{real} {known}");
        }
    }
}
