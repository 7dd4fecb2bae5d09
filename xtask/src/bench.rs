//! `cargo xtask bench`: the main job. On a machine with a GPU it measures there, elsewhere on the simulator.
use crate::{cargo, doctor};

/// What `bench` is told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Arguments of `lacuna-bench` [default: the suite `table` beside the vendor's libraries on a GPU, or else `smoke`]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let gpu = doctor::has_gpu();
    let shell = cargo::shell()?;
    if gpu {
        cargo::enable_cuda(&shell)?;
    }
    let program = cargo::program(&shell, "lacuna-bench", gpu)?;
    let default: &[&str] =
        if gpu { &["sweep", "--suite", "table", "--peers"] } else { &["sweep", "--suite", "smoke"] };
    let given = arguments.arguments.iter().map(String::as_str);
    let arguments: Vec<&str> =
        if arguments.arguments.is_empty() { default.to_vec() } else { given.collect() };
    cargo::run_program(&shell, &program, arguments)
}
