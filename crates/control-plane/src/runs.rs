//! The runs of this user: one file per run, so that the next run can end the processes that a crashed one left.
//!
//! A run of a test ends with its owner, this process; one that a person started (`up`) ends with `down`. The processes
//! of a run are those that execute one of our programs in a directory below the run's.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::{Error, Program, Result, paths, process::Identity, programs::COMPONENTS, with_path};

/// The file of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    directory: PathBuf,
    /// The process with which the run ends.
    owner: Option<Identity>,
    /// The number of its processes. 0 until all have started.
    processes: usize,
}

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunState {
    /// Its directory.
    pub directory: PathBuf,
    /// Its running processes: `CLUSTER/PROGRAM`.
    pub processes: Vec<String>,
    /// How many processes it should have. 0 until all have started.
    pub expected: usize,
}

impl RunState {
    /// Whether all its processes run.
    pub fn is_whole(&self) -> bool {
        self.expected > 0 && self.processes.len() == self.expected
    }
}

/// The runs of this user.
#[derive(Clone, Debug)]
pub struct RunRegistry {
    directory: PathBuf,
}

impl RunRegistry {
    /// The registry of this user, in the cache directory.
    pub fn of_user() -> Result<Self> {
        Self::open(&paths::cache()?)
    }

    /// The registry in `cache`.
    fn open(cache: &Path) -> Result<Self> {
        let directory = cache.join("control-plane-runs");
        with_path(&directory, fs::create_dir_all(&directory))?;
        Ok(Self { directory })
    }

    /// Ends all runs whose owner has exited. Returns their directories.
    pub fn end_orphans(&self) -> Result<Vec<PathBuf>> {
        let mut ended = Vec::new();
        for entry in self.entries()? {
            if entry.owner.is_some_and(|owner| !owner.is_alive()) {
                self.end(&entry.directory)?;
                // A run with an owner owns its directory. What can't be removed may stay.
                let _ = fs::remove_dir_all(&entry.directory);
                ended.push(entry.directory);
            }
        }
        Ok(ended)
    }

    /// All runs with their running processes.
    pub fn runs(&self) -> Result<Vec<RunState>> {
        let entries = self.entries()?;
        Ok(entries.into_iter().map(Entry::state).collect())
    }

    /// The run in `directory`, if there is one.
    pub fn run(&self, directory: &Path) -> Result<Option<RunState>> {
        let entry = read(&self.file(directory))?;
        Ok(entry.map(Entry::state))
    }

    /// Ends the run in `directory`. Returns whether there was one.
    ///
    /// # Errors
    /// Also if a process doesn't exit: the run stays registered.
    pub fn end(&self, directory: &Path) -> Result<bool> {
        let processes = processes(directory);
        for (name, process) in &processes {
            if !process.kill() {
                return Err(Error::Program {
                    program: name.clone(),
                    message: format!("killed, but still running in {}", directory.display()),
                });
            }
        }
        let file = self.file(directory);
        match fs::remove_file(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(!processes.is_empty()),
            result => with_path(&file, result).map(|()| true),
        }
    }

    /// Registers a run in `directory` with this number of processes.
    pub(crate) fn write(&self, directory: &Path, is_owned: bool, processes: usize) -> Result<()> {
        let entry = Entry {
            directory: directory.to_owned(),
            owner: if is_owned { Identity::own() } else { None },
            processes,
        };
        let text = serde_json::to_string(&entry).expect("an entry is plain data");
        let file = self.file(directory);
        let unfinished = file.with_extension("unfinished");
        with_path(&unfinished, fs::write(&unfinished, text))?;
        with_path(&file, fs::rename(&unfinished, &file))
    }

    fn entries(&self) -> Result<Vec<Entry>> {
        let mut files = Vec::new();
        for file in with_path(&self.directory, fs::read_dir(&self.directory))? {
            files.push(with_path(&self.directory, file)?.path());
        }
        files.sort();
        let json = files.iter().filter(|file| {
            file.extension()
                .is_some_and(|extension| extension == "json")
        });
        json.filter_map(|file| read(file).transpose()).collect()
    }

    fn file(&self, directory: &Path) -> PathBuf {
        let hash = xxh3_64(directory.as_os_str().as_encoded_bytes());
        self.directory.join(format!("{hash:016x}.json"))
    }
}

impl Entry {
    fn state(self) -> RunState {
        let processes = processes(&self.directory).into_iter();
        RunState {
            directory: self.directory,
            processes: processes.map(|(name, _)| name).collect(),
            expected: self.processes,
        }
    }
}

/// The processes that run in `directory`, as `CLUSTER/PROGRAM`.
pub(crate) fn processes(directory: &Path) -> Vec<(String, Identity)> {
    let found = Identity::working_below(directory, &COMPONENTS.map(Program::name));
    let named = found.into_iter().map(|(directory, program, process)| {
        let cluster = directory.file_name().unwrap_or_default().to_string_lossy();
        // Linux adds this to the name of a removed directory.
        let cluster = cluster.trim_end_matches(" (deleted)");
        (format!("{cluster}/{program}"), process)
    });
    named.collect()
}

/// The run of a file. `None` if the file does not exist, or is invalid: then there is nothing to end.
fn read(file: &Path) -> Result<Option<Entry>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(serde_json::from_str(&text).ok()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => with_path(file, Err(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::process::Process;

    /// A process that looks like etcd of a cluster below `directory`.
    fn etcd(directory: &Path) -> Process {
        let cluster = directory.join("clusters/a");
        fs::create_dir_all(&cluster).unwrap();
        let program = cluster.join("etcd");
        fs::copy("/bin/sleep", &program).unwrap();
        let mut command = Command::new(&program);
        command.arg("1000").current_dir(&cluster);
        Process::start(command, &directory.join("log")).unwrap()
    }

    #[test]
    fn only_runs_without_their_owner_are_ended() {
        let cache = tempfile::tempdir().unwrap();
        let registry = RunRegistry::open(cache.path()).unwrap();
        let (owned, kept) = (cache.path().join("owned"), cache.path().join("kept"));
        let (mut mine, mut theirs) = (etcd(&owned), etcd(&kept));
        registry.write(&owned, true, 1).unwrap();
        registry.write(&kept, false, 1).unwrap();
        assert!(
            registry.end_orphans().unwrap().is_empty(),
            "the owner is alive"
        );

        // The owner exits.
        let mut owner = etcd(&cache.path().join("owner"));
        let mut entry = read(&registry.file(&owned)).unwrap().unwrap();
        entry.owner = Some(owner.identity);
        fs::write(
            registry.file(&owned),
            serde_json::to_string(&entry).unwrap(),
        )
        .unwrap();
        owner.kill();
        assert_eq!(
            registry.end_orphans().unwrap(),
            std::slice::from_ref(&owned)
        );
        assert!(mine.exit_status().is_some());
        assert!(!owned.exists());
        let run = registry.run(&kept).unwrap().unwrap();
        assert!(run.is_whole());
        assert_eq!(run.processes, ["a/etcd"]);

        assert!(registry.end(&kept).unwrap());
        assert!(!registry.end(&kept).unwrap(), "the run has ended before");
        assert!(theirs.exit_status().is_some());
        assert!(registry.runs().unwrap().is_empty());
    }
}
