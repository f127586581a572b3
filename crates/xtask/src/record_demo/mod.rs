//! `cargo xtask record-demo`: records a run of `fedrs demo` as the animated SVG of the README.
//!
//! ```text
//! fedrs demo in a pseudo-terminal --output with times--> screens --> docs/demo.svg
//! ```

mod screen;
mod svg;
mod terminal;

use std::{fs, path::Path, process::Command};

use anyhow::{Context, ensure};

use crate::print;

/// The size of the terminal. The table of the demo is 80 columns wide.
const COLUMNS: u16 = 106;
const ROWS: u16 = 26;
/// The README must load quickly.
const MAX_BYTES: usize = 300_000;

/// Runs the demo of a release build in real time and writes the recording.
pub(crate) fn run() -> anyhow::Result<()> {
    let workspace = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).canonicalize()?;
    let manifest = workspace.join("Cargo.toml");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let select = ["--release", "--quiet", "--package", "fedrs"];
    let build = Command::new(&cargo).arg("build").args(select).status()?;
    ensure!(build.success(), "cargo build failed");

    let directory = tempfile::tempdir()?;
    let demo = pty_process::blocking::Command::new(&cargo)
        .arg("run")
        .args(select)
        .arg("--manifest-path")
        .arg(manifest)
        .args(["--", "demo", "--exit", "--dir", "clusters"])
        .current_dir(&directory);
    let recording = terminal::record(demo, COLUMNS, ROWS)?;
    let mut screens = screen::screens(&recording, COLUMNS, ROWS);
    // The picture must not show a path of this machine.
    let path = format!("{}/", directory.path().display());
    let rows = screens.iter_mut().flat_map(|screen| &mut screen.rows);
    for piece in rows.flatten() {
        piece.text = piece.text.replace(&path, "");
    }
    let picture = svg::animation(&screens, COLUMNS, ROWS, "fedrs demo");
    let size = picture.len();
    ensure!(
        size < MAX_BYTES,
        "the recording has {size} bytes, more than {MAX_BYTES}"
    );
    let file = workspace.join("docs/demo.svg");
    fs::write(&file, &picture).with_context(|| format!("failed to write {}", file.display()))?;
    print::line(format_args!("{}: {size} bytes", file.display()));
    Ok(())
}
