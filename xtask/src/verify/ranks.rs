//! Several ranks by MPI: the same results at any number of them, and the end of the job when one fails or is killed.
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use serde_json::Value;
use tempfile::TempDir;
use xshell::{Shell, cmd};

use crate::setup::Mpi;

/// Images: four tiles of 32, the last one of 14. So of five ranks one has none.
const IMAGES: &str = "110";
/// Layers after which some of these images are left, and some are not.
const LAYERS: &str = "3";
/// Layers that take a while.
const MANY_LAYERS: &str = "4000";
/// Kernels that a run measures: the library's choice, and the paper's two.
const KERNELS: usize = 3;
/// Numbers of ranks whose results must be those of the program by itself.
const RANKS: [usize; 5] = [1, 2, 3, 4, 5];
/// What of a record depends on the results alone.
const RESULTS: [&str; 7] =
    ["images", "categories", "scores", "live", "nominal_edges", "effective_edges", "reference"];
/// How long a job may take that should end well.
const PATIENCE: Duration = Duration::from_secs(240);
/// How long a job may live on without one of its ranks.
const SECONDS: Duration = Duration::from_secs(30);
/// The ranks of a job that ends badly.
const DOOMED: usize = 3;

/// Runs `program`, `lacuna-bench` with feature `mpi`, as several ranks on the simulator.
pub(super) fn check(shell: &Shell, mpi: &Mpi, program: &Path) -> anyhow::Result<()> {
    let jobs = Jobs { mpi, program, folder: tempfile::tempdir()? };
    fs::create_dir(jobs.folder.path().join("mnist"))?;
    jobs.results_are_equal()?;
    jobs.a_failing_rank_ends_the_job()?;
    jobs.a_killed_rank_ends_the_job(shell)
}

/// What all jobs run with.
struct Jobs<'j> {
    mpi: &'j Mpi,
    program: &'j Path,
    /// Has an empty `mnist`, so that images are drawn, whatever data there is. Files are written here.
    folder: TempDir,
}

impl Jobs<'_> {
    fn results_are_equal(&self) -> anyhow::Result<()> {
        let alone = self.records("alone", |arguments| {
            let mut command = Command::new(self.program);
            command.args(arguments);
            command
        })?;
        for record in &alone {
            let is_of_one = record.get("ranks").is_none() && record["scores"].is_string();
            ensure!(is_of_one, "not what one process says: {record}");
            let [all, left] = ["images", "categories"].map(|field| record[field].as_u64());
            ensure!(Some(0) < left && left < all, "too easy: {left:?} of {all:?} images are left");
        }
        for ranks in RANKS {
            let several = self.records(&format!("{ranks} ranks"), |arguments| self.job(ranks, arguments))?;
            for (one, several) in alone.iter().zip(&several) {
                for field in RESULTS {
                    let (one, several) = (&one[field], &several[field]);
                    ensure!(one == several, "`{field}` is {one} of one process, {several} of {ranks} ranks");
                }
                let shares = several["shares"].as_array().map_or(1, Vec::len);
                ensure!(shares == ranks, "{ranks} ranks have {shares} shares: {several}");
            }
        }
        Ok(())
    }

    /// One rank has no data folder: an error. Then the first one cannot print: a panic. The others wait for them.
    fn a_failing_rank_ends_the_job(&self) -> anyhow::Result<()> {
        let good = self.arguments(LAYERS, self.folder.path());
        let bad = self.arguments(LAYERS, &self.folder.path().join("nowhere"));
        let full = ["sh", "-c", r#"exec "$0" "$@" > /dev/full"#].map(str::to_owned).to_vec();
        for (first, second, code, why) in [
            (self.rank(&good), self.rank(&bad), 2, "rank 1 of 3 ends the job: no data in"),
            (
                [full, self.rank(&good)].concat(),
                self.rank(&good),
                101,
                "rank 0 of 3 ends the job: it panicked",
            ),
        ] {
            let programs = [first, second, self.rank(&good)];
            let each = programs.map(|program| [["-n", "1"].map(str::to_owned).to_vec(), program].concat());
            let (status, said) = self.start(self.mpi.run(each.join(&":".to_owned())))?.end(SECONDS)?;
            ensure!(status.code() == Some(code), "the job of a rank that fails ended with {status}:\n{said}");
            ensure!(said.contains(why), "the job does not say {why:?}:\n{said}");
        }
        Ok(())
    }

    fn a_killed_rank_ends_the_job(&self, shell: &Shell) -> anyhow::Result<()> {
        let mut arguments = self.arguments(MANY_LAYERS, self.folder.path());
        arguments.extend(["--no-prune", "--verify", "0"].map(str::to_owned));
        let mut job = self.start(self.job(DOOMED, arguments))?;
        // The first rank prints it when all have met.
        job.prints(&format!("{MANY_LAYERS} layers"))?;
        let ranks = children(job.child.id());
        ensure!(ranks.len() == DOOMED, "mpirun has {} children, not {DOOMED}: {ranks:?}", ranks.len());
        let last = ranks[DOOMED - 1].to_string();
        cmd!(shell, "kill -KILL {last}").quiet().run()?;
        let (status, said) = job.end(SECONDS)?;
        ensure!(!status.success(), "the job of a killed rank ended well:\n{said}");
        ensure!(said.contains("signal 9"), "the job does not say that a rank was killed:\n{said}");
        Ok(())
    }

    /// The records of a run that must end well, one a kernel. `command` makes it of the program's arguments.
    fn records(
        &self,
        name: &str,
        command: impl FnOnce(Vec<String>) -> Command,
    ) -> anyhow::Result<[Value; KERNELS]> {
        let out = self.folder.path().join(format!("{name}.jsonl"));
        let mut arguments = self.arguments(LAYERS, self.folder.path());
        arguments.extend(["--compare-baseline", "--out"].map(str::to_owned));
        arguments.push(text(&out)?);
        let (status, said) = self.start(command(arguments))?.end(PATIENCE)?;
        ensure!(status.success(), "{name}: {status}\n{said}");
        let records = fs::read_to_string(&out).with_context(|| format!("{name}: no record"))?;
        let parsed = records.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
        parsed
            .try_into()
            .map_err(|_| anyhow!("{name}: not a record for each of {KERNELS} kernels:\n{records}"))
    }

    fn start(&self, command: Command) -> anyhow::Result<Job> {
        Job::start(command, self.folder.path())
    }

    fn job(&self, ranks: usize, arguments: Vec<String>) -> Command {
        let mpirun = ["-n".to_owned(), ranks.to_string()];
        self.mpi.run(mpirun.into_iter().chain(self.rank(&arguments)))
    }

    /// The program's command line, as mpirun takes it.
    fn rank(&self, arguments: &[String]) -> Vec<String> {
        let program = self.program.to_string_lossy().into_owned();
        [vec![program], arguments.to_vec()].concat()
    }

    fn arguments(&self, layers: &str, data: &Path) -> Vec<String> {
        let fixed = ["spdnn", "--device", "sim", "--neurons", "256", "--images", IMAGES, "--layers", layers];
        let mut arguments = fixed.map(str::to_owned).to_vec();
        arguments.extend(["--data".to_owned(), data.to_string_lossy().into_owned()]);
        arguments
    }
}

/// A command that runs. What it says is in files: no pipe can be full, and none is waited for.
struct Job {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Job {
    /// Starts it, with files in this folder.
    fn start(mut command: Command, folder: &Path) -> anyhow::Result<Self> {
        let [stdout, stderr] = ["stdout", "stderr"].map(|name| folder.join(name));
        command.stdin(Stdio::null()).stdout(File::create(&stdout)?).stderr(File::create(&stderr)?);
        let child = command.spawn().with_context(|| format!("{command:?} does not start"))?;
        Ok(Self { child, stdout, stderr })
    }

    /// What it has said so far.
    fn said(&self) -> anyhow::Result<String> {
        Ok(fs::read_to_string(&self.stdout)? + &fs::read_to_string(&self.stderr)?)
    }

    /// Asks again and again, at most so long.
    fn wait<T>(
        &mut self,
        patience: Duration,
        what: &str,
        mut ask: impl FnMut(&mut Self) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let start = Instant::now();
        loop {
            if let Some(answer) = ask(self)? {
                return Ok(answer);
            }
            ensure!(start.elapsed() < patience, "{what} after {patience:?}; it said:\n{}", self.said()?);
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until it has printed this.
    fn prints(&mut self, words: &str) -> anyhow::Result<()> {
        self.wait(PATIENCE, "a job has not begun", |job| {
            let has_ended = job.child.try_wait()?.is_some();
            let said = job.said()?;
            let prints = said.contains(words);
            ensure!(prints || !has_ended, "a job ended before it printed {words:?}; it said:\n{said}");
            Ok(prints.then_some(()))
        })
    }

    /// Waits for its end, at most so long, and tells what it has said.
    fn end(mut self, patience: Duration) -> anyhow::Result<(ExitStatus, String)> {
        let status = self.wait(patience, "a job is still there", |job| Ok(job.child.try_wait()?))?;
        Ok((status, self.said()?))
    }
}

/// Whatever came of it, nothing of it stays.
impl Drop for Job {
    fn drop(&mut self) {
        // One that has ended cannot be killed, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processes that this one started, in their order, as /proc has them.
fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_child = |id: &u32| {
        // The name, in brackets, may hold anything; behind it stand the state and the parent.
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
        behind.split_whitespace().nth(1).and_then(|parent| parent.parse().ok()) == Some(parent)
    };
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut children: Vec<u32> = ids.filter(is_child).collect();
    children.sort_unstable();
    children
}

fn text(path: &Path) -> anyhow::Result<String> {
    Ok(path.to_str().with_context(|| format!("{} is no text", path.display()))?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_tells_its_words_its_children_and_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let start = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Job::start(command, folder.path()).unwrap()
        };
        let mut job = start("echo begun; tail -f /dev/null & wait; exit 3");
        job.prints("begun").unwrap();
        let child = job
            .wait(PATIENCE, "no child", |job| Ok(children(job.child.id()).first().copied()))
            .unwrap()
            .to_string();
        assert!(job.wait(Duration::ZERO, "not yet", |_| Ok(None::<()>)).is_err());
        assert!(Command::new("kill").args(["-KILL", &child]).status().unwrap().success());
        let (status, said) = job.end(PATIENCE).unwrap();
        assert_eq!((status.code(), said.as_str()), (Some(3), "begun\n"));
        let error = start("echo why >&2; exit 1").prints("begun").unwrap_err().to_string();
        assert!(error.contains("ended before") && error.contains("why"), "{error}");
        let error = start("exec sh -c 'while :; do :; done'").end(Duration::ZERO).unwrap_err().to_string();
        assert!(error.contains("still there"), "{error}");
    }
}
