//! Builds without MPI: there is no job to be in.
use std::env;

use anyhow::Result;
use lacuna_cases::exit::Usage;

/// What launchers of MPI tell of the number of ranks: OpenMPI's, and those of MPICH's kin.
const SIZES: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];

/// No job: there is no value of this type.
#[derive(Debug)]
pub(super) enum Job {}

impl Job {
    /// No job.
    ///
    /// # Errors
    /// If this is one of several processes that a launcher started: each would do all the work.
    pub(super) fn join() -> Result<Option<Self>> {
        let size = |name| env::var(name).ok()?.parse::<usize>().ok();
        if SIZES.into_iter().filter_map(size).any(|size| size > 1) {
            let why = "several ranks were started, but this program was built without MPI: build it with `--features mpi`";
            return Err(Usage(why.into()).into());
        }
        Ok(None)
    }

    pub(super) fn rank(&self) -> usize {
        match *self {}
    }

    pub(super) fn size(&self) -> usize {
        match *self {}
    }

    pub(super) fn rank_on_host(&self) -> usize {
        match *self {}
    }

    pub(super) fn barrier(&self) {
        match *self {}
    }

    pub(super) fn max(&self, _: &mut [f64]) {
        match *self {}
    }

    pub(super) fn gather(&self, _: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        match *self {}
    }

    pub(super) fn abort(&self, _: i32) -> ! {
        match *self {}
    }
}
