//! Plans, found again by what they were made for.
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::FromPyObject;

use crate::device::Dtype;

/// What a plan was made for: the operation, the type of values, and its numbers (sizes, strides, the bits of factors).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) operation: Operation,
    pub(crate) dtype: Dtype,
    /// The stream of its calls, as a plan may have memory of its own, which runs on several streams must not share; 0 for plans that
    /// have none.
    pub(crate) stream: usize,
    pub(crate) numbers: [u64; 9],
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
    known: Mutex<Known>,
}

type Plan = Arc<dyn Any + Send + Sync>;

#[derive(Default)]
struct Known {
    by_key: HashMap<Key, Plan>,
    /// The one that was asked for last: calls in a loop ask for one, and to compare a key takes less than to hash it.
    recent: Option<(Key, Plan)>,
}

impl Known {
    fn get(&mut self, key: &Key) -> Option<Plan> {
        match &self.recent {
            Some((recent, plan)) if recent == key => Some(Arc::clone(plan)),
            _ => {
                let plan = Arc::clone(self.by_key.get(key)?);
                self.recent = Some((key.clone(), Arc::clone(&plan)));
                Some(plan)
            }
        }
    }

    /// The plan of this key, of whichever stream; of several that with the least handle.
    fn of_any_stream(&self, key: &Key) -> Option<Plan> {
        let is_alike = |other: &&Key| Key { stream: key.stream, ..(*other).clone() } == *key;
        let found = self.by_key.keys().filter(is_alike).min_by_key(|other| other.stream)?;
        self.by_key.get(found).cloned()
    }
}

impl Plans {
    /// The plan of this key, where it is there.
    pub(crate) fn get<P: Any + Send + Sync>(&self, key: &Key) -> Option<Arc<P>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(key);
        known.map(|plan| plan.downcast().expect("a key has its operation and its types"))
    }

    /// The plan of this key, made first where it is not there. While a graph is recorded another stream's will do, as no memory can be
    /// had then. Of two threads that make it at once both get the first that was kept. A key is always asked for with one type.
    pub(crate) fn get_or_make<P: Any + Send + Sync>(
        &self,
        key: Key,
        is_recorded: bool,
        make: impl FnOnce() -> lacuna::Result<P>,
    ) -> lacuna::Result<Arc<P>> {
        if let Some(plan) = self.get(&key) {
            return Ok(plan);
        }
        if is_recorded {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(plan) = known.of_any_stream(&key) {
                return Ok(plan.downcast().expect("a key has its operation and its types"));
            }
        }
        let made: Plan = Arc::new(make()?);
        let plan = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.by_key.entry(key).or_insert(made))
        };
        Ok(plan.downcast().expect("a key has its operation and its types"))
    }
}
