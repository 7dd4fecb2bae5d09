//! What one launch leaves for the next ones, because the host takes long to make it: thousands of pages that it must clear.
use std::sync::{Mutex, PoisonError};

/// Things of one kind that nobody uses now. As many are made as were ever in use at once, and they stay until the program ends:
/// for a host thread some ten MB of tables, and of the stacks the pages that were touched.
#[derive(Debug)]
pub(crate) struct Pool<T>(Mutex<Vec<T>>);

impl<T: Default> Pool<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// One that was given back, or a new one.
    pub(crate) fn take(&self) -> T {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub(crate) fn give(&self, thing: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(thing);
    }
}
