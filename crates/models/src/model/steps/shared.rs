//! What layers of a model share on the device.
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use lacuna::matrix::{Csr, Pattern};
use lacuna::{Buffer, CsrMatrix, Device, Result, Value};

/// Masks, which layers have in common, and room that each may write while it runs.
#[derive(Debug)]
pub(in crate::model) struct Shared<T: Value> {
    masks: RefCell<Vec<Mask<T>>>,
    room: RefCell<Option<Room<T>>>,
}

/// A mask on the host and on the device.
type Mask<T> = (Arc<Pattern>, Rc<CsrMatrix<T>>);

/// Memory in which a layer leaves nothing for others. Runs are one at a time, as those of a model are.
pub(super) type Room<T> = Arc<Mutex<Buffer<T>>>;

impl<T: Value> Default for Shared<T> {
    fn default() -> Self {
        Self { masks: RefCell::default(), room: RefCell::default() }
    }
}

impl<T: Value> Shared<T> {
    /// The mask on the device, and the bytes that this call put there.
    pub(super) fn mask(&self, device: &Device, mask: &Arc<Pattern>) -> Result<(Rc<CsrMatrix<T>>, usize)> {
        let mut masks = self.masks.borrow_mut();
        if let Some((_, matrix)) = masks.iter().find(|(known, _)| Arc::ptr_eq(known, mask)) {
            return Ok((Rc::clone(matrix), 0));
        }
        // Attention does not read values.
        let matrix = Csr::with_values(Pattern::clone(mask), vec![T::from_f32(0.0); mask.nnz()])?;
        let matrix = Rc::new(CsrMatrix::new(device, &matrix)?);
        masks.push((Arc::clone(mask), Rc::clone(&matrix)));
        let bytes = mask.nnz() * (size_of::<u32>() + size_of::<T>()) + (mask.rows() + 1) * size_of::<u32>();
        Ok((matrix, bytes))
    }

    /// The room, and the bytes that this call put there: all calls give `len`, the most elements that a layer of the network needs.
    pub(super) fn room(&self, device: &Device, len: usize) -> Result<(Room<T>, usize)> {
        let mut room = self.room.borrow_mut();
        if let Some(room) = &*room {
            return Ok((Arc::clone(room), 0));
        }
        let new = Arc::new(Mutex::new(device.uninitialized(len)?));
        *room = Some(Arc::clone(&new));
        Ok((new, len * size_of::<T>()))
    }
}
