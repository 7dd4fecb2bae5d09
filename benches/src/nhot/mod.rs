//! Measuring sums of a table's rows. The vendors' libraries multiply a matrix of ones with the table; beside them stand copies.
use anyhow::Result;
use half::{bf16, f16};
use lacuna::{Bags, Buffer, NHot, Stream, nhot};
use lacuna_reference::{NHotBags, NHotReference, nhot as reference_of};

use crate::checked::Checked;
use crate::exit::Usage;
use crate::measure::{Measured, Work, of_one_problem, record};
use crate::peers::{Context, Peered};
use crate::problem::Problem;
use crate::record::Record;
use crate::session::Session;
use crate::spmm;
use crate::types::{Dtype, Index};

/// Measures a lookup, with the types that the session has.
pub(crate) fn measure(session: &mut Session, suite: &str, problem: &Problem) -> Result<Vec<Record>> {
    match (session.types.dtype, session.types.index) {
        (_, Index::U16) => {
            Err(Usage("`nhot` has indices of u32 and u64, and u16 is neither; leave --index out".into())
                .into())
        }
        (Dtype::F32, Index::U32) => measure_as::<f32, u32>(session, suite, problem),
        (Dtype::F32, Index::U64) => measure_as::<f32, u64>(session, suite, problem),
        (Dtype::F16, Index::U32) => measure_as::<f16, u32>(session, suite, problem),
        (Dtype::F16, Index::U64) => measure_as::<f16, u64>(session, suite, problem),
        (Dtype::Bf16, Index::U32) => measure_as::<bf16, u32>(session, suite, problem),
        (Dtype::Bf16, Index::U64) => measure_as::<bf16, u64>(session, suite, problem),
    }
}

fn measure_as<T: Measured, I: nhot::BagIndex + From<u32>>(
    session: &mut Session,
    suite: &str,
    problem: &Problem,
) -> Result<Vec<Record>> {
    let stream = session.device.stream()?;
    let pattern = problem.a.pattern();
    let offsets: Vec<usize> = pattern.row_offsets().iter().map(|&offset| offset as usize).collect();
    let indices: Vec<I> = pattern.col_indices().iter().map(|&row| row.into()).collect();
    let bags = Bags::new(&session.device, problem.a.cols(), &offsets, &indices)?;
    let host = problem.dense_as::<T>("the table", problem.a.cols(), 0xb)?;
    let checked = Checked::of(problem)?;
    let reference = reference(&checked, &host, problem.width)?;
    let table = session.device.upload(&host)?;
    let mut out = session.device.upload(&unwritten::<T>(problem)?)?;

    let mut plans = vec![NHot::plan(&bags, problem.width)?];
    if session.all_algorithms {
        let (chosen, [legal, ..]) = (plans[0].choice().entry.name, plans[0].legal());
        for choice in legal.iter().filter(|choice| choice.entry.name != chosen) {
            let options = nhot::Options::default().algorithm(choice.algorithm);
            plans.push(NHot::plan_with(&bags, problem.width, options)?);
        }
    }
    let mut records = Vec::new();
    for plan in &plans {
        let (bags, table, out) = (&bags, &table, &mut out);
        let mut work = Planned { problem, checked: &checked, reference: &reference, plan, bags, table, out };
        records.push(record(session, suite, problem, &stream, &mut work)?);
    }
    let mut peered = Peered::default();
    if let Some(peers) = &mut session.peers {
        let device = &session.device;
        let context = Context { device, stream: &stream, problem, samples: session.samples };
        peered = peers.copies(&context, records[0].bytes, None);
        let products = spmm::Operands::with_b(device, problem, &host)
            .map(|operands| spmm::measure_peers(peers, &context, &operands));
        peered.add("products", products);
    }
    Ok(of_one_problem(records, &peered))
}

/// What the checked bags should come to.
fn reference<T: Measured>(checked: &Checked, table: &[T], columns: usize) -> Result<NHotReference<T>> {
    let whole = |numbers: &[u32]| numbers.iter().map(|&number| number as usize).collect::<Vec<_>>();
    let (offsets, indices) = (whole(checked.pattern.row_offsets()), whole(checked.pattern.col_indices()));
    let bags = NHotBags { offsets: &offsets, indices: &indices, weights: None, padding: None, mean: false };
    Ok(reference_of(&bags, table, columns)?)
}

/// What the result is before a lookup.
fn unwritten<T: Measured>(problem: &Problem) -> Result<Vec<T>> {
    problem.unwritten("Y", problem.a.rows().saturating_mul(problem.width))
}

/// A plan with its operands.
struct Planned<'a, T: Measured, I: nhot::BagIndex> {
    problem: &'a Problem,
    checked: &'a Checked,
    reference: &'a NHotReference<T>,
    plan: &'a NHot<T, I>,
    bags: &'a Bags<I>,
    table: &'a Buffer<T>,
    out: &'a mut Buffer<T>,
}

impl<T: Measured, I: nhot::BagIndex> Work for Planned<'_, T, I> {
    fn algorithm(&self) -> String {
        self.plan.choice().entry.name.into()
    }

    fn clear(&mut self) -> Result<()> {
        Ok(self.out.upload(&unwritten::<T>(self.problem)?)?)
    }

    fn run(&mut self, stream: &Stream) -> lacuna::Result<()> {
        self.plan.run(stream, self.bags, self.table.as_slice(), self.out.as_slice_mut())
    }

    fn check(&self, stream: &Stream) -> Result<Result<f64, String>> {
        let got = self.checked.dense(&self.out.download(stream)?, self.problem.width);
        let checked = self.reference.check(&got);
        Ok(checked.map(|report| report.worst_over_bound).map_err(|mismatch| mismatch.to_string()))
    }
}
