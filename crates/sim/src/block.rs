//! Running one block: each of its threads is a coroutine, and one host thread runs them all in turn.
use std::cell::RefCell;
use std::io;

use corosensei::Coroutine;
use corosensei::stack::DefaultStack;

use crate::schedule::lanes;
use crate::thread::SimThread;
use crate::trap;
use crate::worker::Worker;

/// Bytes of a simulated thread's stack; only what is touched takes memory.
const STACK_BYTES: usize = 256 * 1024;

type Thread = Coroutine<(), (), (), DefaultStack>;

/// A kernel with its arguments.
pub(crate) type Body<'b> = dyn Fn(SimThread<'_, '_>) + Sync + 'b;

/// The coroutines of a block.
struct Threads<'b, 'l> {
    worker: &'b RefCell<Worker<'l>>,
    body: &'b Body<'b>,
    stacks: &'b mut Vec<DefaultStack>,
    running: Vec<Option<Thread>>,
}

/// Runs the block with linear index `block` to its end.
///
/// # Errors
/// The host has no memory for another stack.
pub(crate) fn run(
    worker: &RefCell<Worker<'_>>,
    stacks: &mut Vec<DefaultStack>,
    body: &Body<'_>,
    block: u64,
) -> io::Result<()> {
    worker.borrow_mut().start_block(block);
    let count = worker.borrow().launch.geometry.threads;
    let mut threads = Threads { worker, body, stacks, running: Vec::new() };
    threads.running.resize_with(count as usize, || None);
    let result = threads.run();
    threads.unwind();
    worker.borrow_mut().finish_block();
    result
}

impl Threads<'_, '_> {
    fn run(&mut self) -> io::Result<()> {
        let warps = self.worker.borrow().schedule.warps();
        loop {
            for warp in 0..warps {
                self.run_warp(warp)?;
                if self.worker.borrow().aborted {
                    return Ok(());
                }
            }
            if !self.worker.borrow_mut().resolve_block() {
                return Ok(());
            }
        }
    }

    /// Runs the lanes of a warp until all of them wait for other warps, or have exited.
    fn run_warp(&mut self, warp: usize) -> io::Result<()> {
        loop {
            let ready = self.worker.borrow().schedule.ready(warp);
            if ready == 0 || self.worker.borrow().aborted {
                return Ok(());
            }
            for lane in lanes(ready) {
                self.resume(warp as u32 * 32 + lane)?;
                if self.worker.borrow().aborted {
                    return Ok(());
                }
            }
            self.worker.borrow_mut().resolve_warp(warp);
        }
    }

    /// Lets a thread run to its next wait. A thread's stack goes to the next as soon as it exits.
    fn resume(&mut self, thread: u32) -> io::Result<()> {
        let slot = &mut self.running[thread as usize];
        let mut coroutine = match slot.take() {
            Some(suspended) => suspended,
            None => {
                let stack = self.stacks.pop().map_or_else(|| DefaultStack::new(STACK_BYTES), Ok)?;
                start(stack, self.worker, self.body, thread)
            }
        };
        trap::in_kernel(|| coroutine.resume(()));
        if coroutine.done() {
            self.stacks.push(coroutine.into_stack());
        } else {
            *slot = Some(coroutine);
        }
        Ok(())
    }

    /// Ends the threads that are left when a block is given up.
    fn unwind(&mut self) {
        for mut coroutine in self.running.drain(..).flatten() {
            self.worker.borrow_mut().aborted = true;
            coroutine.force_unwind();
            self.stacks.push(coroutine.into_stack());
        }
    }
}

fn start<'b, 'l>(
    stack: DefaultStack,
    worker: &'b RefCell<Worker<'l>>,
    body: &'b Body<'b>,
    thread: u32,
) -> Thread {
    let main = move |yielder: &corosensei::Yielder<(), ()>, ()| {
        let outcome = trap::catch(|| body(SimThread::new(worker, yielder, thread)));
        worker.borrow_mut().exit(thread, outcome);
    };
    // SAFETY: the coroutine borrows `worker` and `body`. It lives in `Threads`, which borrows them for as long, is
    // dropped (and with it every coroutine) before they are, and never forgets a coroutine.
    unsafe { Coroutine::with_stack_unchecked(stack, main) }
}
