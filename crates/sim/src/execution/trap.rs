//! Panics of a kernel: on a GPU they trap; here they become findings.
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use crate::report::finding::Source;

/// What a panicking kernel said.
#[derive(Debug)]
pub(crate) struct Panic {
    pub(crate) message: String,
    pub(crate) source: Option<Source>,
}

thread_local! {
    static IN_KERNEL: Cell<bool> = const { Cell::new(false) };
    static LAST_SOURCE: RefCell<Option<Source>> = const { RefCell::new(None) };
}

/// Teaches the process's panic hook to keep quiet about kernels and to note where they panic. Everything else goes to
/// the hook that was there before. Without this (a later hook has replaced it) findings lack the line, no more.
pub(crate) fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            if IN_KERNEL.get() {
                let source = info.location().map(|at| Source {
                    file: at.file().to_owned().into(),
                    line: at.line(),
                    column: at.column(),
                });
                LAST_SOURCE.set(source);
            } else {
                previous(info);
            }
        }));
    });
}

/// Runs `f`, in which kernel code may panic.
pub(crate) fn in_kernel<R>(f: impl FnOnce() -> R) -> R {
    IN_KERNEL.set(true);
    let result = f();
    IN_KERNEL.set(false);
    result
}

/// Runs a kernel's body and catches its panic.
pub(crate) fn catch(body: impl FnOnce()) -> Result<(), Panic> {
    catch_unwind(AssertUnwindSafe(body))
        .map_err(|payload| Panic { message: message(&*payload), source: LAST_SOURCE.take() })
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("the kernel panicked").to_owned()
}
