//! Plans, found again by what they were made for.
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::FromPyObject;

use crate::device::Dtype;

/// What a plan was made for: the operation, the type of values, and its numbers (sizes, strides, a stream where the plan has memory
/// of its own, the bits of factors).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) operation: Operation,
    pub(crate) dtype: Dtype,
    pub(crate) numbers: [u64; 10],
}

/// The stream of a call, and whether a graph is recorded there.
#[derive(Clone, Copy, Debug, FromPyObject)]
pub(crate) struct CallStream(pub(crate) usize, pub(crate) bool);

/// What is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    Spmm,
    Sddmm,
    Softmax,
    Attention,
    BlockAttention,
    BlockAttentionBackward,
    TopN,
    Lookup,
}

/// The plans of a pattern, of bags, or of a device.
#[derive(Default)]
pub(crate) struct Plans {
    by_key: Mutex<HashMap<Key, Arc<dyn Any + Send + Sync>>>,
    /// The stream of the last call that was not recorded.
    last: Mutex<Option<usize>>,
}

impl Plans {
    /// The stream whose plan a call takes: its own, as a plan may have memory of its own, which runs on several streams must not
    /// share. While a graph is recorded that of the last call before it, as no memory can be had then.
    pub(crate) fn stream_of(&self, CallStream(stream, is_recorded): CallStream) -> usize {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if is_recorded { last.unwrap_or(stream) } else { *last.insert(stream) }
    }

    /// The plan of this key, where it is there.
    pub(crate) fn get<P: Any + Send + Sync>(&self, key: &Key) -> Option<Arc<P>> {
        let known = self.by_key.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        known.map(|plan| plan.downcast().expect("a key has its operation and its types"))
    }

    /// The plan of this key, made first where it is not there. Of two threads that make it at once both get the first that was
    /// kept. A key is always asked for with one type.
    pub(crate) fn get_or_make<P: Any + Send + Sync>(
        &self,
        key: Key,
        make: impl FnOnce() -> lacuna::Result<P>,
    ) -> lacuna::Result<Arc<P>> {
        if let Some(plan) = self.get(&key) {
            return Ok(plan);
        }
        let made: Arc<dyn Any + Send + Sync> = Arc::new(make()?);
        let plan = {
            let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(by_key.entry(key).or_insert(made))
        };
        Ok(plan.downcast().expect("a key has its operation and its types"))
    }
}
