//! What the tests share: kernels in a line, buffers, and the lines to blame.
use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::Kernel;
use lacuna_sim::{Finding, LaunchError, Report, Simulator};

/// Elements of each buffer of [`Bench`].
pub(crate) const LEN: usize = 256;

/// The arguments of every test kernel.
#[derive(Clone, Copy)]
pub(crate) struct Args {
    pub(crate) input: GlobalPtr<u32>,
    pub(crate) output: GlobalMut<u32>,
    /// Whether to commit the fault.
    pub(crate) fault: bool,
}

/// Defines a kernel: `kernel!(Name, threads, shared bytes, |gpu, args| body);` with `looks_ahead` before the body for one that
/// waits by itself for the launch before it, and `cluster of 2` for one whose blocks run by twos.
macro_rules! kernel {
    ($name:ident, $threads:expr, $shared:expr, |$gpu:ident, $args:ident| $body:block) => {
        $crate::support::kernel!(@ $name, $threads, $shared, false, 1, |$gpu, $args| $body);
    };
    ($name:ident, $threads:expr, $shared:expr, looks_ahead, |$gpu:ident, $args:ident| $body:block) => {
        $crate::support::kernel!(@ $name, $threads, $shared, true, 1, |$gpu, $args| $body);
    };
    ($name:ident, $threads:expr, $shared:expr, cluster of $cluster:expr, |$gpu:ident, $args:ident| $body:block) => {
        $crate::support::kernel!(@ $name, $threads, $shared, false, $cluster, |$gpu, $args| $body);
    };
    (@ $name:ident, $threads:expr, $shared:expr, $looks_ahead:expr, $cluster:expr, |$gpu:ident, $args:ident| $body:block) => {
        struct $name;
        impl lacuna_kernels::Kernel for $name {
            type Args = $crate::support::Args;
            type Tile = ();
            const TILE: () = ();
            const THREADS: u32 = $threads;
            const SHARED_BYTES: u32 = $shared;
            const EARLY_PROLOGUE: bool = $looks_ahead;
            const CLUSTER: u32 = $cluster;
            unsafe fn run<G: lacuna_gpu::Gpu>($gpu: G, $args: Self::Args) {
                // Not every body needs it.
                #[allow(unused_unsafe)]
                // SAFETY: the simulator checks every access; breaking the contract is what these kernels are for.
                unsafe {
                    $body
                }
            }
        }
    };
}
pub(crate) use kernel;

/// A simulator with an input `0, 1, 2, …` and an unwritten output, both of [`LEN`] elements.
pub(crate) struct Bench {
    pub(crate) simulator: Simulator,
    pub(crate) args: Args,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let simulator = Simulator::new();
        let input = simulator.alloc_named("input", 4 * LEN as u64).unwrap();
        let output = simulator.alloc_named("output", 4 * LEN as u64).unwrap();
        let numbers: Vec<u8> = (0..LEN as u32).flat_map(u32::to_le_bytes).collect();
        simulator.write(input, &numbers).unwrap();
        let (input, output) = (GlobalPtr::from_address(input), GlobalMut::from_address(output));
        Self { simulator, args: Args { input, output, fault: false } }
    }

    /// As [`new`](Self::new), with the output zeroed.
    pub(crate) fn zeroed() -> Self {
        let bench = Self::new();
        bench.simulator.fill(bench.args.output.address(), 4 * LEN as u64, 0).unwrap();
        bench
    }

    pub(crate) fn launch<K: Kernel<Args = Args>>(&self, blocks: u32) -> Result<Report, LaunchError> {
        self.simulator.launch::<K>([blocks, 1, 1], self.args)
    }

    /// Runs a kernel that is right.
    pub(crate) fn run<K: Kernel<Args = Args>>(&self, blocks: u32) -> Report {
        self.launch::<K>(blocks).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The output.
    pub(crate) fn output(&self) -> Vec<u32> {
        let mut bytes = vec![0; 4 * LEN];
        self.simulator.read(self.args.output.address(), &mut bytes).unwrap();
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }

    /// Runs the twin without the fault, which must be clean, and then the fault, which must give findings.
    pub(crate) fn faults<K: Kernel<Args = Args>>(mut self, blocks: u32) -> Vec<Finding> {
        self.run::<K>(blocks);
        self.args.fault = true;
        match self.launch::<K>(blocks) {
            Err(LaunchError::Findings(report)) => report.findings,
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("the fault was not found"),
        }
    }

    /// As [`faults`](Self::faults), where there is exactly one finding.
    pub(crate) fn fault<K: Kernel<Args = Args>>(self, blocks: u32) -> Finding {
        let findings = self.faults::<K>(blocks);
        assert_eq!(findings.len(), 1, "{findings:#?}");
        findings.into_iter().next().unwrap()
    }
}

/// The number of the line of `file` that ends in the comment `// blame: {name}`.
pub(crate) fn line(file: &str, name: &str) -> u32 {
    let mark = format!("// blame: {name}");
    let found = file.lines().position(|line| line.trim_end().ends_with(&mark));
    found.unwrap_or_else(|| panic!("no line is marked {mark}")) as u32 + 1
}

/// The line of a finding.
pub(crate) fn blamed(finding: &Finding) -> u32 {
    finding.source.as_ref().map_or(0, |source| source.line)
}

/// The other line of a finding.
pub(crate) fn other(finding: &Finding) -> u32 {
    finding.other.as_ref().map_or(0, |source| source.line)
}
