//! Plans, found again by what they were made for.
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use lacuna::{Stream, ValueType};

/// What a plan was made for: the operation, the type of values, the stream (a plan may have memory of its own), and numbers: sizes,
/// strides, the bits of factors.
type Key = (&'static str, ValueType, usize, Vec<usize>);

/// The plans of a pattern.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    by_key: Mutex<HashMap<Key, Arc<dyn Any + Send + Sync>>>,
}

impl Plans {
    /// The plan of an operation with values of `T`, made first where it is not there. An operation's name goes with one type of plan
    /// for each `T`.
    pub(crate) fn get_or_make<T: lacuna::Value, P: Any + Send + Sync>(
        &self,
        operation: &'static str,
        stream: &Stream,
        numbers: &[usize],
        make: impl FnOnce() -> lacuna::Result<P>,
    ) -> lacuna::Result<Arc<P>> {
        let key = (operation, T::TYPE, stream.as_raw() as usize, numbers.to_vec());
        let known = self.by_key.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let plan = match known {
            Some(plan) => plan,
            None => {
                let made: Arc<dyn Any + Send + Sync> = Arc::new(make()?);
                let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::clone(by_key.entry(key).or_insert(made))
            }
        };
        Ok(plan.downcast().expect("an operation's name goes with one type of plan"))
    }
}
