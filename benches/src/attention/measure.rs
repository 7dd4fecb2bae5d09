//! One layer of attention on one device: its operands, and its kernels.
use anyhow::Result;
use lacuna::{Buffer, CsrMatrix, Device, Index, SparseAttention, Stream, attention};
use lacuna_cases::{Number, Problem};
use lacuna_reference::{AttentionReference, Heads, attention};

use super::peers;
use crate::arithmetic;
use crate::checked::Checked;
use crate::measure::{Work, record, with_peers, worst};
use crate::operation::Task;
use crate::peers::data_type;
use crate::record::Record;
use crate::session::Session;

/// Measures a problem.
pub(super) fn measure<T: Number, I: Index>(session: &mut Session, task: &Task<'_>) -> Result<Vec<Record>> {
    let problem = task.problem;
    let stream = session.device.stream()?;
    let host = Host::<T>::new(problem)?;
    let mask = CsrMatrix::<T, I>::with_index(&session.device, &problem.sparse()?.map_values(T::from_f32))?;
    let options = attention::Options::default().batch(problem.batch);
    let mut plans = vec![SparseAttention::plan_with(&mask, problem.width, options)?];
    if session.all_algorithms {
        let shape = attention::Problem {
            nnz: problem.matrix.elements(),
            keys: problem.cols(),
            quad_entries: None,
            dim: problem.width,
            // What whole buffers allow to load at once: 16 bytes.
            vector: 16 / T::TYPE.bytes(),
            value: T::TYPE,
            index: I::TYPE,
        };
        for algorithm in others(&plans[0], &shape) {
            plans.push(SparseAttention::plan_with(&mask, problem.width, options.algorithm(algorithm))?);
        }
    }
    let references = host.references(plans[0].scale())?;
    let mut operands = Operands::new(&session.device, problem, &host)?;
    let mut records = Vec::new();
    for plan in &plans {
        let mut work =
            Planned { problem, host: &host, references: &references, operands: &mut operands, plan };
        records.push(record(session, task, &stream, &mut work)?);
    }
    Ok(with_peers(session, task, &stream, records, |peers, context| {
        peers::measure(peers, context, &host, &operands)
    }))
}

/// The algorithms that can do a problem, other than the one that the library chose.
fn others<T: Number, I: Index>(
    chosen: &SparseAttention<T, I>,
    shape: &attention::Problem,
) -> Vec<attention::Algorithm> {
    let chosen = chosen.choice().map_or(attention::Algorithm::ThreeSteps, |choice| choice.algorithm);
    let fused = attention::choose(shape).into_iter().map(|choice| choice.algorithm);
    fused.chain([attention::Algorithm::ThreeSteps]).filter(|&algorithm| algorithm != chosen).collect()
}

/// The operands on the host, one head behind the other.
pub(super) struct Host<T> {
    pub(super) q: Vec<T>,
    pub(super) k: Vec<T>,
    pub(super) v: Vec<T>,
    checked: Checked,
    /// Of Q, by head, the rows that are checked.
    checked_q: Vec<Vec<T>>,
    width: usize,
}

impl<T: Number> Host<T> {
    fn new(problem: &Problem) -> Result<Self> {
        let (queries, keys, width) = (problem.rows(), problem.cols(), problem.width);
        let q = problem.dense_as::<T>("Q", queries, 0xc)?;
        let k = problem.dense_as::<T>("K", keys, 0xb)?;
        let v = problem.dense_as::<T>("V", keys, 0xd)?;
        let checked = Checked::of(problem)?;
        let of_head = |head: usize| checked.dense(&q[head * queries * width..][..queries * width], width);
        let checked_q = (0..problem.batch).map(of_head).collect();
        Ok(Self { q, k, v, checked, checked_q, width })
    }

    /// What each head's checked rows should be.
    fn references(&self, scale: f32) -> Result<Vec<AttentionReference<'_, T>>> {
        let keys = self.checked.pattern.cols() * self.width;
        let references = self.checked_q.iter().enumerate().map(|(head, q)| {
            let (k, v) = (&self.k[head * keys..][..keys], &self.v[head * keys..][..keys]);
            Ok(attention(&self.checked.pattern, Heads { q, k, v, dim: self.width, scale })?)
        });
        references.collect()
    }
}

/// The operands on a device.
pub(super) struct Operands<T: Number> {
    pub(super) q: Buffer<T>,
    pub(super) k: Buffer<T>,
    pub(super) v: Buffer<T>,
    o: Buffer<T>,
}

impl<T: Number> Operands<T> {
    fn new(device: &Device, problem: &Problem, host: &Host<T>) -> Result<Self> {
        let [q, k, v] = [&host.q, &host.k, &host.v].map(|operand| device.upload(operand));
        Ok(Self { q: q?, k: k?, v: v?, o: device.upload(&unwritten_o::<T>(problem)?)? })
    }
}

/// What O is before it is computed.
pub(super) fn unwritten_o<T: Number>(problem: &Problem) -> Result<Vec<T>> {
    problem.unwritten("O", problem.batch * problem.rows() * problem.width)
}

/// A plan with its operands.
struct Planned<'a, T: Number, I: Index> {
    problem: &'a Problem,
    host: &'a Host<T>,
    references: &'a [AttentionReference<'a, T>],
    operands: &'a mut Operands<T>,
    plan: &'a SparseAttention<T, I>,
}

impl<T: Number, I: Index> Work for Planned<'_, T, I> {
    fn algorithm(&self) -> String {
        self.plan.choice().map_or("three_steps", |choice| choice.entry).into()
    }

    fn clear(&mut self) -> Result<()> {
        Ok(self.operands.o.upload(&unwritten_o::<T>(self.problem)?)?)
    }

    fn run(&mut self, stream: &Stream) -> lacuna::Result<()> {
        let Operands { q, k, v, o } = &mut *self.operands;
        self.plan.run(stream, q.as_slice(), k.as_slice(), v.as_slice(), o.as_slice_mut())
    }

    fn check(&self, stream: &Stream) -> Result<Result<f64, String>> {
        let o = self.operands.o.download(stream)?;
        let (len, width) = (self.problem.rows() * self.problem.width, self.problem.width);
        let arithmetic = arithmetic::of_attention(data_type::<T>(), self.plan.choice().is_some());
        let heads = self.references.iter().enumerate().map(|(head, reference)| {
            let got = self.host.checked.dense(&o[head * len..][..len], width);
            Ok(reference.clone().arithmetic(arithmetic).check(&got))
        });
        worst("head", heads)
    }
}
