//! A user's program: its manifest names one operation.
use lacuna::matrix::Csr;
use lacuna::{CsrMatrix, Device, Error, Spmm};

/// Multiplies, and gives the product.
fn product(device: &Device) -> lacuna::Result<Vec<f32>> {
    let stream = device.stream()?;
    let a = CsrMatrix::new(device, &Csr::new(2, 3, vec![0, 1, 3], vec![1, 0, 2], vec![3.0_f32, 1.0, 2.0])?)?;
    let (b, mut c) = (device.upload(&[1.0, 10.0, 100.0])?, device.zeros::<f32>(2)?);
    Spmm::plan(&a, 1)?.run(&stream, &a, b.as_slice(), c.as_slice_mut())?;
    c.download(&stream)
}

/// Asks for an operation that the manifest does not name.
fn left_out(device: &Device) -> lacuna::Result<()> {
    let a = CsrMatrix::new(device, &Csr::new(1, 2, vec![0, 1], vec![1], vec![3.0_f32])?)?;
    a.transposed(&device.stream()?).map(drop)
}

fn main() -> lacuna::Result<()> {
    assert_eq!(product(&Device::simulator())?, [30.0, 201.0]);
    println!("simulator: right");
    match Device::cuda(0) {
        Ok(device) => {
            println!("GPU: {:?}", product(&device)?);
            match left_out(&device) {
                Err(Error::LeftOut { entry, feature }) => println!("left out: {entry} of {feature}"),
                other => println!("not left out: {other:?}"),
            }
        }
        Err(error) => println!("no GPU: {error}"),
    }
    Ok(())
}
