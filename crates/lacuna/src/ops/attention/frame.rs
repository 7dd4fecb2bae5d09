//! What the plans of fused kernels have in common: how operands lie, their checks, and what a kernel is told of them.
use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::attention::{self as kernels, Tile};
use lacuna_kernels::{Entry, IndexType, ValueType};

use super::choose::{Problem, modifying};
use super::{OPERATION, Operands, Options};
use crate::op::{Layout, MAX_GRID_YZ, MAX_WIDTH, Selection, VECTORS, spans, strides, widest};
use crate::tune::drawn;
use crate::{Buffer, Device, Error, Precision, Result, Slice, Stream, Value};

/// The operands of a plan.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) device: Device,
    pub(super) queries: usize,
    pub(super) keys: usize,
    pub(super) dim: usize,
    pub(super) options: Options,
    pub(super) factor: f32,
    /// Of Q, of K and V, and of O.
    pub(super) q: Layout,
    pub(super) kv: Layout,
    pub(super) o: Layout,
}

impl Frame {
    /// Operands of `T` for a mask of queries × keys on this device.
    pub(super) fn new<T: Value>(
        device: &Device,
        [queries, keys]: [usize; 2],
        dim: usize,
        options: Options,
    ) -> Result<Self> {
        let expected = || "at least 1, the elements of a row of Q";
        Error::expect(dim > 0, OPERATION, "the dimension", expected, dim)?;
        Error::expect_at_most("the dimension", MAX_WIDTH, dim)?;
        let factor = options.factor(dim)?;
        let layout = |tokens, strides| Layout::new(tokens, dim, T::TYPE.bytes(), strides);
        let Options { batch, q_stride, kv_stride, o_stride, .. } = options;
        let of_q = strides!(OPERATION, "Q", "d", q_stride, batch, options.q_batch_stride);
        let expected = || format!("a divisor of the {batch} heads");
        let divides = options.kv_group > 0 && batch.is_multiple_of(options.kv_group);
        Error::expect(divides, OPERATION, "the heads that share K and V", expected, options.kv_group)?;
        let kv_heads = batch / options.kv_group;
        let of_kv = strides!(OPERATION, "K", "d", kv_stride, kv_heads, options.kv_batch_stride);
        let of_o = strides!(OPERATION, "O", "d", o_stride, batch, options.o_batch_stride);
        let (q, kv) = (layout(queries, of_q)?, layout(keys, of_kv)?);
        let o = layout(queries, of_o)?;
        o.expect_disjoint("the batch stride of O")?;
        Ok(Self { device: device.clone(), queries, keys, dim, options, factor, q, kv, o })
    }

    /// The problem of a mask of so many elements, with indices of this type, where addresses allow whole vectors.
    pub(super) fn problem<T: Value>(&self, nnz: usize, index: Option<IndexType>) -> Problem {
        let info = self.device.info();
        Problem {
            nnz,
            queries: self.queries,
            keys: self.keys,
            heads: self.options.batch,
            query_tile_entries: None,
            blocks: None,
            has_positive_scale: self.factor > 0.0 || self.options.softcap.is_some(),
            dim: self.dim,
            vector: self.widest_below(VECTORS[0]),
            value: T::TYPE,
            precision: self.options.precision,
            index,
            multiprocessors: info.multiprocessors,
            sm: info.sm,
        }
    }

    /// A choice of this problem's kernels for each alignment of addresses.
    pub(super) fn selection(&self, problem: &Problem) -> Selection<Problem> {
        Selection::new(self.options.algorithm, problem.value.bytes(), |vector| Problem {
            vector: self.widest_below(vector),
            ..*problem
        })
    }

    /// Elements that strides, and addresses of vectors of `vector` elements, allow to load at once.
    fn widest_below(&self, vector: u32) -> u32 {
        let layouts = [self.q, self.kv, self.o];
        widest(|allowed| allowed <= vector && layouts.iter().all(|layout| layout.allows(allowed)))
    }

    /// What the key of a tuned plan says of the soft cap, and of the precision, which counts in `f32`, where they are not the usual ones.
    pub(super) fn asked<T: Value>(&self) -> String {
        let capped = if self.options.softcap.is_some() { ", soft cap" } else { "" };
        match self.options.precision {
            precision if T::TYPE == ValueType::F32 && precision != Precision::Single => {
                format!("{capped}, {precision:?}")
            }
            _ => capped.into(),
        }
    }

    /// Elements of the logarithms.
    pub(super) fn logsumexp_len(&self) -> usize {
        self.options.batch * self.queries
    }

    /// Whether operands fit, and are on the device.
    pub(super) fn check<T: Value>(&self, stream: &Stream, operands: &Operands<'_, T>) -> Result<()> {
        let Operands { q, k, v, o, logsumexp, alibi_slopes } = operands;
        self.device.expect_same(OPERATION, "the stream", stream.device())?;
        self.q.check("Q", &self.device, *q)?;
        self.kv.check("K", &self.device, *k)?;
        self.kv.check("V", &self.device, *v)?;
        self.o.check("O", &self.device, o.as_slice())?;
        self.check_slopes(*alibi_slopes)?;
        let Some(logsumexp) = logsumexp else { return Ok(()) };
        let (rows, batch) = (self.queries, self.options.batch);
        let (shape, len) = (|| format!("{batch} heads of {rows}×1"), self.logsumexp_len());
        self.device.expect_operand(OPERATION, "the logarithms", logsumexp.as_slice(), shape, len)
    }

    /// Whether slopes fit, if there are any.
    pub(super) fn check_slopes(&self, slopes: Option<Slice<'_, f32>>) -> Result<()> {
        let Some(slopes) = slopes else { return Ok(()) };
        let batch = self.options.batch;
        let shape = || format!("one of each of {batch} heads");
        self.device.expect_operand(OPERATION, "the slopes", slopes, shape, batch)?;
        // Distances are of 32 bits with a sign.
        Error::expect_at_most("the queries, with slopes", i32::MAX as usize, self.queries)?;
        Error::expect_at_most("the keys, with slopes", i32::MAX as usize, self.keys)
    }

    /// The kernel that runs in place of a chosen one, with these slopes.
    pub(super) fn kernel(
        &self,
        entry: &'static Entry<Tile>,
        slopes: Option<Slice<'_, f32>>,
    ) -> &'static Entry<Tile> {
        if self.options.softcap.is_some() || slopes.is_some() { modifying(entry) } else { entry }
    }

    /// The slopes from head `head` on, as a kernel takes them.
    pub(super) fn slopes_from(slopes: Option<Slice<'_, f32>>, head: usize) -> GlobalPtr<f32> {
        slopes.map_or(GlobalPtr::from_address(0), |slopes| slopes.pointer().add(head))
    }

    /// What kernels are told of sizes, strides and scores.
    pub(super) fn shape(&self) -> kernels::Shape {
        let [scale, softcap] = self.options.scale_and_softcap(self.factor);
        kernels::Shape {
            q_batch_stride: self.q.batch_stride as u64,
            kv_batch_stride: self.kv.batch_stride as u64,
            o_batch_stride: self.o.batch_stride as u64,
            q_stride_bytes: self.q.stride_bytes,
            kv_stride_bytes: self.kv.stride_bytes,
            o_stride_bytes: self.o.stride_bytes,
            rows: self.queries as u32,
            cols: self.keys as u32,
            dim: self.dim as u32,
            scale,
            softcap,
            group_heads: self.options.kv_group as u32,
        }
    }

    /// Launches what is to be done for all heads, by a function that takes a number of them, as many as a grid holds, and their operands.
    pub(super) fn launch<T: Value>(
        &self,
        operands: &Operands<'_, T>,
        launch: impl Fn(u32, kernels::Operands<T::Device>) -> Result<()>,
    ) -> Result<()> {
        let Operands { q, k, v, o, logsumexp, alibi_slopes } = operands;
        let (rows, group, none) = (self.queries, self.options.kv_group, GlobalMut::from_address(0));
        for heads in spans(self.options.batch, MAX_GRID_YZ) {
            let head = heads.start;
            let [of_q, of_o] = [self.q, self.o].map(|layout| head * layout.batch_stride);
            let of_kv = head / group * self.kv.batch_stride;
            let operands = kernels::Operands::<T::Device> {
                q: q.pointer().add(of_q),
                k: k.pointer().add(of_kv),
                v: v.pointer().add(of_kv),
                o: o.pointer().add(of_o),
                logsumexp: logsumexp.as_ref().map_or(none, |slice| slice.pointer().add(head * rows)),
                slopes: Self::slopes_from(*alibi_slopes, head),
                shape: self.shape(),
                first_of_group: (head % group) as u32,
            };
            launch(heads.len() as u32, operands)?;
        }
        Ok(())
    }

    /// Drawn Q, K and V, and room for O.
    pub(super) fn scratch<T: Value>(&self) -> Result<[Buffer<T>; 4]> {
        let (queries, keys) = (self.q.len(), self.kv.len());
        let [q, k, v] = [queries, keys, keys].map(|len| drawn(&self.device, len));
        Ok([q?, k?, v?, self.device.zeros(self.o.len())?])
    }
}

impl<T: Value> Operands<'_, T> {
    /// The bits that any address has, for alignment.
    pub(super) fn addresses(&self) -> u64 {
        self.q.address() | self.k.address() | self.v.address() | self.o.address()
    }
}

/// What plans with a [`Frame`] tell of their operands, and a run without logarithms and slopes.
macro_rules! tells_operands {
    ($plan:ident<$($parameter:ident: $bound:ident),+>) => {
        impl<$($parameter: $bound),+> $plan<$($parameter),+> {
            /// The options that were planned with.
            pub fn options(&self) -> &Options {
                &self.frame.options
            }
            /// What multiplies the scores: the scale asked for, or 1/√d.
            pub fn scale(&self) -> f32 {
                self.frame.factor
            }
            /// Elements that Q must have, up to the last of the last row: batch · queries · d, without strides. The gap after it may
            /// be there too.
            pub fn query_len(&self) -> usize {
                self.frame.q.len()
            }
            /// The same of K, and of V: batch / `kv_group` · keys · d, without strides.
            pub fn key_len(&self) -> usize {
                self.frame.kv.len()
            }
            /// The same of O: batch · queries · d, without strides.
            pub fn output_len(&self) -> usize {
                self.frame.o.len()
            }
            /// Elements of the logarithms: batch · queries.
            pub fn logsumexp_len(&self) -> usize {
                self.frame.logsumexp_len()
            }

            /// As [`run_with`](Self::run_with), without logarithms and slopes.
            ///
            /// # Errors
            /// As `run_with`.
            pub fn run(
                &self,
                stream: &Stream,
                q: Slice<'_, T>,
                k: Slice<'_, T>,
                v: Slice<'_, T>,
                o: SliceMut<'_, T>,
            ) -> Result<()> {
                self.run_with(stream, Operands { q, k, v, o, logsumexp: None, alibi_slopes: None })
            }
        }
    };
}
pub(super) use tells_operands;
