//! Both views of a matrix compute what they say.
use lacuna::Device;
use lacuna::matrix::Csr;

use crate::side::{Inner, Side};

const RANK: usize = 2;
/// 3×2 and 2×2; whole numbers, so that all is exact.
const A: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
const B: [f32; 4] = [1.0, -1.0, 2.0, 3.0];

/// ```text
/// [ x x ]
/// [ . . ]
/// [ . x ]
/// ```
fn pattern() -> Csr<f32> {
    Csr::new(3, 2, vec![0, 2, 2, 3], vec![0, 1, 1], vec![0.0; 3]).unwrap()
}

#[test]
fn products_and_sums_of_both_views() {
    for inner in [Inner::Kernel, Inner::Plain] {
        let device = Device::simulator();
        let stream = device.stream().unwrap();
        let (mut rows, mut columns) = Side::pair(&device, &stream, &pattern(), RANK, inner).unwrap();
        rows.fix(&B).unwrap();
        assert_eq!(rows.products(&stream, &A).unwrap(), [-1.0, 8.0, 28.0], "{inner:?}");
        columns.fix(&A).unwrap();
        assert_eq!(columns.products(&stream, &B).unwrap(), [-1.0, 8.0, 28.0], "{inner:?}");

        rows.set_values(&[10.0, 20.0, 30.0]).unwrap();
        assert_eq!(rows.sums(&stream).unwrap(), [50.0, 50.0, 0.0, 0.0, 60.0, 90.0], "{inner:?}");
        assert_eq!(columns.take_values(&stream, &rows).unwrap(), [10.0, 20.0, 30.0], "{inner:?}");
        assert_eq!(columns.sums(&stream).unwrap(), [10.0, 20.0, 170.0, 220.0], "{inner:?}");
    }
}
