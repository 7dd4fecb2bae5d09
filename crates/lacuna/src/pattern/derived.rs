//! A cache of what was worked out from something that does not change, by the type of the result.
use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

use crate::Result;

/// At most one value of each type. Values are added and never removed, so that references to them stay good. Whoever derives
/// something has a type of its own for it; this knows none of them.
#[derive(Default)]
pub(crate) struct Derived {
    /// A list: few types are derived from one pattern.
    first: OnceLock<Box<Node>>,
}

struct Node {
    value: Box<dyn Any + Send + Sync>,
    rest: Derived,
}

impl Derived {
    /// The value of this type, if it was made.
    pub(crate) fn get<D: Any + Send + Sync>(&self) -> Option<&D> {
        let node = self.first.get()?;
        node.value.downcast_ref().or_else(|| node.rest.get())
    }

    /// The value of this type, made first where it is not there. If two threads make it at once, one of the two results stays:
    /// both see that one.
    ///
    /// # Errors
    /// Those of `make`; then nothing is kept.
    pub(crate) fn get_or_make<D: Any + Send + Sync>(&self, make: impl FnOnce() -> Result<D>) -> Result<&D> {
        match self.get() {
            Some(value) => Ok(value),
            None => Ok(self.add(Box::new(Node { value: Box::new(make()?), rest: Self::default() }))),
        }
    }

    fn add<D: Any + Send + Sync>(&self, node: Box<Node>) -> &D {
        let refused = self.first.set(node).err();
        let here = self.first.get().expect("it was set, now or before");
        match (here.value.downcast_ref(), refused) {
            (Some(value), _) => value,
            (None, Some(node)) => here.rest.add(node),
            (None, None) => unreachable!("what was set is of this type"),
        }
    }
}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = std::iter::successors(self.first.get(), |node| node.rest.first.get()).count();
        f.debug_struct("Derived").field("values", &count).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn each_type_is_made_once() {
        let derived = Derived::default();
        assert_eq!(derived.get::<u32>(), None);
        assert_eq!(*derived.get_or_make(|| Ok(7_u32)).unwrap(), 7);
        assert_eq!(*derived.get_or_make(|| Ok("text")).unwrap(), "text");
        assert_eq!(*derived.get_or_make::<u32>(|| unreachable!("it is there")).unwrap(), 7);
        assert_eq!(
            (derived.get::<u32>(), derived.get::<&str>(), derived.get::<u8>()),
            (Some(&7), Some(&"text"), None)
        );
        assert_eq!(format!("{derived:?}"), "Derived { values: 2 }");
    }

    #[test]
    fn failures_are_not_kept() {
        let derived = Derived::default();
        assert!(derived.get_or_make::<u32>(|| Err(crate::Error::NoCuda)).is_err());
        assert_eq!(*derived.get_or_make(|| Ok(1_u32)).unwrap(), 1);
    }

    #[test]
    fn threads_see_one_value_of_each_type() {
        let (derived, made) = (Derived::default(), AtomicUsize::new(0));
        let next = || Ok(made.fetch_add(1, Ordering::Relaxed));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let first = *derived.get_or_make(next).unwrap();
                    let text = derived.get_or_make(|| Ok(String::from("a"))).unwrap();
                    assert_eq!((derived.get::<usize>(), derived.get::<String>()), (Some(&first), Some(text)));
                });
            }
        });
        assert_eq!(format!("{derived:?}"), "Derived { values: 2 }");
    }
}
