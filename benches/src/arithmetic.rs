//! By which arithmetic results are judged, ours and the vendor's libraries'.
use lacuna::{attention, spmm};
use lacuna_reference::{AttentionArithmetic, Precision};
use lacuna_vendor::DataType;
use lacuna_vendor::cublas::Math;

/// That of one of our kernels.
pub(crate) fn of_kernel(choice: &spmm::Choice) -> Precision {
    match choice.entry.tile.scheme.arithmetic() {
        Some(spmm::Arithmetic::Half) => Precision::Tensor,
        Some(spmm::Arithmetic::Split) => Precision::Split,
        Some(spmm::Arithmetic::SplitTf32) => Precision::SplitTf32,
        Some(spmm::Arithmetic::SplitBf16) => Precision::SplitBf16,
        Some(spmm::Arithmetic::Tf32) => Precision::Tf32,
        None => Precision::Fp32,
    }
}

/// That of our attention. In steps, the product of the weights may be by tiles, as SpMM finds best, and it does not say so.
pub(crate) fn of_attention(data_type: DataType, choice: Option<&attention::Choice>) -> AttentionArithmetic {
    if let Some(choice) = choice {
        return match choice.algorithm {
            attention::Algorithm::WgmmaTile { .. } | attention::Algorithm::MmaTile { .. } => {
                AttentionArithmetic::Tiles
            }
            _ => AttentionArithmetic::Fused,
        };
    }
    match data_type {
        DataType::F32 => AttentionArithmetic::Steps(Precision::Split),
        DataType::F16 | DataType::Bf16 => AttentionArithmetic::Steps(Precision::Tensor),
    }
}

/// That of cuSPARSE with sums in fp32. It does not say whether it multiplies 16-bit values on tensor cores: it may.
pub(crate) fn of_cusparse(data_type: DataType) -> Precision {
    of_cublas(data_type, Math::Fp32)
}

/// That of cuBLAS with sums in fp32.
pub(crate) fn of_cublas(data_type: DataType, math: Math) -> Precision {
    match (data_type, math) {
        (DataType::F32, Math::Fp32) => Precision::Fp32,
        (DataType::F32, Math::Tf32) => Precision::Tf32,
        (DataType::F16 | DataType::Bf16, _) => Precision::Tensor,
    }
}

#[cfg(test)]
mod tests {
    use half::f16;
    use lacuna::matrix::{Csr, generate};
    use lacuna_reference::{SpmmReference, Value, spmm};

    use super::*;

    fn is_right<T: Value>(reference: &SpmmReference<T>, by: Precision, c: &[T]) -> bool {
        reference.clone().precision(by).unwrap().check(c).is_ok()
    }

    /// A row times a column of `f32`, the lowest bits of whose mantissas are cut.
    fn product(values: &[f32], b: &[f32], bits: u32) -> f32 {
        let cut = |x: &f32| f32::from_bits(x.to_bits() >> bits << bits);
        values.iter().zip(b).fold(0.0, |sum, (x, y)| cut(x).mul_add(cut(y), sum))
    }

    #[test]
    fn dense_products_in_tf32_have_their_own_bound_and_those_in_fp32_the_smaller_one() {
        let k = 96;
        // Of one sign: what is cut then adds up.
        let [values, b] =
            [1, 2].map(|seed| generate::random_values(k, seed).into_iter().map(f32::abs).collect::<Vec<_>>());
        let a = Csr::new(1, k, vec![0, k as u32], (0..k as u32).collect(), values.clone()).unwrap();
        let reference = spmm(&a, &b, 1).unwrap();
        let [fp32, tf32, bf16] = [0, 13, 16].map(|bits| [product(&values, &b, bits)]);
        let by = |math| of_cublas(DataType::F32, math);
        assert!(is_right(&reference, by(Math::Fp32), &fp32) && !is_right(&reference, by(Math::Fp32), &tf32));
        assert!(is_right(&reference, by(Math::Tf32), &tf32) && !is_right(&reference, by(Math::Tf32), &bf16));
        assert!(!is_right(&reference, of_cusparse(DataType::F32), &tf32));
    }

    #[test]
    fn sums_of_halves_may_be_cut_as_tensor_cores_do() {
        // 1 + 2⁻¹¹, halfway between two halves, and products below its last place, which round it up, or are cut.
        let (k, small) = (96, 1.0 / 4096.0);
        let [mut values, mut b] = [1.75 * small, small].map(|x| vec![f16::from_f32(x); k]);
        (values[0], b[0]) = (f16::ONE, f16::ONE);
        (values[1], b[1]) = (f16::ONE, f16::from_f32(2.0 * small));
        let a = Csr::new(1, k, vec![0, k as u32], (0..k as u32).collect(), values).unwrap();
        let reference = spmm(&a, &b, 1).unwrap();
        let [up, cut, wrong] = [1.0 + 1.0 / 1024.0, 1.0, 1.0 - 1.0 / 2048.0].map(|x| [f16::from_f32(x)]);
        assert!(is_right(&reference, Precision::Fp32, &up) && !is_right(&reference, Precision::Fp32, &cut));
        for by in [of_cusparse(DataType::F16), of_cublas(DataType::F16, Math::Fp32)] {
            assert!(is_right(&reference, by, &up) && is_right(&reference, by, &cut));
            assert!(!is_right(&reference, by, &wrong));
        }
    }
}
