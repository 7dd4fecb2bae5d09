//! Operations on tensors of the CPU, by the simulator: against candle's own dense operations, with their gradients.
use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::{Linear, Module};
use lacuna::matrix::{Csr, generate};
use lacuna_candle::{Backend, Pattern, SparseLinear, SparseMatrix};

const ROWS: usize = 20;
const COLS: usize = 33;

/// A pattern with empty rows among others, its values, and the same as a dense tensor.
struct Problem {
    pattern: Pattern,
    host: Csr<f32>,
}

impl Problem {
    fn new(backend: &Backend) -> Result<Self> {
        let host = generate::uniform(ROWS, COLS, 0.8, 3).expect("a share below 1");
        let values = generate::random_values(host.nnz(), 4);
        let host = Csr::with_values(host, values).expect("a value each");
        Ok(Self { pattern: Pattern::new(backend, host.pattern().clone())?, host })
    }

    fn values(&self) -> Result<Tensor> {
        self.pattern.values(self.host.values())
    }

    fn dense(&self) -> Result<Tensor> {
        Tensor::from_vec(self.host.to_dense().expect("a small matrix"), (ROWS, COLS), &Device::Cpu)
    }

    /// 1 where there are nonzeros, otherwise 0.
    fn mask(&self) -> Result<Tensor> {
        self.dense()?.ne(0.0)?.to_dtype(DType::F32)
    }

    /// The elements of dense matrices at the nonzeros: (…, nnz).
    fn at_nonzeros(&self, dense: &Tensor) -> Result<Tensor> {
        let rows = (0..ROWS)
            .flat_map(|row| self.host.row(row).0.iter().map(move |&column| (row * COLS) as u32 + column));
        let places = Tensor::from_iter(rows, &Device::Cpu)?;
        let rank = dense.rank();
        dense.flatten(rank - 2, rank - 1)?.index_select(&places, rank - 2)
    }
}

fn random(shape: &[usize], seed: u64) -> Result<Tensor> {
    Tensor::from_vec(generate::random_values(shape.iter().product(), seed), shape, &Device::Cpu)
}

/// Fails where two tensors differ by more than `bound`.
fn close(got: &Tensor, expected: &Tensor, bound: f32) {
    let [got, expected] = [got, expected].map(|tensor| tensor.to_dtype(DType::F32).unwrap());
    assert_eq!(got.dims(), expected.dims());
    let differences =
        (got - expected).unwrap().abs().unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
    // A greatest one would hide NaN.
    let wrong = differences.iter().find(|difference| difference.is_nan() || **difference > bound);
    assert!(wrong.is_none(), "they differ by {wrong:?}, and {bound} is allowed");
}

#[test]
fn a_product_is_the_dense_one_in_each_type() -> Result<()> {
    let problem = Problem::new(&Backend::simulator())?;
    for (dtype, bound) in [(DType::F32, 1e-5), (DType::F16, 0.02), (DType::BF16, 0.15)] {
        let (values, b) = (problem.values()?.to_dtype(dtype)?, random(&[COLS, 12], 5)?.to_dtype(dtype)?);
        let c = problem.pattern.spmm(&values, &b)?;
        assert_eq!(c.dtype(), dtype);
        close(&c, &problem.dense()?.matmul(&b.to_dtype(DType::F32)?)?, bound);
    }
    Ok(())
}

#[test]
fn operands_may_be_parts_of_others_and_batches() -> Result<()> {
    let problem = Problem::new(&Backend::simulator())?;
    let (pattern, dense) = (&problem.pattern, problem.dense()?);
    let wide = random(&[2, COLS, 10], 6)?;
    let part = wide.narrow(2, 3, 5)?;
    let c = pattern.spmm(&problem.values()?, &part)?;
    let both = dense.broadcast_left(2)?.contiguous()?;
    close(&c, &both.matmul(&part.contiguous()?)?, 1e-5);

    // As many matrices as products; and one B for all.
    let values = Tensor::stack(&[problem.values()?, (problem.values()? * 2.0)?], 0)?;
    let b = random(&[COLS, 8], 7)?;
    let c = pattern.spmm(&values, &b.broadcast_left(2)?)?;
    let once = dense.matmul(&b)?;
    close(&c, &Tensor::stack(&[&once, &(&once * 2.0)?], 0)?, 1e-5);
    Ok(())
}

#[test]
fn gradients_are_those_of_the_dense_product() -> Result<()> {
    let problem = Problem::new(&Backend::simulator())?;
    let (pattern, weight) = (&problem.pattern, random(&[2, ROWS, 6], 8)?);
    let [values, dense] = [problem.values()?, problem.dense()?].map(|tensor| Var::from_tensor(&tensor));
    let (values, dense) = (values?, dense?);
    let b = Var::from_tensor(&random(&[2, COLS, 6], 9)?)?;
    let bias = Var::from_tensor(&random(&[ROWS], 10)?)?;

    let c = pattern.spmm_bias(&values, &b, &bias)?;
    let ours = (&c * &weight)?.sum_all()?.backward()?;
    let product = dense.broadcast_left(2)?.contiguous()?.matmul(&b)?;
    let theirs = product.broadcast_add(&bias.reshape((ROWS, 1))?)?;
    close(&c, &theirs, 1e-5);
    let theirs = (theirs * weight)?.sum_all()?.backward()?;

    let of_values = pattern.without_room(ours.get(&values).unwrap())?;
    close(&of_values, &problem.at_nonzeros(theirs.get(&dense).unwrap())?, 1e-4);
    close(ours.get(&b).unwrap(), theirs.get(&b).unwrap(), 1e-5);
    close(ours.get(&bias).unwrap(), theirs.get(&bias).unwrap(), 1e-5);
    let to_spare =
        ours.get(&values).unwrap().narrow(0, pattern.nnz(), pattern.values_len() - pattern.nnz())?;
    close(&to_spare, &to_spare.zeros_like()?, 0.0);
    Ok(())
}

#[test]
fn values_without_room_get_it_and_their_gradient() -> Result<()> {
    let problem = Problem::new(&Backend::simulator())?;
    let values = Var::from_slice(problem.host.values(), problem.host.nnz(), &Device::Cpu)?;
    let c = problem.pattern.spmm(&problem.pattern.with_room(&values)?, &random(&[COLS, 4], 11)?)?;
    assert_eq!(c.sum_all()?.backward()?.get(&values).unwrap().dims(), [problem.host.nnz()]);
    Ok(())
}

#[test]
fn sampled_products_and_softmax_have_gradients() -> Result<()> {
    let problem = Problem::new(&Backend::simulator())?;
    let pattern = &problem.pattern;
    let weight = pattern.values(&generate::random_values(pattern.nnz(), 12))?;
    let a = Var::from_tensor(&random(&[ROWS, 8], 13)?)?;
    let b = Var::from_tensor(&random(&[COLS, 8], 14)?)?;

    let y = pattern.softmax(&pattern.sddmm(&a, &b)?, 0.5)?;
    let ours = (&y * &weight)?.sum_all()?.backward()?;

    let scores = (a.matmul(&b.t()?)? * 0.5)?;
    // What is not in the pattern counts as −∞; rows without nonzeros have nothing.
    let exponentials = (scores.exp()? * problem.mask()?)?;
    let sums = exponentials.sum_keepdim(1)?.clamp(1e-30, f32::MAX)?;
    let theirs = problem.at_nonzeros(&exponentials.broadcast_div(&sums)?)?;
    close(&pattern.without_room(&y)?, &theirs, 1e-5);
    let theirs = (theirs * pattern.without_room(&weight)?)?.sum_all()?.backward()?;
    close(ours.get(&a).unwrap(), theirs.get(&a).unwrap(), 1e-5);
    close(ours.get(&b).unwrap(), theirs.get(&b).unwrap(), 1e-5);
    Ok(())
}

#[test]
fn attention_is_its_three_steps_with_their_gradients() -> Result<()> {
    let backend = Backend::simulator();
    let mask = Pattern::new(&backend, generate::band_random(24, 4, 0.8, 15).expect("a mask"))?;
    let operand = |seed| Var::from_tensor(&random(&[2, 24, 8], seed)?);
    let [q, k, v] = [operand(16)?, operand(17)?, operand(18)?];
    let weight = random(&[2, 24, 8], 19)?;

    let o = mask.attention(&q, &k, &v, 0.3)?;
    let steps = mask.spmm(&mask.softmax(&mask.sddmm(&q, &k)?, 0.3)?, &v)?;
    close(&o, &steps, 1e-5);
    let ours = (o * &weight)?.sum_all()?.backward()?;
    let theirs = (steps * weight)?.sum_all()?.backward()?;
    for operand in [&q, &k, &v] {
        close(ours.get(operand).unwrap(), theirs.get(operand).unwrap(), 1e-5);
    }
    Ok(())
}

#[test]
fn fixed_matrices_are_custom_operations() -> Result<()> {
    let backend = Backend::simulator();
    let problem = Problem::new(&backend)?;
    let b = Var::from_tensor(&random(&[COLS, 16], 20)?)?;
    let expected = problem.dense()?.matmul(&b)?;
    let gradient = expected.sum_all()?.backward()?;
    for a in [SparseMatrix::new(&backend, &problem.host)?, SparseMatrix::prepacked(&backend, &problem.host)?]
    {
        let c = b.apply_op1(a)?;
        close(&c, &expected, 1e-4);
        close(c.sum_all()?.backward()?.get(&b).unwrap(), gradient.get(&b).unwrap(), 1e-4);
    }
    Ok(())
}

#[test]
fn a_pruned_layer_keeps_the_greatest_weights() -> Result<()> {
    let backend = Backend::simulator();
    let weight = random(&[7, 10], 21)?;
    let linear = Linear::new(weight.clone(), Some(random(&[7], 22)?));
    let layer = SparseLinear::from_linear(&backend, &linear, 0.8)?;
    assert_eq!(layer.pattern().nnz(), 14);
    let mut magnitudes = weight.abs()?.flatten_all()?.to_vec1::<f32>()?;
    magnitudes.sort_by(f32::total_cmp);
    let pruned = (&weight * weight.abs()?.ge(magnitudes[70 - 14])?.to_dtype(DType::F32)?)?;
    let dense = Linear::new(pruned, linear.bias().cloned());
    for shape in [&[3, 10][..], &[2, 3, 10]] {
        let x = random(shape, 23)?;
        close(&layer.forward(&x)?, &dense.forward(&x)?, 1e-5);
    }
    Ok(())
}

/// The message of what must fail.
fn refused<T>(result: Result<T>) -> String {
    result.map(|_| ()).expect_err("it must be refused").to_string()
}

#[test]
fn what_does_not_fit_is_refused_with_what_to_do() -> Result<()> {
    assert!(refused(Backend::of(&Device::Cpu)).contains("Backend::simulator()"));
    let problem = Problem::new(&Backend::simulator())?;
    let (pattern, values) = (&problem.pattern, problem.values()?);
    let b = random(&[COLS, 4], 24)?;
    let says = |result: Result<Tensor>, words: &str| {
        let message = refused(result);
        assert!(message.contains(words), "{message}");
    };
    says(pattern.spmm(&pattern.without_room(&values)?, &b), "Pattern::with_room");
    says(pattern.spmm(&values, &random(&[ROWS, 4], 25)?), "B is 20×4, but 33×4 is expected");
    says(pattern.spmm(&values, &random(&[4, COLS], 26)?.t()?), "call contiguous()");
    says(pattern.spmm(&values, &b.to_dtype(DType::F16)?), "one type is expected");
    says(pattern.spmm(&values.to_dtype(DType::F64)?, &b.to_dtype(DType::F64)?), "f32, f16 or bf16");
    says(pattern.sddmm(&b, &b), "A is 33×4");
    says(pattern.softmax(&values, 0.0), "scale");
    let other = SparseMatrix::new(&Backend::simulator(), &problem.host)?;
    says(other.matmul(&b.to_dtype(DType::BF16)?), "to_dtype()");
    assert!(refused(SparseLinear::new(pattern.clone(), values, Some(b))).contains("the bias has shape"));
    Ok(())
}
