//! The backward pass of a plan for masks that are given as blocks.
use std::marker::PhantomData;

use lacuna_kernels::Entry;
use lacuna_kernels::attention::{self as kernels, TERMS, Tile};

use super::super::frame::Frame;
use super::super::{Algorithm, BlockAttention, MaskBlocks, OPERATION};
use super::choose::choose;
use crate::op::{Layout, MAX_GRID_YZ, spans};
use crate::{Buffer, Error, Result, Slice, SliceMut, Stream, Value};

/// Room for what [`BlockAttention::backward`] works out on its way, and the mask transposed.
#[derive(Debug)]
pub struct BlockWorkspace<T: Value> {
    /// The mask, and the transposed one.
    blocks: [MaskBlocks; 2],
    /// The kernels that own queries, and keys.
    entries: [&'static Entry<Tile>; 2],
    /// Of each query.
    terms: Buffer<f32>,
    /// The plan that it was made for, but for its factor: its operands' sizes and strides.
    layouts: [Layout; 3],
    kv_group: usize,
    values: PhantomData<T>,
}

impl<T: Value> BlockWorkspace<T> {
    /// Bytes of device memory, without the mask.
    pub fn bytes(&self) -> usize {
        self.terms.len() * size_of::<f32>()
    }
    /// The kernels that run: the first has the gradient of Q, the second those of K and V.
    pub fn entries(&self) -> [&'static str; 2] {
        self.entries.map(|entry| entry.name)
    }
}

/// The kernels that can own queries, and keys.
type Legal = [Vec<&'static Entry<Tile>>; 2];

/// What [`BlockAttention::backward`] works on. Each gradient lies as what it is the gradient of: with the same strides.
#[derive(Debug)]
pub struct BlockBackwardOperands<'o, T: Value> {
    /// Q, as it was forward.
    pub q: Slice<'o, T>,
    /// K.
    pub k: Slice<'o, T>,
    /// V.
    pub v: Slice<'o, T>,
    /// O, as [`BlockAttention::run_with`] wrote it.
    pub o: Slice<'o, T>,
    /// The logarithms that it wrote: batch × queries.
    pub logsumexp: Slice<'o, f32>,
    /// The slopes that it had, if any; they have no gradient.
    pub alibi_slopes: Option<Slice<'o, f32>>,
    /// The gradient of O.
    pub d_o: Slice<'o, T>,
    /// The gradient of Q, to be written.
    pub d_q: SliceMut<'o, T>,
    /// The gradient of K, to be written: the sum over the heads that share it.
    pub d_k: SliceMut<'o, T>,
    /// The gradient of V, to be written, likewise.
    pub d_v: SliceMut<'o, T>,
}

impl<T: Value> BlockAttention<T> {
    /// Room for [`backward`](Self::backward): eight bytes a query and head. The first call for a mask works out its transposed one, which
    /// takes as much memory as the mask, and waits for that. A plan with [`Algorithm::MmaTile`] takes kernels by warps, too.
    ///
    /// # Errors
    /// [`Error::Parameter`] where K and V of two groups of heads, or Q of two heads, share memory, as gradients cannot;
    /// [`Error::NeedsPattern`] for more keys than a grid has rows of tiles, and for `f32` with d above 128 on GPUs of another compute capability than
    /// 9.0; [`Error::TooLarge`] from 2³¹ mask blocks of 64 keys on, those of all
    /// heads that share them; [`Error::OutOfMemory`].
    pub fn workspace(&self) -> Result<BlockWorkspace<T>> {
        let (blocks, [of_queries, of_keys]) = self.backward_entries()?;
        match (of_queries.first(), of_keys.first()) {
            (Some(of_queries), Some(of_keys)) => self.workspace_of(blocks, [of_queries, of_keys]),
            _ => Err(self.no_kernel()),
        }
    }

    /// As [`workspace`](Self::workspace), with kernels of these names in place of the library's choice: see
    /// [`backward_kernels`](Self::backward_kernels).
    ///
    /// # Errors
    /// As `workspace`; [`Error::Illegal`] for other names.
    pub fn workspace_with(&self, names: [&str; 2]) -> Result<BlockWorkspace<T>> {
        let (blocks, [of_queries, of_keys]) = self.backward_entries()?;
        let find = |legal: Vec<&'static Entry<Tile>>, name: &str| {
            legal.iter().copied().find(|entry| entry.name == name).ok_or_else(|| Error::Illegal {
                operation: OPERATION,
                algorithm: name.into(),
                why: "it is no kernel of these gradients".into(),
                legal: legal.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
            })
        };
        self.workspace_of(blocks, [find(of_queries, names[0])?, find(of_keys, names[1])?])
    }

    /// The kernels that can work out the gradient of Q, and those of K and V, the library's choice first; none for more tiles than a grid
    /// has rows.
    ///
    /// # Errors
    /// As [`workspace`](Self::workspace).
    pub fn backward_kernels(&self) -> Result<[Vec<&'static str>; 2]> {
        let (_, legal) = self.backward_entries()?;
        Ok(legal.map(|entries| entries.into_iter().map(|entry| entry.name).collect()))
    }

    /// The mask and its transposed one, and the kernels that own queries, and keys.
    fn backward_entries(&self) -> Result<([MaskBlocks; 2], Legal)> {
        let frame = &self.frame;
        frame.q.expect_disjoint("the batch stride of Q, and of its gradient")?;
        frame.kv.expect_disjoint("the batch stride of K, and of its gradient")?;
        let (heads, group) = (frame.options.batch, frame.options.kv_group);
        let blocks = [self.blocks.clone(), self.blocks.transposed()?.clone()];
        let longest = blocks[1].counts().tilings.iter().map(|tiling| tiling.longest).max().unwrap_or(0);
        let what = "the mask blocks of 64 keys, of all heads that share them";
        // A step is half a block at least, and kernels count some past the last.
        Error::expect_at_most(what, (1 << 31) - 64, longest.saturating_mul(group))?;
        let problem = frame.problem::<T>(0, None);
        let by_warps = matches!(frame.options.algorithm, Algorithm::MmaTile { .. });
        let of_queries = choose(&problem, (false, by_warps), (frame.queries, heads, 1), blocks[0].counts());
        let of_keys =
            choose(&problem, (true, by_warps), (frame.keys, heads / group, group), blocks[1].counts());
        Ok((blocks, [of_queries, of_keys]))
    }

    fn no_kernel(&self) -> Error {
        let (Frame { queries, keys, dim, .. }, sm) = (&self.frame, self.frame.device.info().sm);
        let why = format!(
            "gradients by blocks take f32 with d up to 128, on compute capability 9.0 up to 256, and up to {MAX_GRID_YZ} tiles of queries, and of keys: of 64 \
             rows each, or more; here are {queries} queries and {keys} keys of {} with d = {dim}, and compute capability {}.{}",
            T::TYPE,
            sm / 10,
            sm % 10
        );
        Error::NeedsPattern { operation: OPERATION, why }
    }

    fn workspace_of(
        &self,
        blocks: [MaskBlocks; 2],
        entries: [&'static Entry<Tile>; 2],
    ) -> Result<BlockWorkspace<T>> {
        let terms = self.frame.device.zeros(TERMS * self.frame.logsumexp_len())?;
        let (layouts, kv_group) = (self.layouts(), self.frame.options.kv_group);
        Ok(BlockWorkspace { blocks, entries, terms, layouts, kv_group, values: PhantomData })
    }

    /// How Q, K and O lie. The kernels that were chosen take so long rows, and gradients that lie so do not overlap.
    fn layouts(&self) -> [Layout; 3] {
        [self.frame.q, self.frame.kv, self.frame.o]
    }

    /// The gradients of Q, K and V from that of O. Scores are worked out anew, block by block, from O and the logarithms of the forward
    /// pass, so that nothing as large as the mask is stored. Sums have one order: results are the same from run to run, bit by bit. Weights
    /// and their gradients are rounded to `T`, and a product of `f32` is three of bfloat16; `crates/reference/src/attention` has the bound. Gives the work to the stream, and returns at
    /// once.
    ///
    /// ```
    /// use half::f16;
    /// use lacuna::{BlockAttention, Device, attention};
    ///
    /// # fn main() -> lacuna::Result<()> {
    /// let device = Device::simulator();
    /// let stream = device.stream()?;
    /// let blocks = attention::MaskBlocks::new(&device, &attention::Mask::causal(20)?)?;
    /// let plan = BlockAttention::<f16>::plan(&blocks, 8)?;
    /// let values: Vec<f16> = (0..20 * 8).map(|i| f16::from_f32(i as f32 / 64.0 % 1.0)).collect();
    /// let (q, k, v, d_o) = (device.upload(&values)?, device.upload(&values)?, device.upload(&values)?, device.upload(&values)?);
    /// let (mut o, mut logsumexp) = (device.zeros::<f16>(plan.output_len())?, device.zeros(plan.logsumexp_len())?);
    /// let forward = attention::Operands {
    ///     q: q.as_slice(), k: k.as_slice(), v: v.as_slice(), o: o.as_slice_mut(), logsumexp: Some(logsumexp.as_slice_mut()),
    ///     alibi_slopes: None,
    /// };
    /// plan.run_with(&stream, forward)?;
    ///
    /// let mut workspace = plan.workspace()?;
    /// let [mut d_q, mut d_k, mut d_v] = [device.zeros(20 * 8)?, device.zeros(20 * 8)?, device.zeros(20 * 8)?];
    /// let pass = attention::BlockBackwardOperands {
    ///     q: q.as_slice(), k: k.as_slice(), v: v.as_slice(), o: o.as_slice(), logsumexp: logsumexp.as_slice(), alibi_slopes: None,
    ///     d_o: d_o.as_slice(),
    ///     d_q: d_q.as_slice_mut(), d_k: d_k.as_slice_mut(), d_v: d_v.as_slice_mut(),
    /// };
    /// plan.backward(&stream, pass, &mut workspace)?;
    /// // The first query sees one key, whose weight is 1 whatever its score.
    /// assert!(d_q.download(&stream)?[..8].iter().all(|slope| slope.to_f32().abs() < 1e-2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::OtherDevice`] for operands that do not fit; [`Error::Parameter`] for a workspace of another plan;
    /// [`Error::NeedsPattern`] for addresses that are no multiples of 16 bytes; [`Error::Launch`] or, on the simulator, its findings.
    pub fn backward(
        &self,
        stream: &Stream,
        operands: BlockBackwardOperands<'_, T>,
        workspace: &mut BlockWorkspace<T>,
    ) -> Result<()> {
        let frame = &self.frame;
        self.check_backward(stream, &operands, workspace)?;
        let BlockBackwardOperands { q, k, v, o, logsumexp, alibi_slopes, d_o, d_q, d_k, d_v } = operands;
        let group = frame.options.kv_group;
        for kv_heads in spans(frame.options.batch / group, MAX_GRID_YZ) {
            let head = kv_heads.start * group;
            let [of_q, of_o] = [frame.q, frame.o].map(|layout| head * layout.batch_stride);
            let of_kv = kv_heads.start * frame.kv.batch_stride;
            let operands = kernels::BackwardOperands::<T::Device> {
                q: q.pointer().add(of_q),
                k: k.pointer().add(of_kv),
                v: v.pointer().add(of_kv),
                o: o.pointer().add(of_o),
                d_o: d_o.pointer().add(of_o),
                d_q: d_q.pointer().add(of_q),
                d_k: d_k.pointer().add(of_kv),
                d_v: d_v.pointer().add(of_kv),
                logsumexp: logsumexp.pointer().add(head * frame.queries),
                terms: workspace.terms.as_slice_mut().pointer().add(head * frame.queries * TERMS),
                slopes: Frame::slopes_from(alibi_slopes, head),
                shape: frame.shape(),
                factor: frame.factor,
            };
            let heads = [kv_heads.len() * group, kv_heads.len()];
            for ((blocks, entry), heads) in workspace.blocks.iter().zip(workspace.entries).zip(heads) {
                blocks.launch(stream, frame.kernel(entry, alibi_slopes), heads as u32, operands)?;
            }
        }
        Ok(())
    }

    fn check_backward(
        &self,
        stream: &Stream,
        operands: &BlockBackwardOperands<'_, T>,
        workspace: &BlockWorkspace<T>,
    ) -> Result<()> {
        let frame = &self.frame;
        let BlockBackwardOperands { q, k, v, o, logsumexp, alibi_slopes, d_o, d_q, d_k, d_v } = operands;
        frame.device.expect_same(OPERATION, "the stream", stream.device())?;
        let device = &frame.device;
        for (what, operand) in [("Q", *q), ("the gradient of Q", d_q.as_slice())] {
            frame.q.check(what, device, operand)?;
        }
        let of_keys = [
            ("K", *k),
            ("V", *v),
            ("the gradient of K", d_k.as_slice()),
            ("the gradient of V", d_v.as_slice()),
        ];
        for (what, operand) in of_keys {
            frame.kv.check(what, device, operand)?;
        }
        for (what, operand) in [("O", *o), ("the gradient of O", *d_o)] {
            frame.o.check(what, device, operand)?;
        }
        frame.check_slopes(*alibi_slopes)?;
        let (rows, batch) = (frame.queries, frame.options.batch);
        let (shape, len) = (|| format!("{batch} heads of {rows}×1"), frame.logsumexp_len());
        device.expect_operand(OPERATION, "the logarithms", *logsumexp, shape, len)?;
        let is_own = workspace.blocks[0].is(&self.blocks)
            && workspace.layouts == self.layouts()
            && workspace.kv_group == frame.options.kv_group
            && workspace.terms.len() == TERMS * len;
        let expected = || "one that this plan made";
        Error::expect(is_own, OPERATION, "the workspace", expected, "another plan's")?;
        let gradients = d_q.address() | d_k.address() | d_v.address();
        let addresses = q.address() | k.address() | v.address() | o.address() | d_o.address() | gradients;
        if !addresses.is_multiple_of(16) {
            let why = "Q, K, V, O or a gradient is not aligned to 16 bytes".into();
            return Err(Error::NeedsPattern { operation: OPERATION, why });
        }
        Ok(())
    }
}
