//! Streams and memory of another library's: what the driver is asked, and what is never done to them.
use std::ffi::c_void;
use std::thread;

use lacuna::matrix::Csr;
use lacuna::{CsrMatrix, Device, Error, Slice, SliceMut, Spmm, Stream};

use super::journal;

/// The handle of a stream of the fake driver's one context.
const THEIRS: usize = 0x5a;

/// A borrowed stream of this handle.
fn borrowed(device: &Device, handle: usize) -> lacuna::Result<Stream> {
    // SAFETY: the fake driver looks at no stream.
    unsafe { Stream::from_raw(device, handle as *mut c_void) }
}

#[test]
fn a_run_on_foreign_memory_and_a_foreign_stream_launches_and_does_nothing_else() {
    let work = || {
        let device = Device::cuda(0).unwrap();
        let a = Csr::new(1, 2, vec![0, 1], vec![1], vec![3.0_f32]).unwrap();
        let a = CsrMatrix::new(&device, &a).unwrap();
        let plan = Spmm::plan(&a, 2).unwrap();
        // The fake's device memory is the host's.
        let (values, b, mut c) = (vec![0_u128; 8], vec![1.0_f32; 4], vec![0.0_f32; 2]);
        super::note("begin");
        for handle in [THEIRS, 0, 2] {
            let stream = borrowed(&device, handle).unwrap();
            assert_eq!(stream.as_raw() as usize, handle);
            // SAFETY: the vectors outlive the calls, which copy addresses alone: the fake runs no kernel.
            unsafe {
                let a = a.with_foreign_values::<f32>(1, values.as_ptr() as u64).unwrap();
                let b = Slice::from_raw(&device, b.as_ptr() as u64, 4).unwrap();
                let c = SliceMut::from_raw(&device, c.as_mut_ptr() as u64, 2).unwrap();
                plan.run(&stream, &a, b, c).unwrap();
            }
        }
        super::note("end");
    };
    let test = "foreign::a_run_on_foreign_memory_and_a_foreign_stream_launches_and_does_nothing_else";
    if let Some(journal) = journal(test, &["FAKE_ALL"], work) {
        let run =
            journal.iter().skip_while(|&word| word != "begin").skip(1).take_while(|&word| word != "end");
        let run: Vec<&str> = run.map(String::as_str).collect();
        // The kernel is loaded once. Nothing is waited for, allocated or destroyed.
        assert_eq!(run, ["context-of", "load", "launch", "launch", "launch"]);
    }
}

#[test]
fn a_borrowed_stream_works_from_any_thread() {
    let work = || {
        let device = Device::cuda(0).unwrap();
        let stream = borrowed(&device, THEIRS).unwrap();
        // The thread has no current context; `run` waits for the device, which fails without one.
        thread::scope(|scope| scope.spawn(|| super::run(&device, &stream).unwrap()).join().unwrap());
    };
    if let Some(journal) = journal("foreign::a_borrowed_stream_works_from_any_thread", &[], work) {
        assert_eq!(journal, ["load", "launch", "unload", "release"]);
    }
}

#[test]
fn a_stream_of_another_context_is_refused() {
    let work = || {
        let error = borrowed(&Device::cuda(0).unwrap(), THEIRS + 1).unwrap_err();
        assert!(matches!(error, Error::Parameter { .. }) && error.is_usage(), "{error}");
        assert!(error.to_string().contains("another context"), "{error}");
    };
    if let Some(journal) = journal("foreign::a_stream_of_another_context_is_refused", &[], work) {
        assert_eq!(journal, ["release"]);
    }
}

/// A context that no device of ours has.
fn set_current(context: usize) {
    unsafe extern "C" {
        fn cuCtxSetCurrent(context: *mut c_void) -> i32;
    }
    // SAFETY: the fake driver keeps the pointer alone.
    assert_eq!(unsafe { cuCtxSetCurrent(context as *mut c_void) }, 0);
}

fn current() -> usize {
    unsafe extern "C" {
        fn cuCtxGetCurrent(context: *mut *mut c_void) -> i32;
    }
    let mut found = std::ptr::null_mut();
    // SAFETY: the place is live.
    assert_eq!(unsafe { cuCtxGetCurrent(&mut found) }, 0);
    found as usize
}

#[test]
fn new_devices_and_what_is_dropped_leave_another_context_current() {
    const THEIR_CONTEXT: usize = 0x77;
    let work = || {
        set_current(THEIR_CONTEXT);
        let device = Device::cuda(0).unwrap();
        assert_eq!(current(), THEIR_CONTEXT);
        let (buffer, pinned) = (device.zeros::<f32>(4).unwrap(), device.host_buffer::<f32>(4).unwrap());
        assert_ne!(current(), THEIR_CONTEXT, "calls make their own current");
        set_current(THEIR_CONTEXT);
        drop(buffer);
        assert_eq!(current(), THEIR_CONTEXT);
        drop(pinned);
        assert_eq!(current(), THEIR_CONTEXT);
        let stream = device.stream().unwrap();
        super::run(&device, &stream).unwrap();
        set_current(THEIR_CONTEXT);
        drop(stream);
        assert_eq!(current(), THEIR_CONTEXT);
    };
    journal("foreign::new_devices_and_what_is_dropped_leave_another_context_current", &[], work);
}
