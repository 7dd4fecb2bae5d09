//! Ranks: processes of one job, on one host or several, that share the images. A program that no `mpirun` started is the only one.
//!
//! All else in the crate goes through [`Ranks`], and knows neither MPI nor whether it was built in.
#[cfg(not(feature = "mpi"))]
mod alone;
#[cfg(feature = "mpi")]
mod mpi;
mod share;

use std::panic::{self, AssertUnwindSafe};

use anyhow::{Context as _, Result, ensure};
use lacuna::Device;
use lacuna_cases::exit::{self, Outcome};
use serde::Serialize;
use serde::de::DeserializeOwned;

#[cfg(not(feature = "mpi"))]
use self::alone::Job;
#[cfg(feature = "mpi")]
use self::mpi::Job;
pub use self::share::Share;
use crate::machine;
use crate::timing::Timing;

/// The exit code of a rank that panicked, as Rust has it.
const PANICKED: i32 = 101;

/// This process among those of its job.
#[derive(Debug)]
pub struct Ranks {
    /// None where this process is the only one.
    job: Option<Job>,
}

impl Ranks {
    /// Does `work` as one of the job's ranks. A rank that fails or panics ends the whole job: the others may be waiting for it,
    /// and would do so for ever.
    ///
    /// # Errors
    /// Those of `work` where this process is the only one; in a job a failure says so on stderr, with its rank, and does not return.
    /// [`Usage`](exit::Usage) where `mpirun` started a program that was built without MPI.
    pub fn run(work: impl FnOnce(&Self) -> Result<Outcome>) -> Result<Outcome> {
        let ranks = Self { job: Job::join()? };
        let Some(job) = &ranks.job else { return work(&ranks) };
        let who = format!("rank {} of {}", ranks.rank(), ranks.size());
        match panic::catch_unwind(AssertUnwindSafe(|| work(&ranks))) {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(error)) => {
                eprintln!("lacuna-bench: {who} ends the job: {}", exit::describe(&error));
                job.abort(exit::code_of(&error).into())
            }
            Err(_) => {
                eprintln!("lacuna-bench: {who} ends the job: it panicked, as said above");
                job.abort(PANICKED)
            }
        }
    }

    /// The number of this one, from 0.
    pub fn rank(&self) -> usize {
        self.job.as_ref().map_or(0, Job::rank)
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.job.as_ref().map_or(1, Job::size)
    }

    /// Whether this is the one that has the results, checks and prints them.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// This rank's share of the images.
    pub fn share(&self, images: usize) -> Share {
        Share::new(self.rank(), self.size(), images)
    }

    /// The device of a name: of `cuda` and `auto` the GPU that has this rank's number among the ranks of its host, from the first
    /// again where there are more ranks than GPUs. All ranks must call it.
    ///
    /// # Errors
    /// As [`machine::device`]; if some ranks have a GPU, and others have none and would simulate.
    pub fn device(&self, name: &str) -> Result<Device> {
        let device = machine::device_of(name, self.job.as_ref().map_or(0, Job::rank_on_host))?;
        let mut kinds = [device.is_simulator(), !device.is_simulator()].map(f64::from);
        self.max(&mut kinds);
        ensure!(kinds != [1.0; 2], "some ranks have a GPU and others have not: say `--device cuda` or `sim`");
        Ok(device)
    }

    /// Waits until all ranks are here.
    pub fn barrier(&self) {
        if let Some(job) = &self.job {
            job.barrier();
        }
    }

    /// Replaces each number by the greatest that a rank has there. All ranks must call it, with as many numbers.
    pub fn max(&self, numbers: &mut [f64]) {
        if let Some(job) = &self.job {
            job.max(numbers);
        }
    }

    /// Times of the job from those that each rank took: the slowest rank's, sample by sample.
    pub fn slowest(&self, mut samples: Vec<f64>) -> Timing {
        self.max(&mut samples);
        Timing::of(samples)
    }

    /// What each rank has, by rank, for the first; none for the others. All ranks must call it.
    ///
    /// # Errors
    /// If it cannot be written or read as JSON, which is how it travels.
    pub fn gather<T: Serialize + DeserializeOwned>(&self, own: T) -> Result<Option<Vec<T>>> {
        let Some(job) = &self.job else { return Ok(Some(vec![own])) };
        let own = serde_json::to_vec(&own)?;
        let Some(all) = job.gather(&own)? else { return Ok(None) };
        let read = |bytes: &Vec<u8>| serde_json::from_slice(bytes);
        all.iter().map(read).collect::<Result<_, _>>().map(Some).context("cannot read what a rank has sent")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_nobody_started_as_a_job_is_the_only_rank() {
        let outcome = Ranks::run(|ranks| {
            assert_eq!((ranks.rank(), ranks.size(), ranks.is_first()), (0, 1, true));
            assert_eq!(ranks.share(70).images(), (0..70).collect::<Vec<_>>());
            assert_eq!(ranks.gather(7)?, Some(vec![7]));
            assert_eq!(ranks.slowest(vec![3.0, 1.0, 2.0]), Timing { median: 2.0, min: 1.0, max: 3.0 });
            assert!(ranks.device("sim")?.is_simulator());
            Ok(Outcome::Failure)
        });
        assert_eq!(outcome.unwrap(), Outcome::Failure);
        assert_eq!(Ranks::run(|_| anyhow::bail!("no")).unwrap_err().to_string(), "no");
    }
}
