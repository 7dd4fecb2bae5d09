//! The GPUs that launches are modelled on.
use serde::Serialize;

/// What the model knows of a GPU. Rates are the vendor's peaks at boost clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// Short name.
    pub name: &'static str,
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Boost clock in GHz.
    pub clock_ghz: f64,
    /// `f32` fused multiply-adds a clock, each SM.
    pub fmas_per_clock: u32,
    /// Fused multiply-adds a clock on tensor cores, each SM: of halves, through `mma.sync`; of TF32 it is half as many. 0
    /// where there are none that `Gpu` can use. For H100 and H200 it is what they were measured to reach, some 62 % of the
    /// vendor's peak, which only products of warpgroups reach.
    pub tensor_fmas_per_clock: u32,
    /// As `tensor_fmas_per_clock`, by products of warpgroups; 0 where there are none.
    pub warpgroup_fmas_per_clock: u32,
    /// Special functions (exp2, rcp) a clock, each SM.
    pub specials_per_clock: u32,
    /// Bytes a clock from L1 or shared memory, each SM; both share one path.
    pub l1_bytes_per_clock: u32,
    /// Bytes a clock from L2, whole GPU.
    pub l2_bytes_per_clock: u32,
    /// Bandwidth of device memory in GB/s (10⁹ bytes).
    pub dram_gb_per_s: f64,
    /// Shared memory of an SM that blocks can have, in bytes.
    pub shared_bytes: u32,
    /// Shared memory that the system takes from each block, in bytes.
    pub shared_reserved: u32,
    /// Shared memory is handed out in multiples of this many bytes; at least 1.
    pub shared_granularity: u32,
    /// 32-bit registers of an SM, spread evenly over its four schedulers.
    pub registers: u32,
    /// Most resident threads of an SM.
    pub max_threads: u32,
    /// Most resident blocks of an SM.
    pub max_blocks: u32,
    /// Shortest time of an empty kernel in a graph, in microseconds.
    pub launch_us: f64,
    /// Time of one load from device memory, in microseconds.
    pub latency_us: f64,
}

impl Machine {
    /// NVIDIA V100, SXM2, 16 GB.
    pub const V100: Self = Self {
        name: "V100",
        sms: 80,
        clock_ghz: 1.53,
        fmas_per_clock: 64,
        tensor_fmas_per_clock: 0,
        warpgroup_fmas_per_clock: 0,
        specials_per_clock: 16,
        l1_bytes_per_clock: 128,
        l2_bytes_per_clock: 2048,
        dram_gb_per_s: 900.0,
        shared_bytes: 96 * 1024,
        shared_reserved: 0,
        shared_granularity: 256,
        registers: 65_536,
        max_threads: 2048,
        max_blocks: 32,
        launch_us: 2.0,
        latency_us: 0.5,
    };
    /// NVIDIA A100, SXM4, 80 GB.
    pub const A100: Self = Self {
        name: "A100",
        sms: 108,
        clock_ghz: 1.41,
        tensor_fmas_per_clock: 1024,
        l2_bytes_per_clock: 5120,
        dram_gb_per_s: 2039.0,
        shared_bytes: 164 * 1024,
        shared_reserved: 1024,
        shared_granularity: 128,
        ..Self::V100
    };
    /// NVIDIA H100, SXM5, 80 GB.
    pub const H100: Self = Self {
        name: "H100",
        sms: 132,
        clock_ghz: 1.98,
        fmas_per_clock: 128,
        tensor_fmas_per_clock: 1280,
        warpgroup_fmas_per_clock: 2048,
        dram_gb_per_s: 3352.0,
        shared_bytes: 228 * 1024,
        ..Self::A100
    };
    /// NVIDIA H200, SXM5, 141 GB.
    pub const H200: Self = Self { name: "H200", dram_gb_per_s: 4800.0, ..Self::H100 };

    /// All machines, oldest first.
    pub const ALL: [Self; 4] = [Self::V100, Self::A100, Self::H100, Self::H200];

    /// The machine of this name, in any case.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|machine| machine.name.eq_ignore_ascii_case(name))
    }
}
