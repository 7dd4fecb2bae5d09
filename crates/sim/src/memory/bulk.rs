//! Bulk tensor copies from global to shared memory.
//!
//! As with other asynchronous copies, bytes are taken when a copy starts, and land when its warp waits for it. The first lane of a warp
//! stands for all.
use std::collections::BTreeMap;

use lacuna_gpu::Tensor;

use crate::execution::context::Context;
use crate::memory::bits::Words;
use crate::memory::global::{GlobalAccess, GlobalMemory};
use crate::memory::shared::{SharedAccess, SharedMemory};
use crate::order::race::Access;
use crate::report::finding::FindingKind;
use crate::report::operation::Operation;
use crate::report::site::{Caller, SiteId};

/// Bytes that are copied together, and swizzled.
const PIECE: u32 = 16;
/// Multiple at which a box begins in shared memory.
const ALIGNED: u32 = 1024;
/// Rows, and columns, that a box has at most.
const MOST: u32 = 256;

/// A piece of a box under way.
struct Piece {
    to: SharedAccess,
    value: Words,
}

/// A barrier of a thread's copies.
struct Barrier {
    thread: u32,
    /// How often it was waited for.
    turn: u32,
    expected: u32,
    /// The line of the first copy under way.
    site: SiteId,
    pending: Vec<Piece>,
}

impl Barrier {
    fn started(&self) -> u32 {
        self.pending.len() as u32 * PIECE
    }
}

/// Who uses a barrier: a thread, its line, and the barrier's place.
#[derive(Clone, Copy)]
pub(crate) struct BarrierUse {
    pub(crate) thread: u32,
    pub(crate) caller: Caller,
    pub(crate) at: u32,
}

/// The checker of bulk copies: the barriers of a block by their places.
#[derive(Default)]
pub(crate) struct BulkCopies(BTreeMap<u32, Barrier>);

impl BulkCopies {
    pub(crate) fn start_block(&mut self) {
        self.0.clear();
    }

    /// Makes a barrier.
    pub(crate) fn init(
        &mut self,
        context: &mut Context<'_>,
        shared: &mut SharedMemory,
        BarrierUse { thread, caller, at }: BarrierUse,
    ) {
        let (operation, bytes) = (Operation::BulkControl, size_of::<u64>() as u32);
        let access = SharedAccess { thread, caller, operation, offset: at, bytes, element: bytes };
        shared.store(context, access, [0; 2]);
        let barrier = Barrier { thread, turn: 0, expected: 0, site: 0, pending: Vec::new() };
        if self.0.insert(at, barrier).is_some_and(|before| !before.pending.is_empty()) {
            let site = context.site(caller, operation);
            refuse(context, thread, site, format!("the barrier at {at} has copies under way"));
        }
    }

    /// The barrier, if the thread has one there.
    fn own(&mut self, context: &mut Context<'_>, by: BarrierUse, site: SiteId) -> Option<&mut Barrier> {
        let own = self.0.get_mut(&by.at).filter(|barrier| barrier.thread == by.thread);
        if own.is_none() {
            refuse(context, by.thread, site, format!("the warp has no barrier at {}", by.at));
        }
        own
    }

    pub(crate) fn expect(&mut self, context: &mut Context<'_>, by: BarrierUse, bytes: u32) {
        let site = context.step(by.thread, by.caller, Operation::BulkControl);
        let Some(barrier) = self.own(context, by, site) else { return };
        let before = std::mem::replace(&mut barrier.expected, bytes);
        if before != 0 {
            let detail = format!("{before} bytes are expected already, and nobody has waited for them");
            refuse(context, by.thread, site, detail);
        }
    }

    /// Starts a copy of a box to `to`.
    pub(crate) fn start<'l>(
        &mut self,
        context: &mut Context<'l>,
        (global, shared): (&mut GlobalMemory<'l>, &mut SharedMemory),
        (tensor, at): (&Tensor, [u32; 3]),
        to: u32,
        by: BarrierUse,
    ) {
        let BarrierUse { thread, caller, .. } = by;
        let site = context.step(thread, caller, Operation::BulkCopyWrite);
        let Some(barrier) = self.own(context, by, site) else { return };
        if let Some(detail) = fault(tensor, to) {
            return refuse(context, thread, site, detail);
        }
        if barrier.pending.is_empty() {
            barrier.site = site;
        }
        let from_site = context.site(caller, Operation::BulkCopy);
        let (mut sources, mut targets) = (Vec::new(), Vec::new());
        for row in 0..tensor.box_dim[1] {
            for column in (0..tensor.box_dim[0]).step_by((PIECE / Tensor::ELEMENT) as usize) {
                let offset =
                    to + row * tensor.row_bytes() + ((column * Tensor::ELEMENT) ^ tensor.swizzle(row));
                let access = SharedAccess {
                    thread,
                    caller,
                    operation: Operation::BulkCopyWrite,
                    offset,
                    bytes: PIECE,
                    element: Tensor::ELEMENT,
                };
                if u64::from(offset) + u64::from(PIECE) > u64::from(shared.cells.len()) {
                    return shared.report(context, FindingKind::OutOfBounds, site, &access, None);
                }
                let value = address(tensor, at, [column, row]).map_or([0; 2], |address| {
                    sources.push(address);
                    let operation = Operation::BulkCopy;
                    let (bytes, element) = (PIECE, Tensor::ELEMENT);
                    let access = GlobalAccess { thread, caller, operation, address, bytes, element };
                    global.load_piece(context, &access, from_site)
                });
                targets.push(u64::from(offset));
                shared.overwrite_by_proxy(context, &access, site);
                shared.cells.set_flight(offset, PIECE, thread, site);
                barrier.pending.push(Piece { to: access, value });
            }
        }
        context.costs.bulk((from_site, Operation::BulkCopy), PIECE, &sources);
        context.costs.bulk((site, Operation::BulkCopyWrite), PIECE, &targets);
    }

    /// Lands the copies at a barrier.
    pub(crate) fn wait(
        &mut self,
        context: &mut Context<'_>,
        shared: &mut SharedMemory,
        by: BarrierUse,
        turn: u32,
    ) {
        let site = context.step(by.thread, by.caller, Operation::BulkControl);
        let Some(barrier) = self.own(context, by, site) else { return };
        let (expected, started) = (std::mem::take(&mut barrier.expected), barrier.started());
        let before = barrier.turn;
        barrier.turn += 1;
        let copied = barrier.site;
        for Piece { to, value } in barrier.pending.drain(..) {
            shared.cells.clear_flight(to.offset, to.bytes, by.thread);
            shared.visit(context, &to, copied, Access::Write);
            shared.cells.store(to.offset, to.bytes, value);
        }
        if expected == 0 || expected != started {
            let detail = format!(
                "{expected} bytes are expected, and copies of {started} have started: a GPU would wait forever"
            );
            refuse(context, by.thread, site, detail);
        } else if turn % 2 != before % 2 {
            let detail = format!("turn {turn}, where the barrier has been waited for {before} times");
            refuse(context, by.thread, site, detail);
        }
    }

    pub(crate) fn check_exit(&self, context: &mut Context<'_>, thread: u32) {
        let mut own = self.0.values().filter(|barrier| barrier.thread == thread);
        if let Some(barrier) = own.find(|barrier| !barrier.pending.is_empty()) {
            let detail = format!("bulk copies of {} bytes under way", barrier.started());
            context.report(FindingKind::CopyNotWaited, barrier.site, thread, None, None, detail);
        }
    }
}

fn refuse(context: &mut Context<'_>, thread: u32, site: SiteId, detail: String) {
    context.report(FindingKind::BadArgument, site, thread, None, None, detail);
}

/// What is wrong with a copy of a box of this tensor to `to`, if anything.
fn fault(tensor: &Tensor, to: u32) -> Option<String> {
    let [columns, rows] = tensor.box_dim;
    let sixteens = [tensor.address, tensor.stride_bytes[0], tensor.stride_bytes[1]];
    if !matches!(columns, 32 | 64) || !(1..=MOST).contains(&rows) {
        Some(format!("a box of {rows} rows of {columns} columns: 1 to {MOST} of 32 or 64 are expected"))
    } else if !sixteens.into_iter().all(|bytes| bytes.is_multiple_of(PIECE.into())) {
        Some(format!("the tensor's address and strides are {sixteens:?}: multiples of {PIECE} are expected"))
    } else if !tensor.extent[0].is_multiple_of(PIECE / Tensor::ELEMENT) {
        Some(format!("the tensor has {} columns: a multiple of eight is expected", tensor.extent[0]))
    } else if !to.is_multiple_of(ALIGNED) {
        Some(format!("a box at {to} of shared memory: a multiple of {ALIGNED} is expected"))
    } else {
        None
    }
}

/// Where a piece of the box at `at` lies, by its column and row in the box, unless outside of the tensor.
fn address(tensor: &Tensor, at: [u32; 3], [column, row]: [u32; 2]) -> Option<u64> {
    let column = at[0].checked_add(column).filter(|&column| column < tensor.extent[0])?;
    let row = at[1].checked_add(row).filter(|&row| row < tensor.extent[1])?;
    let matrix = Some(at[2]).filter(|&matrix| matrix < tensor.extent[2])?;
    let [row_bytes, matrix_bytes] = tensor.stride_bytes;
    let offset = u64::from(row) * row_bytes + u64::from(matrix) * matrix_bytes;
    Some(tensor.address + offset + u64::from(column * Tensor::ELEMENT))
}
