//! A job of MPI's: all calls of MPI that there are.
use std::env;
use std::fmt;

use anyhow::{Context as _, Result};
use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives as _, Root as _};

/// What launchers set for each process: OpenMPI's, PMIx's (Slurm, PRRTE), and those of MPICH's kin.
const LAUNCHED: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"];

/// The job that this process is part of. MPI ends when it is dropped.
pub(super) struct Job {
    world: SimpleCommunicator,
    rank_on_host: usize,
    _universe: Universe,
}

impl Job {
    /// Starts MPI, if a launcher started this process.
    ///
    /// # Errors
    /// If MPI was started before.
    pub(super) fn join() -> Result<Option<Self>> {
        if LAUNCHED.into_iter().all(|name| env::var_os(name).is_none()) {
            return Ok(None);
        }
        // Other threads compute, but only this one calls MPI.
        let (universe, _) =
            mpi::initialize_with_threading(Threading::Funneled).context("MPI is there already")?;
        let world = universe.world();
        let rank_on_host = world.split_shared(world.rank()).rank() as usize;
        Ok(Some(Self { world, rank_on_host, _universe: universe }))
    }

    pub(super) fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    pub(super) fn size(&self) -> usize {
        self.world.size() as usize
    }

    /// The number of this rank among those that share its host's memory.
    pub(super) fn rank_on_host(&self) -> usize {
        self.rank_on_host
    }

    pub(super) fn barrier(&self) {
        self.world.barrier();
    }

    pub(super) fn max(&self, numbers: &mut [f64]) {
        let own = numbers.to_vec();
        self.world.all_reduce_into(&own[..], numbers, SystemOperation::max());
    }

    /// The bytes of each rank, for the first.
    ///
    /// # Errors
    /// If they are more than MPI counts.
    pub(super) fn gather(&self, own: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        let root = self.world.process_at_rank(0);
        let len = i32::try_from(own.len()).context("a rank has more to send than MPI can count")?;
        if self.rank() != 0 {
            root.gather_into(&len);
            root.gather_varcount_into(own);
            return Ok(None);
        }
        let mut lens = vec![0; self.size()];
        root.gather_into_root(&len, &mut lens[..]);
        let mut starts = Vec::with_capacity(lens.len());
        let mut end = 0_i32;
        for &len in &lens {
            starts.push(end);
            end = end.checked_add(len).context("the ranks have more to send than MPI can count")?;
        }
        let mut bytes = vec![0; end as usize];
        root.gather_varcount_into_root(own, &mut PartitionMut::new(&mut bytes[..], &lens[..], &starts[..]));
        let each =
            starts.iter().zip(&lens).map(|(&start, &len)| bytes[start as usize..][..len as usize].to_vec());
        Ok(Some(each.collect()))
    }

    /// Ends all ranks.
    pub(super) fn abort(&self, code: i32) -> ! {
        self.world.abort(code)
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank(), self.size())
    }
}
