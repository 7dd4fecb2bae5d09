//! The command line.
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

use crate::case::{Case, Effort};
use crate::report::{self, Counts, Table};
use crate::run::{self, Record};
use crate::target::{self, Devices};
use crate::{Options, cases};
use lacuna_cases::data::{Data, FOLDERS};
use lacuna_cases::exit::{self, Outcome, Usage};

/// Checks Lacuna on GPUs and on the simulator, against an oracle.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "lacuna-verify",
    version,
    after_help = exit::HELP
)]
pub struct Cli {
    /// Runs on this device: `sim`, `cuda:INDEX`, or `all` that are there. May be given more than once.
    #[arg(long = "device", value_name = "DEVICE", default_value = "all")]
    pub devices: Vec<Devices>,
    /// Runs the case of this name; if there is none, the cases whose name contains it. Packed data is unpacked only for a
    /// name that is nowhere else.
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// Real matrices: a folder with `dlmc` and `graphs`, as folders or as .tar.xz. Else the folder that LACUNA_DATA
    /// names, or `data` beside this program.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The seed of all inputs that are drawn.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Draws this many random problems, at most a million.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub random: Option<u32>,
    /// Lists the cases, and runs none.
    #[arg(long)]
    pub list: bool,
    /// Prints a JSON object a case instead of the table, when its group ends.
    #[arg(long)]
    pub json: bool,
    /// Leaves out the cases that the list marks: for runs under compute-sanitizer.
    #[arg(long)]
    pub quick: bool,
}

/// Does what the command line asks for; gives the program's exit code.
pub fn main(cli: &Cli) -> ExitCode {
    exit::finish("lacuna-verify", run(cli).map(|failures| Outcome::good_if(failures == 0)))
}

/// Gives the number of failures.
fn run(cli: &Cli) -> anyhow::Result<usize> {
    let mut data = Data::find(cli.data.as_deref())?;
    let cases = gather(cli, &mut data);
    let cases = select(&cases, cli)?;
    if cli.list {
        print(&list(&cases))?;
        return Ok(0);
    }
    let targets = target::open(&cli.devices)?;
    let progress = ProgressBar::new((cases.len() * targets.len()) as u64)
        .with_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}")?);
    let table =
        Table::new(targets.iter().map(|target| target.name.as_str()), cases.iter().map(|case| case.group()));
    if !cli.json {
        print(&table.header())?;
    }
    let mut records = Vec::new();
    for target in &targets {
        let device = format!("{} ({})", target.name, target.device.info().name);
        let before = |case: &Case| {
            progress.inc(1);
            progress.set_message(format!("{device}: {}", case.name()));
        };
        let group_ended = |group: &[Record]| {
            let text = if cli.json { report::json(group) } else { table.group(group) };
            Ok(progress.suspend(|| print(&text))?)
        };
        records.extend(run::run(&cases, target, cli.seed, before, group_ended)?);
    }
    progress.finish_and_clear();
    if !cli.json {
        print(&report::summary(&records, |record| repeat_command(cli, record)))?;
    }
    Ok(Counts::of(&records).failed)
}

/// All cases. Data is unpacked only for cases that are to run, or if the name asked for may be among those on it.
fn gather(cli: &Cli, data: &mut Data) -> Vec<Case> {
    let options = Options { random: cli.random.map(|count| count as usize) };
    let gathered = cases(options, data);
    let wanted: Vec<&'static str> = match select(&gathered, cli) {
        Ok(_) if cli.list => Vec::new(),
        Ok(selected) => selected.into_iter().filter_map(Case::needs_unpacked).collect(),
        Err(_) if cli.quick => Vec::new(),
        Err(_) => FOLDERS.to_vec(),
    };
    if wanted.is_empty() {
        return gathered;
    }
    for folder in wanted {
        data.unpack(folder);
    }
    cases(options, data)
}

/// The cases that the command line asks for.
fn select<'c>(cases: &'c [Case], cli: &Cli) -> Result<Vec<&'c Case>, Usage> {
    let exact = cases.iter().any(|case| Some(case.name()) == cli.only.as_deref());
    let named = |case: &&Case| match &cli.only {
        Some(only) if exact => case.name() == only,
        Some(only) => case.name().contains(only),
        None => true,
    };
    let quick = |case: &&Case| !cli.quick || case.needs() == Effort::Quick;
    let selected: Vec<&Case> = cases.iter().filter(named).filter(quick).collect();
    if selected.is_empty() {
        let only = cli.only.as_deref().unwrap_or_default();
        let quick = if cli.quick { " that is quick" } else { "" };
        return Err(Usage(format!("there is no case `{only}`{quick}; --list shows the names")));
    }
    Ok(selected)
}

fn list(cases: &[&Case]) -> String {
    let width = cases.iter().map(|case| case.name().len()).max().unwrap_or(0);
    let mut list = String::new();
    for case in cases {
        let mark = match case.needs() {
            Effort::Quick => "",
            Effort::Slow => " [not quick]",
            Effort::Gpu => " [GPU only]",
        };
        let _ = writeln!(list, "{:width$}  {}{mark}", case.name(), case.about());
    }
    list
}

/// The command that runs a case again with the same inputs.
fn repeat_command(cli: &Cli, record: &Record) -> String {
    let mut command =
        format!("lacuna-verify --device {} --only {} --seed {}", record.device, record.case, cli.seed);
    if let Some(random) = cli.random {
        let _ = write!(command, " --random {random}");
    }
    if let Some(data) = &cli.data {
        let _ = write!(command, " --data {}", data.display());
    }
    command
}

/// Prints to stdout. A reader that has seen enough is no error.
fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Outcome;

    fn names(arguments: &[&str]) -> Result<Vec<String>, Usage> {
        let cli = Cli::parse_from(["lacuna-verify"].iter().chain(arguments));
        let cases = [
            Case::new("op/n/n1", "", |_| Ok(0.0)),
            Case::new("op/n/n17", "", |_| Ok(0.0)).effort(Effort::Slow),
            Case::new("op/m/m1", "", |_| Ok(0.0)).effort(Effort::Gpu),
        ];
        Ok(select(&cases, &cli)?.into_iter().map(|case| case.name().to_owned()).collect())
    }

    #[test]
    fn a_whole_name_means_that_case_and_a_part_all_that_have_it() {
        assert_eq!(names(&["--only", "op/n/n1"]).unwrap(), ["op/n/n1"]);
        assert_eq!(names(&["--only", "n/n1"]).unwrap(), ["op/n/n1", "op/n/n17"]);
        assert_eq!(names(&["--quick"]).unwrap(), ["op/n/n1"]);
        assert_eq!(names(&[]).unwrap().len(), 3);
        assert!(names(&["--only", "m1", "--quick"]).unwrap_err().to_string().contains("--list"));
    }

    #[test]
    fn the_command_to_repeat_has_all_that_inputs_depend_on() {
        let cli = Cli::parse_from(["lacuna-verify", "--seed", "7", "--random", "50", "--data", "d"]);
        let record = Record {
            case: "op/random/3".into(),
            device: "cuda:1".into(),
            outcome: Outcome::Failed { why: String::new() },
            seconds: 0.0,
        };
        assert_eq!(
            repeat_command(&cli, &record),
            "lacuna-verify --device cuda:1 --only op/random/3 --seed 7 --random 50 --data d"
        );
    }
}
