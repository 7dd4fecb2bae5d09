//! `cargo xtask check-without-compiler`: what a user does on a machine without a device compiler, in a place of its own: a
//! program that depends on the packed crates, an empty cache, no toolchains of rustup's, and none of Debian's.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use lacuna_ptx::Cache;
use xshell::{Shell, cmd};

use crate::outcome::Missing;
use crate::{cargo, dist, package, paths, setup};

/// What the user writes.
const PROGRAM: &str = include_str!("without_compiler/program.rs");

/// Where Debian's compiler is looked for, and an empty file put over it.
const DEBIANS: &str = "/usr/bin/rustc";

pub(crate) fn run() -> anyhow::Result<()> {
    let scratch = tempfile::tempdir()?;
    let place = Place::new(scratch.path())?;
    let good = scratch.path().join("good.ptx");
    dist::write_ptx(&good)?;

    let archive = place.cache.root().join(dist::ARCHIVE);
    let start = Instant::now();
    place.fails("no device compiler")?;
    let [good_bytes, mut damaged] = [fs::read(&good)?, fs::read(&good)?];
    damaged.truncate(good_bytes.len() - 1);
    fs::write(&archive, damaged)?;
    place.fails("is damaged")?;
    fs::write(&archive, good_bytes)?;
    let output = place.cargo(&["build", "--quiet"])?;
    ensure!(output.status.success(), "the program does not build:\n{}", text(&output));
    println!("built from the archive: {:.0} s, with all dependencies", start.elapsed().as_secs_f64());

    let program = scratch.path().join("target/debug/program");
    let said = say(Command::new(&program).env_remove("LD_LIBRARY_PATH"))?;
    ensure!(said.contains("simulator: right"), "the program says:\n{said}");
    let driver = place.fake_driver()?;
    let mut child = Command::new(&program);
    let folder = driver.parent().context("a file lies in a folder")?;
    let said = say(child.env("LD_LIBRARY_PATH", folder).env("FAKE_JOURNAL", scratch.path().join("journal")))?;
    ensure!(
        said.contains("left out: transpose_") && said.contains("of transpose\n"),
        "the program says:\n{said}"
    );
    let journal = fs::read_to_string(scratch.path().join("journal"))?;
    ensure!(journal.starts_with("load\nlaunch\n"), "the driver was asked for:\n{journal}");
    println!("it loads SpMM's kernel, and names the feature of one that it lacks");
    Ok(())
}

/// Unpacks our crates as they are published, and gives the lines of a manifest that put them in a registry's place.
fn unpack(shell: &Shell, folder: &Path) -> anyhow::Result<String> {
    fs::create_dir_all(folder)?;
    let (packed, version) = (cargo::target_folder(shell)?.join("package"), env!("CARGO_PKG_VERSION"));
    let mut patches = String::from("[patch.crates-io]\n");
    for (name, _) in package::packed(shell, false)? {
        let from = packed.join(format!("{name}-{version}.crate"));
        cmd!(shell, "tar --extract --gzip --file {from} --directory {folder}").quiet().run()?;
        patches += &format!("{name}.path = {:?}\n", folder.join(format!("{name}-{version}")));
    }
    Ok(patches)
}

/// A machine without a device compiler, as far as builds see.
struct Place {
    folder: PathBuf,
    cache: Cache,
    /// The folder of the host's cargo and rustc.
    toolchain: PathBuf,
}

impl Place {
    fn new(folder: &Path) -> anyhow::Result<Self> {
        let cache = Cache::at(folder.join("cache"));
        setup::cuda_library_path(&cache)?;
        let shell = cargo::shell()?;
        let patches = unpack(&shell, &folder.join("crates"))?;
        let manifest = format!(
            "[package]\nname = \"program\"\nedition = \"2024\"\n[workspace]\n[dependencies.lacuna]\nversion = {:?}\n\
             default-features = false\nfeatures = [\"cuda\", \"spmm\"]\n{patches}",
            env!("CARGO_PKG_VERSION")
        );
        fs::create_dir_all(folder.join("src"))?;
        fs::write(folder.join("Cargo.toml"), manifest)?;
        fs::write(folder.join("src/main.rs"), PROGRAM)?;
        // The versions of the repository, which are at hand.
        fs::copy(paths::root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
        let toolchain = PathBuf::from(cmd!(shell, "rustc --print sysroot").quiet().read()?).join("bin");
        Ok(Self { folder: folder.into(), cache, toolchain })
    }

    /// Runs the host's cargo there.
    fn cargo(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let cargo = self.toolchain.join("cargo");
        let mut command = if Path::new(DEBIANS).exists() {
            let hidden = format!("mount --bind /dev/null {DEBIANS} && exec \"$@\"");
            let mut command = Command::new("unshare");
            command.args(["--mount", "--map-root-user", "sh", "-c", &hidden, "sh"]).arg(&cargo);
            command
        } else {
            Command::new(&cargo)
        };
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            let is_kept = name.starts_with("CARGO_HOME")
                || name.starts_with("CARGO_HTTP")
                || name.starts_with("CARGO_NET");
            if !is_kept && ["CARGO", "RUST", "LACUNA_"].iter().any(|beginning| name.starts_with(beginning)) {
                command.env_remove(&*name);
            }
        }
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env("RUSTC", self.toolchain.join("rustc"))
            .env("RUSTUP_HOME", self.folder.join("no toolchains"))
            .env("LACUNA_CACHE_DIR", self.cache.root())
            .env("CUDA_LIBRARY_PATH", self.cache.cuda_library_path())
            .env("CARGO_TARGET_DIR", self.folder.join("target"));
        command.output().map_err(|error| {
            Missing(format!("needs unshare, of Debian's util-linux, to hide {DEBIANS}: {error}")).into()
        })
    }

    /// The program must not build, and the error say this.
    fn fails(&self, why: &str) -> anyhow::Result<()> {
        let output = self.cargo(&["build", "--quiet"])?;
        let said = text(&output);
        let is_refused = ["unshare:", "mount:"].iter().any(|program| said.contains(program));
        ensure!(!is_refused, Missing(format!("cannot hide {DEBIANS}: {said}")));
        ensure!(!output.status.success(), "the program builds, though it should fail: {why}");
        for part in [why, "cargo xtask dist --ptx"] {
            ensure!(said.contains(part), "the error does not say `{part}`:\n{said}");
        }
        Ok(())
    }

    /// The driver in C of the library's tests.
    fn fake_driver(&self) -> anyhow::Result<PathBuf> {
        let (source, driver) = (
            paths::root().join("crates/lacuna/tests/driver/fake.c"),
            self.folder.join("driver/libcuda.so.1"),
        );
        fs::create_dir_all(self.folder.join("driver"))?;
        say(Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).args([&driver, &source]))?;
        Ok(driver)
    }
}

/// What a program prints; an error where it fails.
fn say(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("{command:?} does not run"))?;
    ensure!(output.status.success(), "{command:?} fails:\n{}", text(&output));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat()
}
