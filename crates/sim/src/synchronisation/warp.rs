//! Operations of a warp: shuffles, votes and its barrier; and coming to those of the whole warp.
use lacuna_gpu::{FULL_WARP, WARP};

use crate::execution::context::Context;
use crate::execution::schedule::{State, lanes};
use crate::report::finding::FindingKind;
use crate::report::operation::Operation;
use crate::report::site::Caller;
use crate::synchronisation::call::{WarpCall, WarpOperation};
use crate::synchronisation::exchange::{Exchange, Parcel};

/// A thread reaches a warp operation; `call.site` is filled in here. Gives whether it has to wait.
pub(crate) fn reach(context: &mut Context<'_>, thread: u32, caller: Caller, mut call: WarpCall) -> bool {
    let operation = match call.operation {
        WarpOperation::Sync => Operation::WarpBarrier,
        shuffle if shuffle.is_shuffle() => Operation::Shuffle,
        _ => Operation::Vote,
    };
    call.site = context.step(thread, caller, operation);
    if let Err((kind, detail)) = check(thread % 32, &call) {
        context.report(kind, call.site, thread, None, None, detail);
        return false;
    }
    context.schedule.wait(thread, State::Warp(call));
    true
}

/// A thread reaches an operation of the whole warp, with the words that it gives to it.
pub(crate) fn reach_aligned(
    context: &mut Context<'_>,
    exchange: &mut Exchange,
    thread: u32,
    caller: Caller,
    operation: WarpOperation,
    parcel: Parcel,
) {
    let counted = match operation {
        WarpOperation::Multiply(factors) => Operation::of_product(factors),
        _ => Operation::SharedLoadMatrices,
    };
    let site = context.tick(thread, caller, counted);
    exchange.give(thread, parcel);
    let call = WarpCall { operation, site, mask: FULL_WARP, value: 0, lane: 0, width: WARP };
    context.schedule.wait(thread, State::Warp(call));
}

/// All lanes that name each other have come to an operation.
pub(crate) fn complete(context: &mut Context<'_>, warp: usize, present: u32, operation: WarpOperation) {
    let mut values = [0; WARP as usize];
    let mut holds = 0;
    for lane in lanes(present) {
        let value = context.schedule.warp_call(warp, lane).map_or(0, |call| call.value);
        values[lane as usize] = value;
        holds |= u32::from(value != 0) << lane;
    }
    let same = match operation {
        WarpOperation::Sync => {
            context.clocks.warp_barrier(warp, present);
            0
        }
        WarpOperation::All => u32::from(holds == present),
        WarpOperation::Any => u32::from(holds != 0),
        WarpOperation::Ballot => holds,
        _ => return complete_shuffle(context, warp, present, &values),
    };
    for lane in lanes(present) {
        context.schedule.wake(warp * WARP as usize + lane as usize, same);
    }
}

/// Gives each lane the value of the one that it reads.
fn complete_shuffle(context: &mut Context<'_>, warp: usize, present: u32, values: &[u32; WARP as usize]) {
    for lane in lanes(present) {
        let Some(call) = context.schedule.warp_call(warp, lane) else { continue };
        let (thread, source) = (warp * WARP as usize + lane as usize, source_lane(lane, &call));
        let result = if present >> source & 1 != 0 {
            values[source as usize]
        } else {
            report_absent(context, thread as u32, &call, source)
        };
        context.schedule.wake(thread, result);
    }
}

/// Gives the value that stands for an undefined one.
#[cold]
fn report_absent(context: &mut Context<'_>, thread: u32, call: &WarpCall, source: u32) -> u32 {
    let why = if call.mask >> source & 1 == 0 { "is not in the mask" } else { "has exited" };
    let detail = format!(
        "{} in lane {} reads lane {source}, which {why} {:#010x}: the value is undefined",
        call.operation.name(),
        thread % 32,
        call.mask
    );
    context.report(FindingKind::AbsentLane, call.site, thread, None, None, detail);
    0
}

/// Refuses calls that no other lane could make good.
fn check(lane: u32, call: &WarpCall) -> Result<(), (FindingKind, String)> {
    let WarpCall { operation, mask, width, .. } = *call;
    if mask >> lane & 1 == 0 {
        let detail = format!("{} with mask {mask:#010x} called by lane {lane}", operation.name());
        return Err((FindingKind::CallerNotInMask, detail));
    }
    if operation.is_shuffle() && !(width.is_power_of_two() && width <= 32) {
        let detail = format!("width {width}: a power of two of at most 32 is expected");
        return Err((FindingKind::BadArgument, detail));
    }
    if operation == WarpOperation::ShuffleXor && call.lane >= width {
        let detail = format!("lane bits {} reach beyond the width {width}", call.lane);
        return Err((FindingKind::BadArgument, detail));
    }
    Ok(())
}

/// The lane that a shuffle reads.
fn source_lane(lane: u32, call: &WarpCall) -> u32 {
    let WarpCall { width, .. } = *call;
    let (first, last) = (lane & !(width - 1), lane | (width - 1));
    // The hardware looks at five bits.
    let given = call.lane & 31;
    match call.operation {
        WarpOperation::ShuffleIdx => first | (given & (width - 1)),
        WarpOperation::ShuffleDown if lane + given <= last => lane + given,
        WarpOperation::ShuffleUp if lane >= first + given => lane - given,
        WarpOperation::ShuffleXor => lane ^ given,
        _ => lane,
    }
}
