//! Writes the PTX that the build script made: `<folder>/<target>.ptx`, a module a target.
use std::path::PathBuf;
use std::process::ExitCode;

const MODULES: [(&str, &str); 3] = [
    ("sm_70", include_str!(concat!(env!("OUT_DIR"), "/sm_70.ptx"))),
    ("sm_80", include_str!(concat!(env!("OUT_DIR"), "/sm_80.ptx"))),
    ("sm_90a", include_str!(concat!(env!("OUT_DIR"), "/sm_90a.ptx"))),
];

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: lacuna-rust-cuda-builder FOLDER");
        return ExitCode::from(2);
    };
    for (target, ptx) in MODULES {
        let path = folder.join(format!("{target}.ptx"));
        if let Err(error) = std::fs::write(&path, ptx) {
            eprintln!("error: cannot write `{}`: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
