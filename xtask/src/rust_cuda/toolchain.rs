//! What rust-cuda's code generator needs of a machine: is it there, and if not, what is missing.
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::read;

/// What the manifest and the toolchain file of the route ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pin {
    /// Revision of rust-cuda's repository.
    pub(super) revision: String,
    channel: String,
    components: Vec<String>,
}

/// The value of the first `name = "value"` in a text, on a line of its own or within braces.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("{name} = \""))?;
    rest.split('"').next()
}

impl Pin {
    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        Self::parse(&read(&folder.join("Cargo.toml"))?, &read(&folder.join("rust-toolchain.toml"))?)
    }

    fn parse(manifest: &str, toolchain: &str) -> anyhow::Result<Self> {
        let list = toolchain.split_once("components = [").and_then(|(_, rest)| rest.split(']').next());
        let list = list.context("rust-cuda/rust-toolchain.toml names no components")?;
        Ok(Self {
            revision: value(manifest, "rev").context("rust-cuda/Cargo.toml names no revision")?.into(),
            channel: value(toolchain, "channel")
                .context("rust-cuda/rust-toolchain.toml names no channel")?
                .into(),
            components: list.split('"').skip(1).step_by(2).map(str::to_owned).collect(),
        })
    }
}

/// Where things may be on a machine.
pub(super) struct Machine {
    /// rustup's folder.
    rustup: PathBuf,
    /// The `llvm-config` to ask.
    llvm_config: OsString,
    /// Roots of CUDA toolkits.
    cuda: Vec<PathBuf>,
}

impl Machine {
    pub(super) fn of_user() -> Self {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let home = set("HOME").map(PathBuf::from).unwrap_or_default();
        // Those that rust-cuda itself goes by.
        let named = ["CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR"].into_iter().filter_map(set);
        let usual = ["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"].into_iter().map(OsString::from);
        Self {
            rustup: set("RUSTUP_HOME").map_or_else(|| home.join(".rustup"), PathBuf::from),
            llvm_config: set("LLVM_CONFIG").unwrap_or_else(|| "llvm-config".into()),
            cuda: named.chain(usual).map(PathBuf::from).collect(),
        }
    }
}

/// Everything that the code generator needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Toolchain {
    /// The nightly's name.
    pub(super) channel: String,
    /// The library.
    pub(super) libnvvm: PathBuf,
}

/// One thing that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// The nightly itself.
    Nightly { channel: String, components: Vec<String> },
    /// Parts of the nightly.
    Components { channel: String, components: Vec<String> },
    /// LLVM of that old version.
    Llvm { asked: String, found: String },
    /// CUDA's compiler library.
    LibNvvm { searched: Vec<PathBuf> },
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nightly { channel, components } => write!(
                f,
                "Rust {channel}: rustup toolchain install {channel} --profile minimal --component {}",
                components.join(",")
            ),
            Self::Components { channel, components } => write!(
                f,
                "components of {channel}: rustup component add --toolchain {channel} {}",
                components.join(" ")
            ),
            Self::Llvm { asked, found } => write!(
                f,
                "LLVM 7 (`{asked} --version` {found}): build or install it, and name its llvm-config in LLVM_CONFIG"
            ),
            Self::LibNvvm { searched } => {
                let searched: Vec<_> = searched.iter().map(|root| root.display().to_string()).collect();
                write!(
                    f,
                    "libNVVM of CUDA 12 or newer (no nvvm/lib64/libnvvm.so in {}): install the CUDA toolkit, or name \
                     its folder in CUDA_PATH",
                    searched.join(", ")
                )
            }
        }
    }
}

/// What rust-cuda's code generator needs and this machine does not have. Nothing was tried to get it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`--codegen nvvm` needs rust-cuda's code generator, and this machine lacks for it:{}\n\
     and git access to its public repository, if cargo has not fetched it yet. The kernels are the same without it: leave \
     `--codegen` out for rustc's own back end; docs/rust-cuda.md compares the two",
    lacks.iter().map(|lack| format!("\n  {lack}")).collect::<String>()
)]
pub(crate) struct MissingToolchain {
    /// One or more.
    pub(crate) lacks: Vec<Lack>,
}

impl Toolchain {
    /// Looks for all of it, and names all that is not there.
    pub(super) fn find(machine: &Machine, pin: &Pin) -> Result<Self, MissingToolchain> {
        let libnvvm =
            machine.cuda.iter().map(|root| root.join("nvvm/lib64/libnvvm.so")).find(|file| file.is_file());
        let mut lacks: Vec<_> = nightly(&machine.rustup, pin).into_iter().chain(llvm(machine)).collect();
        let Some(libnvvm) = libnvvm else {
            lacks.push(Lack::LibNvvm { searched: machine.cuda.clone() });
            return Err(MissingToolchain { lacks });
        };
        if lacks.is_empty() {
            return Ok(Self { channel: pin.channel.clone(), libnvvm });
        }
        Err(MissingToolchain { lacks })
    }
}

fn nightly(rustup: &Path, pin: &Pin) -> Option<Lack> {
    let channel = pin.channel.clone();
    let toolchains = rustup.join("toolchains").read_dir().into_iter().flatten().flatten();
    let of_channel = |name: &str| name.strip_prefix(&channel).is_some_and(|rest| rest.starts_with('-'));
    let Some(toolchain) = toolchains
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|name| of_channel(&name.to_string_lossy())))
    else {
        return Some(Lack::Nightly { channel, components: pin.components.clone() });
    };
    // A line for each, with the host's name behind most.
    let installed = std::fs::read_to_string(toolchain.join("lib/rustlib/components")).unwrap_or_default();
    let there = |component: &str| {
        let component = component.trim_end_matches("-preview");
        installed.lines().any(|line| line.starts_with(component))
    };
    let components: Vec<_> = pin.components.iter().filter(|name| !there(name)).cloned().collect();
    (!components.is_empty()).then_some(Lack::Components { channel, components })
}

fn llvm(machine: &Machine) -> Option<Lack> {
    let asked = machine.llvm_config.to_string_lossy().into_owned();
    let found = match Command::new(&machine.llvm_config).arg("--version").output() {
        Ok(output) => {
            let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if version.starts_with("7.") {
                return None;
            }
            format!("prints `{version}`")
        }
        Err(error) => format!("does not run: {error}"),
    };
    Some(Lack::Llvm { asked, found })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::paths;

    fn pin() -> Pin {
        Pin::read(&paths::root().join(super::super::FOLDER)).unwrap()
    }

    fn machine(root: &Path) -> Machine {
        Machine {
            rustup: root.join("rustup"),
            llvm_config: root.join("llvm-config").into(),
            cuda: vec![root.join("cuda")],
        }
    }

    #[test]
    fn the_pin_is_read() {
        let pin = pin();
        assert_eq!(pin.revision.len(), 40);
        assert!(pin.channel.starts_with("nightly-20"), "{}", pin.channel);
        for component in ["rust-src", "rustc-dev", "llvm-tools-preview"] {
            assert!(pin.components.iter().any(|name| name == component), "{component}");
        }
        assert!(Pin::parse("", "channel = \"nightly\"").is_err());
    }

    #[test]
    fn an_empty_machine_lacks_everything_and_says_how_to_get_it() {
        let dir = tempfile::tempdir().unwrap();
        let pin = pin();
        let error = Toolchain::find(&machine(dir.path()), &pin).unwrap_err();
        assert!(matches!(error.lacks[..], [Lack::Nightly { .. }, Lack::Llvm { .. }, Lack::LibNvvm { .. }]));
        let text = error.to_string();
        let install = format!("rustup toolchain install {} --profile minimal --component", pin.channel);
        for part in [&*install, "rustc-dev", "LLVM_CONFIG", "LLVM 7", "libnvvm.so", "CUDA_PATH", "git access"]
        {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_there_is_not_asked_for() {
        use std::os::unix::fs::PermissionsExt as _;

        let dir = tempfile::tempdir().unwrap();
        let (machine, pin) = (machine(dir.path()), pin());
        let rustlib = dir
            .path()
            .join(format!("rustup/toolchains/{}-x86_64-unknown-linux-gnu/lib/rustlib", pin.channel));
        fs::create_dir_all(&rustlib).unwrap();
        fs::write(rustlib.join("components"), "rust-src\nrustfmt-preview-x86_64-unknown-linux-gnu\n")
            .unwrap();
        fs::create_dir_all(dir.path().join("cuda/nvvm/lib64")).unwrap();
        fs::write(dir.path().join("cuda/nvvm/lib64/libnvvm.so"), "").unwrap();
        let llvm = |version: &str| {
            fs::write(dir.path().join("llvm-config"), format!("#!/bin/sh\necho {version}\n")).unwrap();
            fs::set_permissions(dir.path().join("llvm-config"), fs::Permissions::from_mode(0o755)).unwrap();
        };

        llvm("18.1.8");
        let lacks = Toolchain::find(&machine, &pin).unwrap_err().lacks;
        let [Lack::Components { components, .. }, Lack::Llvm { found, .. }] = &lacks[..] else {
            panic!("{lacks:?}")
        };
        assert!(components.contains(&"rustc-dev".into()) && !components.contains(&"rust-src".into()));
        assert_eq!(found, "prints `18.1.8`");

        llvm("7.1.0");
        let all: String =
            pin.components.iter().map(|name| format!("{name}-x86_64-unknown-linux-gnu\n")).collect();
        fs::write(rustlib.join("components"), all).unwrap();
        let found = Toolchain::find(&machine, &pin).unwrap();
        assert_eq!(found.channel, pin.channel);
        assert!(found.libnvvm.ends_with("cuda/nvvm/lib64/libnvvm.so"));
    }
}
