//! The results of a row.
use lacuna_gpu::{GlobalMut, Gpu};

use super::key::{index_of, value_of};

/// What is returned for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Form {
    /// Its softmax, over the whole row.
    Probability = 0,
    /// The logarithm of that.
    LogProbability = 1,
    /// It stays as it is.
    Logit = 2,
}

/// Where results go, and in what form. Each row has n values and n indices, one after another.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// The values.
    pub values: GlobalMut<f32>,
    /// Their indices in the row.
    pub indices: GlobalMut<u32>,
    /// The logarithm of the sum of exponentials, one a row, where `has_log_sums` is not 0.
    pub log_sums: GlobalMut<f32>,
    /// 1 over the temperature, times log₂e.
    pub exponent_scale: f32,
    /// A number of [`Form`].
    pub form: u32,
    /// Whether `log_sums` is written.
    pub has_log_sums: u32,
}

/// What is subtracted from the values of a row with this greatest value: 0 for a row of −∞ alone, so that its sum is 0, not NaN.
#[inline(always)]
pub(super) fn base(greatest: f32) -> f32 {
    if greatest == f32::NEG_INFINITY { 0.0 } else { greatest }
}

/// The softmax of a row: its base, and its sum's inverse and logarithm.
pub(super) struct RowSoftmax<'a> {
    output: &'a Output,
    base: f32,
    inverse: f32,
    log_sum: f32,
}

impl<'a> RowSoftmax<'a> {
    /// Of a row with this greatest value, and this sum of 2^((x − base)·exponent_scale).
    #[inline(always)]
    pub(super) fn of<G: Gpu>(gpu: G, output: &'a Output, greatest: f32, sum: f32) -> Self {
        let (inverse, log_sum) = (gpu.rcp_approx(sum), gpu.log2_approx(sum));
        Self { output, base: base(greatest), inverse, log_sum }
    }

    /// Writes a key's value and index as result `place` of all rows.
    ///
    /// # Safety
    /// The place is this thread's.
    #[inline(always)]
    pub(super) unsafe fn write<G: Gpu>(&self, gpu: G, place: usize, key: u64) {
        let x = value_of(key);
        let exponent = (x - self.base) * self.output.exponent_scale;
        let value = if self.output.form == Form::Probability as u32 {
            gpu.exp2_approx(exponent) * self.inverse
        } else if self.output.form == Form::LogProbability as u32 {
            (exponent - self.log_sum) * core::f32::consts::LN_2
        } else {
            x
        };
        // SAFETY: as promised by the caller.
        unsafe {
            gpu.store(self.output.values.add(place), [value]);
            gpu.store(self.output.indices.add(place), [index_of(key)]);
        }
    }

    /// Writes the logarithm of the sum of exponentials of row `row`, where it is asked for.
    ///
    /// # Safety
    /// The place is this thread's.
    #[inline(always)]
    pub(super) unsafe fn write_log_sum<G: Gpu>(&self, gpu: G, row: usize) {
        if self.output.has_log_sums != 0 {
            let log2 = gpu.fma(self.base, self.output.exponent_scale, self.log_sum);
            // SAFETY: as promised by the caller.
            unsafe { gpu.store(self.output.log_sums.add(row), [log2 * core::f32::consts::LN_2]) };
        }
    }
}
