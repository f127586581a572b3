//! Which runs there are, and for whom: one file per run, so that the next run can end what a crashed one left behind.
//!
//! A run of a test ends with its owner, this process; one that a person started (`up`) ends when told. The processes
//! of a run are those of our programs that work in a folder below the run's: also one that was started a moment ago.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::{Error, Program, Result, at, places, process::Identity};

/// The programs that clusters are made of.
const PROGRAMS: [Program; 5] = [
    Program::Etcd,
    Program::ApiServer,
    Program::ControllerManager,
    Program::Scheduler,
    Program::Kwok,
];

/// One run as it is written down.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    folder: PathBuf,
    /// The process without which the run has no purpose.
    owner: Option<Identity>,
    /// How many processes it has while nothing is broken. 0 until it is up.
    processes: usize,
}

/// A run, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunState {
    /// Its folder.
    pub folder: PathBuf,
    /// The names of its processes that run: `CLUSTER/PROGRAM`.
    pub processes: Vec<String>,
    /// How many there are while nothing is broken. 0 until it is up.
    pub expected: usize,
}

impl RunState {
    /// Whether it is up and all of it runs.
    pub fn is_whole(&self) -> bool {
        self.expected > 0 && self.processes.len() == self.expected
    }
}

/// The runs of this user.
#[derive(Clone, Debug)]
pub struct Ledger {
    folder: PathBuf,
}

impl Ledger {
    /// The ledger of this user, in the cache.
    pub fn of_user() -> Result<Self> {
        Self::open(&places::cache()?)
    }

    /// The ledger in `cache`.
    fn open(cache: &Path) -> Result<Self> {
        let folder = cache.join("control-plane-runs");
        at(&folder, fs::create_dir_all(&folder))?;
        Ok(Self { folder })
    }

    /// Ends all runs whose owner is gone. Answers their folders.
    pub fn reap(&self) -> Result<Vec<PathBuf>> {
        let mut ended = Vec::new();
        for entry in self.entries()? {
            if entry.owner.is_some_and(|it| !it.is_alive()) {
                self.end(&entry.folder)?;
                // Its folder was its own too; what can't be removed may stay.
                let _ = fs::remove_dir_all(&entry.folder);
                ended.push(entry.folder);
            }
        }
        Ok(ended)
    }

    /// Every run, with what of it is alive.
    pub fn runs(&self) -> Result<Vec<RunState>> {
        let entries = self.entries()?;
        Ok(entries.into_iter().map(Entry::state).collect())
    }

    /// The run in `folder`, if there is one.
    pub fn run(&self, folder: &Path) -> Result<Option<RunState>> {
        let entry = read(&self.file(folder))?;
        Ok(entry.map(Entry::state))
    }

    /// Ends the run in `folder`. Answers whether there was one.
    ///
    /// # Errors
    /// Also if a process doesn't end: the run is still written down then.
    pub fn end(&self, folder: &Path) -> Result<bool> {
        let processes = processes(folder);
        for (name, process) in &processes {
            if !process.kill() {
                return Err(Error::Program {
                    program: name.clone(),
                    message: format!("it was killed and has not ended, in {}", folder.display()),
                });
            }
        }
        let file = self.file(folder);
        match fs::remove_file(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(!processes.is_empty()),
            result => at(&file, result).map(|()| true),
        }
    }

    /// Writes down that there is a run in `folder` with so many processes.
    pub(crate) fn write(&self, folder: &Path, is_owned: bool, processes: usize) -> Result<()> {
        let entry = Entry {
            folder: folder.to_owned(),
            owner: if is_owned { Identity::own() } else { None },
            processes,
        };
        let text = serde_json::to_string(&entry).expect("plain data");
        let file = self.file(folder);
        let unfinished = file.with_extension("unfinished");
        at(&unfinished, fs::write(&unfinished, text))?;
        at(&file, fs::rename(&unfinished, &file))
    }

    fn entries(&self) -> Result<Vec<Entry>> {
        let mut files = Vec::new();
        for file in at(&self.folder, fs::read_dir(&self.folder))? {
            files.push(at(&self.folder, file)?.path());
        }
        files.sort();
        let json = files
            .iter()
            .filter(|it| it.extension().is_some_and(|it| it == "json"));
        json.filter_map(|file| read(file).transpose()).collect()
    }

    fn file(&self, folder: &Path) -> PathBuf {
        let hash = xxh3_64(folder.as_os_str().as_encoded_bytes());
        self.folder.join(format!("{hash:016x}.json"))
    }
}

impl Entry {
    fn state(self) -> RunState {
        let processes = processes(&self.folder).into_iter();
        RunState {
            folder: self.folder,
            processes: processes.map(|(name, _)| name).collect(),
            expected: self.processes,
        }
    }
}

/// The processes that run in `folder`, by `CLUSTER/PROGRAM`.
pub(crate) fn processes(folder: &Path) -> Vec<(String, Identity)> {
    let found = Identity::working_below(folder, &PROGRAMS.map(Program::name));
    let named = found.into_iter().map(|(place, program, it)| {
        let cluster = place.file_name().unwrap_or_default().to_string_lossy();
        // Linux says so of a folder that is removed.
        let cluster = cluster.trim_end_matches(" (deleted)");
        (format!("{cluster}/{program}"), it)
    });
    named.collect()
}

/// One run; none where there is no such file, or none that could be read: nothing of it could be ended.
fn read(file: &Path) -> Result<Option<Entry>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(serde_json::from_str(&text).ok()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => at(file, Err(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::process::Process;

    /// A process that looks like a store of a cluster below `folder`.
    fn store(folder: &Path) -> Process {
        let cluster = folder.join("clusters/a");
        fs::create_dir_all(&cluster).unwrap();
        let program = cluster.join("etcd");
        fs::copy("/bin/sleep", &program).unwrap();
        let mut command = Command::new(&program);
        command.arg("1000").current_dir(&cluster);
        Process::start(command, &folder.join("log")).unwrap()
    }

    #[test]
    fn a_run_whose_owner_is_gone_is_ended_and_others_are_not() {
        let cache = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(cache.path()).unwrap();
        let (owned, kept) = (cache.path().join("owned"), cache.path().join("kept"));
        let (mut mine, mut theirs) = (store(&owned), store(&kept));
        ledger.write(&owned, true, 1).unwrap();
        ledger.write(&kept, false, 1).unwrap();
        assert!(ledger.reap().unwrap().is_empty(), "its owner is alive");

        // The owner is gone.
        let mut owner = store(&cache.path().join("owner"));
        let mut entry = read(&ledger.file(&owned)).unwrap().unwrap();
        entry.owner = Some(owner.identity);
        fs::write(ledger.file(&owned), serde_json::to_string(&entry).unwrap()).unwrap();
        owner.kill();
        assert_eq!(ledger.reap().unwrap(), std::slice::from_ref(&owned));
        assert!(mine.ended().is_some());
        assert!(!owned.exists());
        let run = ledger.run(&kept).unwrap().unwrap();
        assert!(run.is_whole());
        assert_eq!(run.processes, ["a/etcd"]);

        assert!(ledger.end(&kept).unwrap());
        assert!(!ledger.end(&kept).unwrap(), "it was ended before");
        assert!(theirs.ended().is_some());
        assert!(ledger.runs().unwrap().is_empty());
    }
}
