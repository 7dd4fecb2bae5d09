//! Products of a warpgroup: four warps, each with its own rows of A and sums, and one B. A and B are in shared memory.
//!
//! Warps come one by one, and each computes its part when it comes. The sums stay here, and the thread has [`POISON`] in
//! their place until a wait gives them back. A and B count as being read from a product's start to the wait that retires it.
use std::collections::VecDeque;
use std::mem;

use lacuna_gpu::{FULL_WARP, WARP};

use crate::execution::schedule::{State, WarpCall, WarpOperation};
use crate::execution::worker::Worker;
use crate::memory::shared::Faults;
use crate::memory::shared_path::place;
use crate::report::finding::FindingKind;
use crate::report::operation::Operation;
use crate::report::site::{Caller, SiteId};
use crate::tensor::arithmetic::{self, Factors, Parcel};
use crate::tensor::product::{Left, PIECE, Product};

/// What a thread sees in place of sums to which products are being added: a NaN that no operation gives.
pub(crate) const POISON: f32 = f32::from_bits(0x7fe5_a5a5);

/// Warps of a warpgroup.
const WARPS: usize = 4;

/// What a warpgroup does together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarpgroupCall {
    Arrive,
    Multiply(Product),
    Commit,
    Wait { pending: u32 },
}

impl WarpgroupCall {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Arrive => "warpgroup_arrive",
            Self::Multiply(Product { factors: Factors::Bf16, .. }) => "warpgroup_mma_bf16",
            Self::Multiply(_) => "warpgroup_mma_f16",
            Self::Commit => "warpgroup_commit",
            Self::Wait { .. } => "warpgroup_wait",
        }
    }
}

/// Where A and B lie.
type Operands = [u32; 2];

/// A product under way.
struct Pending {
    group: u32,
    product: Product,
    operands: Operands,
    site: SiteId,
    /// When it started, on the clock of writes to shared memory.
    since: u64,
}

/// The products of one warp.
#[derive(Default)]
struct WarpProducts {
    /// Whether registers are in order since the last wait.
    arrived: bool,
    /// Groups committed so far; later products belong to the next one.
    committed: u32,
    pending: VecDeque<Pending>,
    /// The warp's 16 rows of sums, one after the other.
    sums: Vec<f32>,
    /// Whether products have been added that the threads have not got yet.
    hidden: bool,
    /// Whether the last wait gives the sums back.
    given: bool,
    /// Steps of its warpgroup that the warp has come to; none after one at which it was at odds with the others.
    steps: Option<usize>,
}

/// The warpgroups of a block.
#[derive(Default)]
pub(crate) struct Warpgroups {
    warps: Vec<WarpProducts>,
    /// The steps of each warpgroup, as its first warp came to them: line, A and B, and the warp.
    steps: Vec<Vec<(SiteId, Operands, usize)>>,
    /// A warp's rows of A, and B, as numbers, row by row; kept for their memory.
    numbers: [Vec<f64>; 2],
}

impl Warpgroups {
    pub(crate) fn start(&mut self, warps: usize) {
        self.warps.clear();
        self.warps.resize_with(warps, || WarpProducts { steps: Some(0), ..WarpProducts::default() });
        self.steps.clear();
        self.steps.resize(warps.div_ceil(WARPS), Vec::new());
    }
}

/// Row and column, among those of its warp, of a lane's sum `index`.
const fn position(lane: usize, index: usize) -> (usize, usize) {
    (lane / 4 + index / 2 % 2 * 8, index / 4 * 8 + lane % 4 * 2 + index % 2)
}

impl Worker<'_> {
    /// A thread makes its writes to shared memory visible to products.
    pub(crate) fn fence_proxy(&mut self, thread: u32, caller: Caller) {
        self.step(thread, caller, Operation::ProxyFence);
        self.shared.fence_proxy(thread, self.clocks.now(thread));
    }

    /// A thread reaches an operation of its warpgroup, with where A and B lie, and its sums.
    pub(crate) fn reach_warpgroup(
        &mut self,
        thread: u32,
        caller: Caller,
        call: WarpgroupCall,
        parcel: Parcel,
        sums: &[f32],
    ) {
        let site = match call {
            WarpgroupCall::Multiply(_) => self.tick(thread, caller, Operation::WarpgroupMma),
            _ => self.step(thread, caller, Operation::WarpgroupControl),
        };
        self.take_sums(thread, site, call, sums);
        self.exchange.give(thread, parcel);
        let operation = WarpOperation::Warpgroup(call);
        let call = WarpCall { operation, site, mask: FULL_WARP, value: 0, lane: 0, width: WARP };
        self.schedule.wait(thread, State::Warp(call));
    }

    /// Takes the sums that a product is the first to be added to; others must be those that the products in flight hide.
    fn take_sums(&mut self, thread: u32, site: SiteId, call: WarpgroupCall, sums: &[f32]) {
        let WarpProducts { sums: held, hidden, given, .. } = &mut self.warpgroups.warps[thread as usize / 32];
        *given = false;
        let (lane, columns) = (thread as usize % 32, 2 * sums.len());
        if !*hidden {
            if let WarpgroupCall::Multiply(_) = call {
                held.resize(16 * columns, 0.0);
                for (index, &sum) in sums.iter().enumerate() {
                    let (row, column) = position(lane, index);
                    held[row * columns + column] = sum;
                }
            }
        } else if !sums.is_empty() {
            let is_poison = |sum: &f32| sum.to_bits() == POISON.to_bits();
            if held.len() != 16 * columns || !sums.iter().all(is_poison) {
                let detail =
                    format!("{} with sums that are not those of the products in flight", call.name());
                self.report(FindingKind::SumsInFlight, site, thread, None, None, detail);
            }
        }
    }

    /// Gives a thread its sums back, if its last wait was for all products.
    pub(crate) fn give_sums(&self, thread: u32, sums: &mut [f32]) {
        let WarpProducts { sums: held, given, .. } = &self.warpgroups.warps[thread as usize / 32];
        let (lane, columns) = (thread as usize % 32, 2 * sums.len());
        if *given && held.len() == 16 * columns {
            for (index, sum) in sums.iter_mut().enumerate() {
                let (row, column) = position(lane, index);
                *sum = held[row * columns + column];
            }
        }
    }

    /// All lanes of a warp have come to an operation of its warpgroup.
    pub(crate) fn complete_warpgroup(&mut self, warp: usize, call: WarpgroupCall, site: SiteId) {
        let [a, b, ..] = self.exchange.warp(warp)[0];
        self.compare_warps(warp, call, site, [a, b]);
        let products = &mut self.warpgroups.warps[warp];
        match call {
            WarpgroupCall::Arrive => products.arrived = true,
            WarpgroupCall::Commit => products.committed += 1,
            WarpgroupCall::Multiply(product) => self.start_product(warp, product, site, [a, b]),
            WarpgroupCall::Wait { pending } => self.wait_for_products(warp, pending),
        }
    }

    /// Compares a warp's step with that of the first warp of its warpgroup that came to it.
    fn compare_warps(&mut self, warp: usize, call: WarpgroupCall, site: SiteId, operands: Operands) {
        let Warpgroups { warps, steps, .. } = &mut self.warpgroups;
        let Some(count) = warps[warp].steps else { return };
        let steps = &mut steps[warp / WARPS];
        if count == steps.len() {
            steps.push((site, operands, warp));
        }
        let (other, others, first) = steps[count];
        let meets = (other, others) == (site, operands);
        warps[warp].steps = meets.then_some(count + 1);
        if !meets {
            let detail = if other == site {
                let ([a, b], [other_a, other_b]) = (operands, others);
                format!(
                    "warp {warp} gives A at byte {a} and B at {b}, warp {first} at {other_a} and {other_b}"
                )
            } else {
                format!("warp {warp} comes to {}, where warp {first} came to another line", call.name())
            };
            let thread = warp as u32 * WARP;
            self.report(FindingKind::MismatchedWarpgroup, site, thread, None, Some(other), detail);
        }
    }

    fn start_product(&mut self, warp: usize, product: Product, site: SiteId, operands: Operands) {
        let first = warp as u32 * WARP;
        let products = &mut self.warpgroups.warps[warp];
        products.hidden = true;
        if !products.arrived {
            let detail = "no warpgroup_arrive since the last wait, or the kernel's start".to_owned();
            self.report(FindingKind::MissingArrive, site, first, None, None, detail);
        }
        let lanes = self.exchange.warp(warp);
        if let Some(lane) = lanes.iter().position(|parcel| parcel[..2] != operands) {
            let ([a, b], [lane_a, lane_b, ..]) = (operands, lanes[lane]);
            let detail =
                format!("A at byte {a} and B at {b} in lane 0, at {lane_a} and {lane_b} in lane {lane}");
            self.report(FindingKind::BadArgument, site, first + lane as u32, None, None, detail);
        }
        let [a, b] = operands;
        if !self.locate_a(first, site, a) || !self.locate_b(first, product, site, b) {
            return;
        }
        let [mut rows, mut numbers] = mem::take(&mut self.warpgroups.numbers);
        self.read(first, product, site, Left(a).places((warp % WARPS) as u32), &mut rows);
        self.read(first, product, site, product.places(b), &mut numbers);
        let products = &mut self.warpgroups.warps[warp];
        arithmetic::accumulate(&rows, &numbers, &mut products.sums);
        self.warpgroups.numbers = [rows, numbers];
        let since = self.shared.time();
        products.pending.push_back(Pending { group: products.committed, product, operands, site, since });
        let counts = self.counters.of(site);
        counts.executions += u64::from(product.columns / 8);
        counts.requests += 1;
        // B goes through the banks once, for all four warps.
        let bytes = u64::from(Left::BYTES) + u64::from(product.bytes()) / WARPS as u64;
        counts.bytes += bytes;
        counts.wavefronts += bytes / 128;
    }

    /// Whether A may be read: it is in bounds, and its panel begins where it must.
    fn locate_a(&mut self, thread: u32, site: SiteId, a: u32) -> bool {
        let (len, left) = (self.shared.len(), Left(a));
        let kind = if !left.is_aligned() {
            FindingKind::Misaligned
        } else if u64::from(left.panel()) + u64::from(Left::PANEL) > u64::from(len) {
            FindingKind::OutOfBounds
        } else {
            return true;
        };
        let detail =
            format!("A's panel begins at a multiple of {}, its columns at 32 bytes", Left::ALIGNMENT);
        let place = place(left.panel(), Left::PANEL, Product::ELEMENT, len);
        self.report(kind, site, thread, Some(place), None, detail);
        false
    }

    /// Whether B may be read: it is in bounds, and its panels begin where they must.
    fn locate_b(&mut self, thread: u32, product: Product, site: SiteId, b: u32) -> bool {
        let len = self.shared.len();
        let kind = if !product.is_aligned(b) {
            FindingKind::Misaligned
        } else if u64::from(b) + product.span() > u64::from(len) {
            FindingKind::OutOfBounds
        } else {
            return true;
        };
        let alignment = product.alignment();
        let detail = format!("B's panels, {} bytes apart, begin at multiples of {alignment}", product.panel);
        let place = place(b, product.span() as u32, Product::ELEMENT, len);
        self.report(kind, site, thread, Some(place), None, detail);
        false
    }

    /// Reads the pieces at these places as numbers, and reports what is wrong with them.
    fn read(
        &mut self,
        thread: u32,
        product: Product,
        site: SiteId,
        places: impl Iterator<Item = u32>,
        numbers: &mut Vec<f64>,
    ) {
        numbers.clear();
        let now = self.clocks.now(thread);
        for offset in places {
            let faults = self.shared.inspect(offset, &self.clocks.who(&now, site));
            let mut words = self.shared.load(offset, PIECE);
            if faults != Faults::default() {
                self.report_piece(thread, site, offset, &faults);
                if faults.uninitialised {
                    words = [0; 2];
                }
            }
            for word in words.into_iter().flat_map(|word| [word as u32, (word >> 32) as u32]) {
                numbers.extend([product.factors.value(word, 0), product.factors.value(word, 1)]);
            }
        }
    }

    #[cold]
    fn report_piece(&mut self, thread: u32, site: SiteId, offset: u32, faults: &Faults) {
        let Faults { uninitialised, race, flight, unfenced, cluster } = *faults;
        let found = [
            (FindingKind::Uninitialised, uninitialised, None),
            (FindingKind::Race, race.is_some(), race),
            (FindingKind::CopyInFlight, flight.is_some(), flight),
            (FindingKind::MissingProxyFence, unfenced.is_some(), unfenced),
            (FindingKind::RaceInCluster, cluster.is_some(), cluster),
        ];
        for (kind, _, other) in found.into_iter().filter(|&(_, is_so, _)| is_so) {
            let place = place(offset, PIECE, Product::ELEMENT, self.shared.len());
            self.report(kind, site, thread, Some(place), other, String::new());
        }
    }

    /// Retires a warp's products but those of its last `pending` groups.
    fn wait_for_products(&mut self, warp: usize, pending: u32) {
        let first = warp as u32 * WARP;
        let products = &mut self.warpgroups.warps[warp];
        products.arrived = false;
        let retired = products.committed.saturating_sub(pending);
        while let Some(over) =
            self.warpgroups.warps[warp].pending.pop_front_if(|product| product.group < retired)
        {
            let now = self.clocks.now(first);
            // Nobody says that a warp's part of a product reads its own rows of A alone.
            let [a, b] = over.operands;
            let rows = (0..WARPS as u32).flat_map(|warp| Left(a).places(warp));
            for offset in rows.chain(over.product.places(b)) {
                let late = self.shared.retire(offset, over.since, &self.clocks.who(&now, over.site));
                if let Some(late) = late {
                    let place = place(offset, PIECE, Product::ELEMENT, self.shared.len());
                    let detail = "a write while a product reads it".to_owned();
                    let kind = FindingKind::Race;
                    self.report(kind, late.site, late.thread, Some(place), Some(over.site), detail);
                }
            }
        }
        let products = &mut self.warpgroups.warps[warp];
        products.given = products.hidden && pending == 0 && products.pending.is_empty();
        products.hidden &= !products.given;
    }

    pub(crate) fn check_products_at_exit(&mut self, thread: u32) {
        let pending = &self.warpgroups.warps[thread as usize / 32].pending;
        if let Some(site) = pending.front().map(|product| product.site) {
            let detail = format!("{} products under way", pending.len());
            self.report(FindingKind::ProductNotWaited, site, thread, None, None, detail);
        }
    }

    /// All threads have exited: warps that never came to a step of their warpgroup will not.
    pub(crate) fn check_warpgroups_at_exit(&mut self) {
        for (group, steps) in mem::take(&mut self.warpgroups.steps).into_iter().enumerate() {
            for warp in group * WARPS..(group + 1) * WARPS {
                let came = match self.warpgroups.warps.get(warp) {
                    Some(products) => products.steps,
                    None => Some(0),
                };
                if let Some(&(site, _, first)) = came.and_then(|came| steps.get(came)) {
                    let detail = format!("warp {warp} of the warpgroup never came here");
                    let thread = first as u32 * WARP;
                    self.report(FindingKind::MismatchedWarpgroup, site, thread, None, None, detail);
                }
            }
        }
    }
}
