//! Runs of a plan that has memory of its own.
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lets runs whose launches hand something on through a plan's memory go one after another: of two threads that gave theirs to one
/// stream at once, launches would mix.
#[derive(Debug, Default)]
pub(crate) struct Turn(Mutex<()>);

impl Turn {
    /// Waits until no other run gives its launches to a stream. The turn ends with what this gives.
    pub(crate) fn take(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use lacuna_matrix::Csr;

    use crate::{CsrMatrix, Device, Spmm, spmm};

    /// One thread's pieces are not joined by another's run.
    #[test]
    fn threads_take_turns_with_a_plan_that_cuts_rows() {
        let device = Device::simulator();
        let columns = 64;
        let row = Csr::new(
            1,
            columns,
            vec![0, columns as u32],
            (0..columns as u32).collect(),
            vec![1.0_f32; columns],
        );
        let a = CsrMatrix::new(&device, &row.unwrap()).unwrap();
        let options = spmm::Options::default().reduce(spmm::Reduce::Max).longest_piece(8);
        let plan = Spmm::plan_with(&a, 4, options).unwrap();
        assert!(plan.longest_piece().is_some());
        let (stream, a, plan, device) = (&device.stream().unwrap(), &a, &plan, &device);
        thread::scope(|scope| {
            for value in [1.0_f32, 3.0] {
                scope.spawn(move || {
                    let b = device.upload(&vec![value; columns * 4]).unwrap();
                    let mut c = device.zeros(4).unwrap();
                    for _ in 0..100 {
                        plan.run(stream, a, b.as_slice(), c.as_slice_mut()).unwrap();
                        assert_eq!(c.download(stream).unwrap(), [value; 4]);
                    }
                });
            }
        });
    }
}
