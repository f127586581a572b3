//! `cargo xtask record-demo`: records a run of `fedrs demo` as the animated SVG of the README.
//!
//! ```text
//! fedrs demo in a pseudo-terminal --output with times--> screens --> states of each row --> docs/demo.svg
//! ```

mod screen;
mod svg;
mod terminal;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};
use clap::Args;

/// The size of the terminal. The table of the demo is 80 columns wide.
const COLUMNS: u16 = 106;
const ROWS: u16 = 26;
/// The README must load quickly.
const MAX_BYTES: usize = 300_000;

/// Record `fedrs demo` as an animated SVG
#[derive(Args)]
pub(crate) struct RecordDemo {
    /// The program to run. By default a release build of fedrs
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// The file to write
    #[arg(long, value_name = "FILE", default_value = "docs/demo.svg")]
    output: PathBuf,
}

impl RecordDemo {
    /// Runs the demo in real time and writes the recording.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let program = self.program.map_or_else(build, Ok)?;
        let directory = tempfile::tempdir()?;
        let arguments = ["demo", "--exit", "--dir", "clusters"];
        let mut demo = Command::new(program.canonicalize()?);
        demo.args(arguments).current_dir(&directory);
        let recording = terminal::record(demo, COLUMNS, ROWS)?;
        ensure!(recording.success, "the demo failed");
        let mut screens = screen::screens(&recording.output, COLUMNS, ROWS);
        // The picture must not show a path of this machine.
        let path = format!("{}/", directory.path().display());
        let rows = screens.iter_mut().flat_map(|screen| &mut screen.rows);
        for piece in rows.flatten() {
            piece.text = piece.text.replace(&path, "");
        }
        let picture = svg::animation(&screens, COLUMNS, ROWS, "fedrs demo");
        ensure!(
            picture.len() < MAX_BYTES,
            "the recording has {} bytes, more than {MAX_BYTES}",
            picture.len()
        );
        let output = &self.output;
        fs::write(output, &picture).with_context(|| output.display().to_string())?;
        println!("{}: {} bytes", output.display(), picture.len());
        Ok(())
    }
}

/// Builds fedrs. Returns the path of the program.
fn build() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = Command::new(cargo)
        .args(["build", "--release", "--package", "fedrs"])
        .status()?;
    ensure!(build.success(), "cargo build failed");
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(Path::new(&target).join("release/fedrs"))
}
