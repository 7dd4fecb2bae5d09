//! The softmax's interface: shapes, batches, and what is refused.
use lacuna::matrix::{Csr, Pattern, generate};
use lacuna::{CsrMatrix, Device, Error, RowOrder, SparseSoftmax, Stream, Value, softmax};

/// Rows of 0, 3, 700 and 9000 nonzeros: each kind of kernel has some, and one row does not fit into registers.
fn pattern() -> Pattern {
    let ends = [0, 0, 3, 703, 9703];
    let columns = ends.windows(2).flat_map(|ends| 0..ends[1] - ends[0]).collect();
    Pattern::new(4, 9000, ends.to_vec(), columns).unwrap()
}

fn setting() -> (Stream, CsrMatrix, Vec<f32>) {
    let device = Device::simulator();
    let values = generate::random_values(pattern().nnz(), 1);
    let matrix = Csr::with_values(pattern(), values.clone()).unwrap();
    (device.stream().unwrap(), CsrMatrix::new(&device, &matrix).unwrap(), values)
}

fn values<T: Value>(stream: &Stream, matrix: &CsrMatrix<T>, which: usize) -> Vec<T> {
    matrix.batch_values(which).unwrap().download(stream).unwrap()
}

/// Whether rows add up to 1.
fn expect_sums(y: &[f32]) {
    for range in [0..3, 3..703, 703..9703] {
        let sum: f64 = y[range.clone()].iter().map(|&y| f64::from(y)).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{range:?}: {sum}");
    }
}

#[test]
fn rows_add_up_to_one_in_and_out_of_place() {
    let (stream, mut x, _) = setting();
    let plan = SparseSoftmax::plan(&x).unwrap();
    let mut y = x.with_zeros::<f32>(1).unwrap();
    plan.run(&stream, &x, &mut y).unwrap();
    let out = values(&stream, &y, 0);
    expect_sums(&out);
    plan.run_in_place(&stream, &mut x).unwrap();
    assert_eq!(values(&stream, &x, 0), out);
    let mut dx = x.with_zeros::<f32>(1).unwrap();
    let mut dy = x.with_values(&generate::random_values(x.nnz(), 2)).unwrap();
    plan.backward(&stream, &y, &dy, &mut dx).unwrap();
    plan.backward_in_place(&stream, &y, &mut dy).unwrap();
    assert_eq!(values(&stream, &dx, 0), values(&stream, &dy, 0));
}

#[test]
fn a_batch_is_its_matrices() {
    let (stream, one, values_of_one) = setting();
    let negative: Vec<f32> = values_of_one.iter().map(|value| -value).collect();
    let x = one.with_value_batch(2, &[values_of_one, negative].concat()).unwrap();
    let plan = SparseSoftmax::plan(&x).unwrap();
    let mut y = x.with_zeros::<f32>(2).unwrap();
    plan.run(&stream, &x, &mut y).unwrap();
    for (which, scale) in [(0, 1.0), (1, -1.0)] {
        let plan = SparseSoftmax::plan_with(&one, softmax::Options::default().scale(scale)).unwrap();
        let mut alone = one.with_zeros::<f32>(1).unwrap();
        plan.run(&stream, &one, &mut alone).unwrap();
        assert_eq!(values(&stream, &y, which), values(&stream, &alone, 0));
    }
}

#[test]
fn rows_in_their_natural_order_are_done_too() {
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let host = Csr::with_values(pattern(), generate::random_values(pattern().nnz(), 1)).unwrap();
    let mut x = CsrMatrix::<f32>::with_row_order(&device, &host, RowOrder::Unsorted).unwrap();
    let plan = SparseSoftmax::plan(&x).unwrap();
    assert_eq!((plan.parts().len(), plan.parts()[0].rows), (1, 4));
    plan.run_in_place(&stream, &mut x).unwrap();
    expect_sums(&values(&stream, &x, 0));
}

#[test]
fn what_does_not_fit_is_refused() {
    let (stream, x, host) = setting();
    let plan = SparseSoftmax::plan(&x).unwrap();
    for scale in [0.0, f32::NAN, f32::INFINITY, 1e-31, -2e30] {
        let error = SparseSoftmax::plan_with(&x, softmax::Options::default().scale(scale)).unwrap_err();
        assert!(matches!(error, Error::Parameter { what: "the scale", .. }), "{error}");
    }
    let strange = softmax::Options::default().algorithm(softmax::Algorithm::Subwarp { lanes: 5 });
    let error = SparseSoftmax::plan_with(&x, strange).unwrap_err();
    assert!(matches!(error, Error::Illegal { .. }) && error.to_string().contains("256"), "{error}");
    let mut two = x.with_zeros::<f32>(2).unwrap();
    let error = plan.run(&stream, &x, &mut two).unwrap_err();
    assert!(matches!(error, Error::Parameter { what: "the batch of y", .. }), "{error}");
    let other = Csr::with_values(pattern(), host).unwrap();
    let mut other = CsrMatrix::new(x.device(), &other).unwrap();
    let error = plan.run(&stream, &x, &mut other).unwrap_err();
    assert!(matches!(error, Error::OtherPattern { .. }), "{error}");
    let elsewhere = Device::simulator().stream().unwrap();
    let error = plan.run(&elsewhere, &x, &mut x.with_zeros(1).unwrap()).unwrap_err();
    assert!(matches!(error, Error::OtherDevice { .. }), "{error}");
}

#[test]
fn nothing_to_do_is_done() {
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    for (rows, ends) in [(0, vec![0]), (3, vec![0, 0, 0, 0])] {
        let host = Csr::<f32>::new(rows, 5, ends, vec![], vec![]).unwrap();
        let mut x = CsrMatrix::new(&device, &host).unwrap();
        let plan = SparseSoftmax::plan(&x).unwrap();
        assert!(plan.parts().is_empty());
        plan.run_in_place(&stream, &mut x).unwrap();
    }
    let (stream, x, _) = setting();
    let mut none = x.with_zeros::<f32>(0).unwrap();
    SparseSoftmax::plan(&none).unwrap().run_in_place(&stream, &mut none).unwrap();
}
