//! Running one cluster of blocks, mostly of one: each of their threads is a coroutine, and one host thread runs them all in
//! turn.
use std::cell::RefCell;
use std::io;

use corosensei::Coroutine;
use corosensei::stack::DefaultStack;

use crate::execution::schedule::lanes;
use crate::execution::thread::SimThread;
use crate::execution::trap;
use crate::execution::worker::Worker;
use crate::synchronisation::{cluster, deadlock};

/// Bytes of a simulated thread's stack; only what is touched takes memory.
const STACK_BYTES: usize = 256 * 1024;

type Thread = Coroutine<(), (), (), DefaultStack>;

/// A kernel with its arguments.
pub(crate) type Body<'b> = dyn Fn(SimThread<'_, '_>) + Sync + 'b;

/// The coroutines of a block.
struct Threads<'b, 'l> {
    /// The workers of the cluster, and which of them is the block's.
    cluster: &'b [RefCell<Worker<'l>>],
    worker: &'b RefCell<Worker<'l>>,
    body: &'b Body<'b>,
    running: Vec<Option<Thread>>,
}

/// Runs the blocks with linear indices from `first` on to their end, one by each worker: a cluster.
///
/// # Errors
/// The host has no memory for another stack.
pub(crate) fn run(
    workers: &[RefCell<Worker<'_>>],
    stacks: &mut Vec<DefaultStack>,
    body: &Body<'_>,
    first: u64,
) -> io::Result<()> {
    let start = |(worker, block): (&RefCell<Worker<'_>>, u64)| worker.borrow_mut().start_block(block);
    workers.iter().zip(first..).for_each(start);
    let mut blocks: Vec<_> = workers.iter().map(|worker| Threads::new(workers, worker, body)).collect();
    let result = run_all(workers, &mut blocks, stacks);
    blocks.iter_mut().for_each(|threads| threads.unwind(stacks));
    workers.iter().for_each(|worker| worker.borrow_mut().finish_block());
    result
}

/// Runs each block until it has ended, or waits for the others, until all have ended.
fn run_all(
    workers: &[RefCell<Worker<'_>>],
    blocks: &mut [Threads<'_, '_>],
    stacks: &mut Vec<DefaultStack>,
) -> io::Result<()> {
    loop {
        for threads in &mut *blocks {
            threads.run(stacks)?;
        }
        if !resolve(workers) {
            return Ok(());
        }
    }
}

/// When no block of the cluster can run on by itself: lets those go on that wait at its barrier, if all have come, or reports a
/// deadlock. Gives whether threads can run now.
fn resolve(workers: &[RefCell<Worker<'_>>]) -> bool {
    let waits = |worker: &&RefCell<Worker<'_>>| worker.borrow().context.schedule.waits_for_cluster();
    let Some(waiting) = workers.iter().find(waits) else { return false };
    if workers.iter().any(|worker| worker.borrow().context.aborted) {
        return false;
    }
    if workers.iter().all(|worker| cluster::has_come(&worker.borrow().context)) {
        workers.iter().for_each(|worker| cluster::fill(&mut worker.borrow_mut().context));
        return true;
    }
    let Worker { context, named, .. } = &mut *waiting.borrow_mut();
    deadlock::report_cluster(context, named);
    false
}

impl<'b, 'l> Threads<'b, 'l> {
    fn new(cluster: &'b [RefCell<Worker<'l>>], worker: &'b RefCell<Worker<'l>>, body: &'b Body<'b>) -> Self {
        let mut running = Vec::new();
        running.resize_with(worker.borrow().context.launch.geometry.threads as usize, || None);
        Self { cluster, worker, body, running }
    }

    fn run(&mut self, stacks: &mut Vec<DefaultStack>) -> io::Result<()> {
        let warps = self.worker.borrow().context.schedule.warps();
        loop {
            for warp in 0..warps {
                self.run_warp(warp, stacks)?;
                if self.worker.borrow().context.aborted {
                    return Ok(());
                }
            }
            if !self.worker.borrow_mut().resolve_block() {
                return Ok(());
            }
        }
    }

    /// Runs the lanes of a warp until all of them wait for other warps, or have exited.
    fn run_warp(&mut self, warp: usize, stacks: &mut Vec<DefaultStack>) -> io::Result<()> {
        loop {
            let ready = self.worker.borrow().context.schedule.ready(warp);
            if ready == 0 || self.worker.borrow().context.aborted {
                return Ok(());
            }
            for lane in lanes(ready) {
                self.resume(warp as u32 * 32 + lane, stacks)?;
                if self.worker.borrow().context.aborted {
                    return Ok(());
                }
            }
            self.worker.borrow_mut().resolve_warp(warp);
        }
    }

    /// Lets a thread run to its next wait. A thread's stack goes to the next as soon as it exits.
    fn resume(&mut self, thread: u32, stacks: &mut Vec<DefaultStack>) -> io::Result<()> {
        let slot = &mut self.running[thread as usize];
        let mut coroutine = match slot.take() {
            Some(suspended) => suspended,
            None => {
                let stack = stacks.pop().map_or_else(|| DefaultStack::new(STACK_BYTES), Ok)?;
                start(stack, self.cluster, self.worker, self.body, thread)
            }
        };
        trap::in_kernel(|| coroutine.resume(()));
        if coroutine.done() {
            stacks.push(coroutine.into_stack());
        } else {
            *slot = Some(coroutine);
        }
        Ok(())
    }

    /// Ends the threads that are left when a block is given up.
    fn unwind(&mut self, stacks: &mut Vec<DefaultStack>) {
        for mut coroutine in self.running.drain(..).flatten() {
            self.worker.borrow_mut().context.aborted = true;
            coroutine.force_unwind();
            stacks.push(coroutine.into_stack());
        }
    }
}

fn start<'b, 'l>(
    stack: DefaultStack,
    cluster: &'b [RefCell<Worker<'l>>],
    worker: &'b RefCell<Worker<'l>>,
    body: &'b Body<'b>,
    thread: u32,
) -> Thread {
    let main = move |yielder: &corosensei::Yielder<(), ()>, ()| {
        let outcome = trap::catch(|| body(SimThread::new(cluster, worker, yielder, thread)));
        worker.borrow_mut().exit(thread, outcome);
    };
    // SAFETY: the coroutine borrows `cluster`, `worker` and `body`. It lives in `Threads`, which borrows them for as long, is
    // dropped (and with it every coroutine) before they are, and never forgets a coroutine.
    unsafe { Coroutine::with_stack_unchecked(stack, main) }
}
