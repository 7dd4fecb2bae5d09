//! What only GPUs of compute capability 9.0 have.
use crate::{CoreMatrices, Scalar, SharedPtr, TensorMap};

/// What else a thread may do on Hopper (compute capability 9.0): clusters of thread blocks, bulk copies of tensors, and products of
/// warpgroups. A kernel that calls any of these is built for sm_90a alone.
///
/// # Safety of the unsafe methods
/// As for [`Gpu`](crate::Gpu).
pub trait Hopper: Copy {
    /// Arrives at the barrier of the blocks of a cluster, without waiting; [`cluster_wait`](Hopper::cluster_wait) follows. Every
    /// thread of the cluster that has not exited comes, in whole warps.
    #[track_caller]
    fn cluster_arrive(self);
    /// As [`cluster_arrive`](Hopper::cluster_arrive), but orders no memory, and so takes far less time. It must be the first thing that
    /// a thread does, and tells the other blocks that it has begun.
    #[track_caller]
    fn cluster_arrive_relaxed(self);
    /// Waits until all threads of the cluster have come; orders memory among them, but not after relaxed arrivals.
    #[track_caller]
    fn cluster_wait(self);

    /// Writes the shared memory of block `block` of the cluster. It may be read there after a barrier of the cluster, and another
    /// stands between the block's own use of that place before and this.
    ///
    /// # Safety
    /// See the trait, for the place in that block, which has begun: a barrier of the cluster tells that, and it has not ended.
    #[track_caller]
    unsafe fn cluster_store<T: Scalar, const N: usize>(self, block: u32, to: SharedPtr<T>, value: [T; N]);

    /// Fetches `map` for the bulk copies to come, which then start sooner. Nobody waits for it.
    #[track_caller]
    fn bulk_prefetch(self, map: &TensorMap);
    /// Makes the eight bytes at `barrier` a barrier (`mbarrier`) of this warp's bulk copies. As for all of these, the whole warp
    /// comes, with the same arguments, and one lane does it.
    ///
    /// # Safety
    /// See the trait; nothing but this warp's bulk copies uses `barrier` from now on.
    #[track_caller]
    unsafe fn bulk_barrier_init(self, barrier: SharedPtr<u64>);
    /// Says how many bytes the bulk copies have that this warp starts next at `barrier`, until it waits for them.
    ///
    /// # Safety
    /// The barrier is this warp's, and no copies are under way there.
    #[track_caller]
    unsafe fn bulk_expect(self, barrier: SharedPtr<u64>, bytes: u32);
    /// Starts copying the box of `map`'s tensor whose first column, row and matrix are `at` to shared memory, where it begins at a
    /// multiple of 1024 bytes. What lies outside of the tensor becomes zero. It may be read after [`bulk_wait`](Hopper::bulk_wait), and by
    /// other warps after a barrier that follows it.
    ///
    /// # Safety
    /// See the trait; nobody touches the destination until the wait, nor writes the source. What else was written there, or read
    /// but by products of warpgroups, was followed by [`fence_async_proxy`](Hopper::fence_async_proxy).
    #[track_caller]
    unsafe fn bulk_copy(self, to: SharedPtr<u16>, map: &TensorMap, at: [u32; 3], barrier: SharedPtr<u64>);
    /// Waits for the copies at `barrier`; `turn` is even the first time, odd the second, and so on.
    ///
    /// # Safety
    /// The barrier is this warp's, and copies of as many bytes as it expects have started there.
    #[track_caller]
    unsafe fn bulk_wait(self, barrier: SharedPtr<u64>, turn: u32);

    /// Makes this thread's writes to shared memory so far visible to the tensor cores' own reads of it,
    /// [`warpgroup_mma_f16`](Hopper::warpgroup_mma_f16); a barrier passes that on to other threads.
    #[track_caller]
    fn fence_async_proxy(self);
    /// Orders registers before the products of a warpgroup that use them: comes before the first product, and before each
    /// after which sums were changed. A warpgroup is four warps, the first a multiple of four; all come together.
    #[track_caller]
    fn warpgroup_arrive(self);
    /// Starts adding `A·B` to `sums` on tensor cores, by a whole warpgroup: A 64×16 and B 16×N in halves, both in shared
    /// memory, N = 2·L = 32, 64 or 128, sums in f32. Warp `w` of the four has rows 16w to 16w+15 of the sums, laid out
    /// among its lanes as for [`mma_f16`](crate::Gpu::mma_f16): `sums[4j..4j+4]` are columns 8j to 8j+7.
    ///
    /// A is 16 of the 64 columns of a panel, in which a row is 128 bytes, followed by the next row, and its 16-byte pieces are
    /// swizzled: piece `i` of row `r` lies at place `i ^ r % 8`. The panel begins at a multiple of 1024 bytes, and `a` is that
    /// plus 0, 32, 64 or 96, for the first, second, third or last 16 columns.
    ///
    /// B is cut into panels of 64 columns (32 where N is 32), `PANEL` bytes from one to the next. They are like A's, or, with
    /// 32 columns, have rows of 64 bytes, and piece `i` of row `r` at place `i ^ r / 2 % 4`. `b` is row 0 of panel 0, at a
    /// multiple of 1024 (512) bytes.
    ///
    /// The product runs on its own: until [`warpgroup_wait`](Hopper::warpgroup_wait) says that it is over, nobody may write its
    /// A and B, and `sums` hold nothing; they may only go into further products.
    ///
    /// # Safety
    /// See the trait, for the rows of A and B; what was written there was followed by
    /// [`fence_async_proxy`](Hopper::fence_async_proxy) in the writing thread, and then by a barrier.
    #[track_caller]
    unsafe fn warpgroup_mma_f16<const L: usize, const PANEL: u32>(
        self,
        sums: &mut [f32; L],
        a: SharedPtr<u16>,
        b: SharedPtr<u16>,
    );
    /// As [`warpgroup_mma_f16`](Hopper::warpgroup_mma_f16), with bfloat16.
    ///
    /// # Safety
    /// As there.
    #[track_caller]
    unsafe fn warpgroup_mma_bf16<const L: usize, const PANEL: u32>(
        self,
        sums: &mut [f32; L],
        a: SharedPtr<u16>,
        b: SharedPtr<u16>,
    );
    /// As [`warpgroup_mma_f16`](Hopper::warpgroup_mma_f16), with A and B in core matrices, not swizzled: rows of A, and columns of B, of
    /// which eight neighbours make a core matrix. A and B may begin inside of one, at any row or column.
    ///
    /// # Safety
    /// As there.
    #[track_caller]
    unsafe fn warpgroup_mma_f16_cores<const L: usize>(
        self,
        sums: &mut [f32; L],
        a: CoreMatrices,
        b: CoreMatrices,
    );
    /// As [`warpgroup_mma_f16_cores`](Hopper::warpgroup_mma_f16_cores), with bfloat16.
    ///
    /// # Safety
    /// As there.
    #[track_caller]
    unsafe fn warpgroup_mma_bf16_cores<const L: usize>(
        self,
        sums: &mut [f32; L],
        a: CoreMatrices,
        b: CoreMatrices,
    );
    /// As [`warpgroup_mma_f16`](Hopper::warpgroup_mma_f16), with B column by column in a panel like A's: a column of B is 16 of the 64
    /// numbers of a row of the panel, and `b` is where the panel begins plus 0, 32, 64 or 96.
    ///
    /// # Safety
    /// As there.
    #[track_caller]
    unsafe fn warpgroup_mma_f16_columns<const L: usize>(
        self,
        sums: &mut [f32; L],
        a: SharedPtr<u16>,
        b: SharedPtr<u16>,
    );
    /// As [`warpgroup_mma_f16_columns`](Hopper::warpgroup_mma_f16_columns), with bfloat16.
    ///
    /// # Safety
    /// As there.
    #[track_caller]
    unsafe fn warpgroup_mma_bf16_columns<const L: usize>(
        self,
        sums: &mut [f32; L],
        a: SharedPtr<u16>,
        b: SharedPtr<u16>,
    );
    /// As [`warpgroup_mma_f16`](Hopper::warpgroup_mma_f16), with A in registers: each warp gives its own 16 rows, as for
    /// [`mma_f16`](crate::Gpu::mma_f16). B lies in panels.
    ///
    /// # Safety
    /// As there, for B.
    #[track_caller]
    unsafe fn warpgroup_mma_f16_registers<const L: usize, const PANEL: u32>(
        self,
        sums: &mut [f32; L],
        a: [u32; 4],
        b: SharedPtr<u16>,
    );
    /// As [`warpgroup_mma_f16_registers`](Hopper::warpgroup_mma_f16_registers), with bfloat16.
    ///
    /// # Safety
    /// As there.
    #[track_caller]
    unsafe fn warpgroup_mma_bf16_registers<const L: usize, const PANEL: u32>(
        self,
        sums: &mut [f32; L],
        a: [u32; 4],
        b: SharedPtr<u16>,
    );
    /// Starts adding `A·B` to `sums` on tensor cores, by a whole warpgroup: A 64×8 and B 8×N in TF32, of which the upper 19 bits of
    /// each `f32` count. A is in registers: each warp gives its own 16 rows, as for [`mma_tf32`](crate::Gpu::mma_tf32). B lies in shared
    /// memory, column by column, in a panel like A's in [`warpgroup_mma_f16`](Hopper::warpgroup_mma_f16): a column of it is a row of the
    /// panel, 32 numbers in 128 bytes, and `b` is where the panel begins plus 0, 32, 64 or 96. All else is as there.
    ///
    /// # Safety
    /// As there, for B.
    #[track_caller]
    unsafe fn warpgroup_mma_tf32_registers<const L: usize>(
        self,
        sums: &mut [f32; L],
        a: [f32; 4],
        b: SharedPtr<f32>,
    );
    /// Gives back registers of this warpgroup's threads, until each has `N`: a multiple of 8 from 24 to 256, no more than the kernel was
    /// compiled for. What a thread still needs is kept.
    #[track_caller]
    fn warpgroup_give_registers<const N: u32>(self);
    /// Waits until the threads of this warpgroup can have `N` registers each, as for
    /// [`warpgroup_give_registers`](Hopper::warpgroup_give_registers), and no fewer than they have.
    #[track_caller]
    fn warpgroup_take_registers<const N: u32>(self);
    /// Closes the group of products that this warpgroup has started since the last commit.
    #[track_caller]
    fn warpgroup_commit(self);
    /// Waits until at most `PENDING` of the warpgroup's groups of products are under way. `sums` hold their results if no
    /// product that was added to them is among these.
    #[track_caller]
    fn warpgroup_wait<const PENDING: u32, const L: usize>(self, sums: &mut [f32; L]);
}
