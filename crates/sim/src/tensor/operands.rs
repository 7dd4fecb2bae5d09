//! Reading A and B of a warpgroup's product from shared memory.
use crate::execution::context::Context;
use crate::memory::cells::Faults;
use crate::memory::shared::{SharedMemory, place};
use crate::report::finding::FindingKind;
use crate::report::site::SiteId;
use crate::tensor::product::{PIECE, Product};
use crate::tensor::warpgroup::Operands;

/// Whether A and B may be read: they are in bounds, and lie where they must.
pub(crate) fn locate(
    context: &mut Context<'_>,
    shared: &SharedMemory,
    (thread, site): (u32, SiteId),
    product: Product,
    operands: Operands,
) -> bool {
    let len = shared.cells.len();
    for (at, extent) in
        [product.extent_of_a(operands[0]), product.extent_of_b(operands[1])].into_iter().enumerate()
    {
        let kind = if !extent.is_aligned {
            FindingKind::Misaligned
        } else if u64::from(extent.first) + extent.span > u64::from(len) {
            FindingKind::OutOfBounds
        } else {
            continue;
        };
        let place = place(extent.first, extent.span as u32, product.element(), len);
        let [of_a, of_b] = product.rules(operands);
        context.report(kind, site, thread, Some(place), None, if at == 0 { of_a } else { of_b });
        return false;
    }
    true
}

/// Reads the pieces at these places as numbers, and reports what is wrong with them.
pub(crate) fn read(
    context: &mut Context<'_>,
    shared: &mut SharedMemory,
    (thread, site): (u32, SiteId),
    product: Product,
    places: impl Iterator<Item = u32>,
    numbers: &mut Vec<f64>,
) {
    numbers.clear();
    let now = context.clocks.now(thread);
    for offset in places {
        let faults = shared.cells.inspect(offset, &context.clocks.who(&now, site));
        let mut words = shared.cells.load(offset, PIECE);
        if faults != Faults::default() {
            report_piece(context, shared, (thread, site), product, offset, &faults);
            if faults.uninitialised {
                words = [0; 2];
            }
        }
        for word in words.into_iter().flat_map(|word| [word as u32, (word >> 32) as u32]) {
            numbers.extend((0..product.factors.packed()).map(|index| product.factors.value(word, index)));
        }
    }
}

#[cold]
fn report_piece(
    context: &mut Context<'_>,
    shared: &SharedMemory,
    (thread, site): (u32, SiteId),
    product: Product,
    offset: u32,
    faults: &Faults,
) {
    let Faults { uninitialised, race, flight, unfenced, cluster } = *faults;
    let found = [
        (FindingKind::Uninitialised, uninitialised, None),
        (FindingKind::Race, race.is_some(), race),
        (FindingKind::CopyInFlight, flight.is_some(), flight),
        (FindingKind::MissingProxyFence, unfenced.is_some(), unfenced),
        (FindingKind::RaceInCluster, cluster.is_some(), cluster),
    ];
    for (kind, _, other) in found.into_iter().filter(|&(_, is_so, _)| is_so) {
        let place = place(offset, PIECE, product.element(), shared.cells.len());
        context.report(kind, site, thread, Some(place), other, String::new());
    }
}
