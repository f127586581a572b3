//! The folder of kubeconfigs that embedded clusters are reached by: `host.yaml` and `members/NAME.yaml`.
//!
//! What an earlier run left behind is replaced; a file that fedrs did not write is never touched. Two runs can't
//! share a folder: a lock, which ends with the process, tells them apart from a run that crashed.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};

/// The first line of every kubeconfig written here: what has it may be replaced.
const MARK: &str =
    "# Written by fedrs for an embedded cluster; the next run in this folder replaces it.";
/// Locked as long as a run uses the folder.
const LOCK_FILE: &str = ".fedrs-lock";
/// What the controller takes for a member's kubeconfig.
const KUBECONFIG_EXTENSIONS: [&str; 3] = ["yaml", "yml", "kubeconfig"];

/// A folder that this process writes kubeconfigs to, and no other.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Locked until it is dropped.
    _lock: File,
}

impl Folder {
    /// Takes `path`: makes it if needed, and removes what an earlier run wrote.
    pub(crate) fn claim(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let members = path.join("members");
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        private
            .create(&members)
            .with_context(|| format!("can't make the folder {shown}"))?;
        let lock =
            lock(&path.join(LOCK_FILE)).with_context(|| format!("can't use the folder {shown}"))?;

        let mut left_behind = Vec::new();
        for file in [vec![path.join("host.yaml")], kubeconfigs(&members)?].concat() {
            match is_ours(&file) {
                Ok(true) => left_behind.push(file),
                Ok(false) => bail!(
                    "{} was not written by fedrs and would be in the way: move it away, or give another --dir",
                    file.display()
                ),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("can't read {}", file.display()));
                }
            }
        }
        for file in left_behind {
            fs::remove_file(&file).with_context(|| format!("can't replace {}", file.display()))?;
        }
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The host's kubeconfig.
    pub(crate) fn host_file(&self) -> PathBuf {
        self.path.join("host.yaml")
    }

    /// The folder of the members' kubeconfigs.
    pub(crate) fn members(&self) -> PathBuf {
        self.path.join("members")
    }

    /// Writes the host's kubeconfig.
    pub(crate) fn write_host(&self, kubeconfig: &str) -> anyhow::Result<()> {
        write(&self.host_file(), kubeconfig)
    }

    /// Writes the kubeconfig of the member `name`.
    pub(crate) fn write_member(&self, name: &str, kubeconfig: &str) -> anyhow::Result<()> {
        write(&self.members().join(format!("{name}.yaml")), kubeconfig)
    }
}

fn lock(path: &Path) -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!("another `fedrs sim` or `fedrs demo` is using it"),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// The files of `folder` that the controller would read, by name.
fn kubeconfigs(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let read = || -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect()
    };
    let mut files =
        read().with_context(|| format!("can't read the folder {}", folder.display()))?;
    files.retain(|file| {
        let extension = file.extension().and_then(|it| it.to_str());
        extension.is_some_and(|it| KUBECONFIG_EXTENSIONS.contains(&it))
    });
    files.sort_unstable();
    Ok(files)
}

fn is_ours(file: &Path) -> io::Result<bool> {
    let mut first = Vec::new();
    BufReader::new(File::open(file)?).read_until(b'\n', &mut first)?;
    Ok(first.trim_ascii_end() == MARK.as_bytes())
}

/// Writes a file that only its owner can read and that appears complete: the controller watches the folder.
fn write(file: &Path, kubeconfig: &str) -> anyhow::Result<()> {
    let unfinished = file.with_extension("new");
    let put = || -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut open = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unfinished)?;
        write!(open, "{MARK}\n{kubeconfig}")?;
        fs::rename(&unfinished, file)
    };
    put().with_context(|| format!("can't write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn kubeconfigs_are_private_and_replaced_by_the_next_run() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("new/folder");
        let folder = Folder::claim(&path).unwrap();
        folder.write_host("host: 1\n").unwrap();
        folder.write_member("eu-west", "member: 1\n").unwrap();
        let file = folder.members().join("eu-west.yaml");
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert!(
            fs::read_to_string(&file)
                .unwrap()
                .ends_with("\nmember: 1\n")
        );

        drop(folder);
        let folder = Folder::claim(&path).unwrap();
        assert!(
            !file.exists(),
            "a member of an earlier run is none of this one"
        );
        assert!(!folder.host_file().exists());
    }

    #[test]
    fn a_folder_in_use_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let _first = Folder::claim(temp.path()).unwrap();
        let error = format!("{:#}", Folder::claim(temp.path()).unwrap_err());
        assert!(
            error.contains("another `fedrs sim` or `fedrs demo` is using it"),
            "{error}"
        );
    }

    #[test]
    fn what_fedrs_did_not_write_is_never_touched() {
        for foreign in [
            "host.yaml",
            "members/production.yaml",
            "members/eu-west.kubeconfig",
        ] {
            let temp = tempfile::tempdir().unwrap();
            drop(Folder::claim(temp.path()).map(|folder| folder.write_member("ours", "a: 1\n")));
            fs::write(temp.path().join(foreign), "apiVersion: v1\n").unwrap();
            let error = Folder::claim(temp.path()).unwrap_err().to_string();
            assert!(
                error.contains(foreign) && error.contains("not written by fedrs"),
                "{error}"
            );
            assert_eq!(
                fs::read_to_string(temp.path().join(foreign)).unwrap(),
                "apiVersion: v1\n"
            );
            assert!(
                temp.path().join("members/ours.yaml").exists(),
                "nothing is removed before all is checked"
            );
        }
    }

    #[test]
    fn other_files_of_the_folder_are_nobodys_kubeconfig() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("members")).unwrap();
        fs::write(temp.path().join("members/README.md"), "notes").unwrap();
        assert!(Folder::claim(temp.path()).is_ok());
    }
}
