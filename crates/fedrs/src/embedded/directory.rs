//! The directory of the kubeconfigs of embedded clusters: `host.yaml` and `members/NAME.yaml`.
//!
//! A run replaces the files that an earlier run wrote, and never touches a file that fedrs did not write. A lock, which ends
//! with the process, keeps two runs from sharing a directory and distinguishes a run in progress from one that crashed.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};

/// The first line of every kubeconfig that fedrs writes here: a run may replace files that begin with it.
const HEADER: &str =
    "# Written by fedrs for an embedded cluster; the next run in this directory replaces it.";
/// Locked while a run uses the directory.
const LOCK_FILE: &str = ".fedrs-lock";
/// The permission of the group and of all others to write.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// The extensions of files that the controller reads as kubeconfigs of members.
const KUBECONFIG_EXTENSIONS: [&str; 3] = ["yaml", "yml", "kubeconfig"];

/// A directory in which this process alone writes kubeconfigs.
#[derive(Debug)]
pub(crate) struct KubeconfigDirectory {
    path: PathBuf,
    /// Locked until it is dropped.
    _lock: File,
}

impl KubeconfigDirectory {
    /// Locks the directory `path`, creates it if needed, and removes the kubeconfigs of an earlier run.
    pub(crate) fn claim(path: &Path) -> anyhow::Result<Self> {
        // Without a slash at the end, which would follow a link.
        let path: &Path = &path.components().collect::<PathBuf>();
        let shown = path.display();
        let members = path.join("members");
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        for directory in [path, &members] {
            private.create(directory).with_context(|| {
                format!("failed to create the directory {}", directory.display())
            })?;
            check_private(directory)?;
        }
        let lock = lock(&path.join(LOCK_FILE))
            .with_context(|| format!("failed to lock the directory {shown}"))?;

        let mut left_behind = Vec::new();
        for file in [vec![path.join("host.yaml")], kubeconfigs(&members)?].concat() {
            match written_by_fedrs(&file) {
                Ok(true) => left_behind.push(file),
                Ok(false) => bail!(
                    "{} was not written by fedrs: move it, or set another directory with --dir",
                    file.display()
                ),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("failed to read {}", file.display()));
                }
            }
        }
        for file in left_behind {
            fs::remove_file(&file)
                .with_context(|| format!("failed to replace {}", file.display()))?;
        }
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// The path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The host's kubeconfig.
    pub(crate) fn host_file(&self) -> PathBuf {
        self.path.join("host.yaml")
    }

    /// The directory of the members' kubeconfigs.
    pub(crate) fn members(&self) -> PathBuf {
        self.path.join("members")
    }

    /// The kubeconfig of a member.
    pub(crate) fn member_file(&self, name: &str) -> PathBuf {
        self.members().join(format!("{name}.yaml"))
    }

    /// Writes the host's kubeconfig.
    pub(crate) fn write_host(&self, kubeconfig: &str) -> anyhow::Result<()> {
        write(&self.host_file(), kubeconfig)
    }

    /// Writes the kubeconfig of the member `name`.
    pub(crate) fn write_member(&self, name: &str, kubeconfig: &str) -> anyhow::Result<()> {
        write(&self.member_file(name), kubeconfig)
    }
}

/// Fails if somebody else may put files into `directory`, or replace it: they would get, or choose, administrators'
/// credentials.
fn check_private(directory: &Path) -> anyhow::Result<()> {
    let shown = directory.display();
    let found = fs::symlink_metadata(directory)
        .with_context(|| format!("failed to read the directory {shown}"))?;
    let problem = if found.is_symlink() {
        "is a symbolic link"
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        "belongs to another user"
    } else if found.mode() & WRITABLE_BY_OTHERS != 0 {
        "is writable by other users"
    } else {
        return Ok(());
    };
    bail!("the directory {shown} {problem}: set another one with --dir")
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
        Err(TryLockError::WouldBlock) => bail!("another `fedrs sim` or `fedrs demo` uses it"),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// The files in `directory` that the controller would read, sorted by name.
fn kubeconfigs(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let read = || -> io::Result<Vec<PathBuf>> {
        fs::read_dir(directory)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect()
    };
    let mut files =
        read().with_context(|| format!("failed to read the directory {}", directory.display()))?;
    files.retain(|file| {
        let extension = file.extension().and_then(std::ffi::OsStr::to_str);
        extension.is_some_and(|extension| KUBECONFIG_EXTENSIONS.contains(&extension))
    });
    files.sort_unstable();
    Ok(files)
}

fn written_by_fedrs(file: &Path) -> io::Result<bool> {
    let mut first = Vec::new();
    BufReader::new(File::open(file)?).read_until(b'\n', &mut first)?;
    Ok(first.trim_ascii_end() == HEADER.as_bytes())
}

/// Writes a file that only its owner can read. It appears complete, because the controller watches the directory.
fn write(file: &Path, kubeconfig: &str) -> anyhow::Result<()> {
    let unfinished = file.with_extension("new");
    let put = || -> io::Result<()> {
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // A new file: an old one would keep its permissions.
        let mut options = OpenOptions::new();
        let mut open = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)?;
        write!(open, "{HEADER}\n{kubeconfig}")?;
        fs::rename(&unfinished, file)
    };
    put().with_context(|| format!("failed to write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn kubeconfigs_are_private_and_replaced_by_the_next_run() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("new/directory");
        let directory = KubeconfigDirectory::claim(&path).unwrap();
        directory.write_host("host: 1\n").unwrap();
        directory.write_member("eu-west", "member: 1\n").unwrap();
        let file = directory.members().join("eu-west.yaml");
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

        drop(directory);
        let directory = KubeconfigDirectory::claim(&path).unwrap();
        assert!(
            !file.exists(),
            "a member of an earlier run is not a member of this run"
        );
        assert!(!directory.host_file().exists());
    }

    #[test]
    fn a_directory_in_use_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let _first = KubeconfigDirectory::claim(temp.path()).unwrap();
        let error = format!("{:#}", KubeconfigDirectory::claim(temp.path()).unwrap_err());
        assert!(
            error.contains("another `fedrs sim` or `fedrs demo` uses it"),
            "{error}"
        );
    }

    #[test]
    fn s10_a_directory_that_others_can_change_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let refusal = |path: &Path| KubeconfigDirectory::claim(path).unwrap_err().to_string();
        let open = temp.path().join("open");
        let set_mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        for (writable, mode) in [("", 0o777), ("", 0o720), ("members", 0o702)] {
            fs::create_dir_all(open.join("members")).unwrap();
            set_mode(&open.join(writable), mode);
            let error = refusal(&open);
            assert!(error.contains("is writable by other users"), "{error}");
            fs::remove_dir_all(&open).unwrap();
        }
        let own = temp.path().join("own");
        fs::create_dir(&own).unwrap();
        set_mode(&own, 0o755);
        for link in ["link", "link/"] {
            let _ = std::os::unix::fs::symlink(&own, temp.path().join("link"));
            let error = refusal(&temp.path().join(link));
            assert!(error.contains("link is a symbolic link"), "{error}");
        }
        std::os::unix::fs::symlink(&own, own.join("members")).unwrap();
        assert!(refusal(&own).contains("members is a symbolic link"));
        let foreign = if rustix::process::geteuid().is_root() {
            let nobody = Some(65_534);
            std::os::unix::fs::chown(&own, nobody, None).unwrap();
            own
        } else {
            PathBuf::from("/")
        };
        assert!(refusal(&foreign).contains("belongs to another user"));
    }

    #[test]
    fn s10_an_old_file_does_not_lend_its_permissions() {
        let temp = tempfile::tempdir().unwrap();
        let directory = KubeconfigDirectory::claim(temp.path()).unwrap();
        let left = temp.path().join("host.new");
        fs::write(&left, "left by a crash").unwrap();
        fs::set_permissions(&left, fs::Permissions::from_mode(0o644)).unwrap();
        directory.write_host("host: 1\n").unwrap();
        let mode = fs::metadata(directory.host_file()).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
    }

    #[test]
    fn files_that_fedrs_did_not_write_are_never_touched() {
        for foreign in [
            "host.yaml",
            "members/production.yaml",
            "members/eu-west.kubeconfig",
        ] {
            let temp = tempfile::tempdir().unwrap();
            drop(
                KubeconfigDirectory::claim(temp.path())
                    .map(|directory| directory.write_member("ours", "a: 1\n")),
            );
            fs::write(temp.path().join(foreign), "apiVersion: v1\n").unwrap();
            let error = KubeconfigDirectory::claim(temp.path())
                .unwrap_err()
                .to_string();
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
                "no file is removed before all are checked"
            );
        }
    }

    #[test]
    fn other_files_of_the_directory_are_nobodys_kubeconfig() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("members")).unwrap();
        fs::write(temp.path().join("members/README.md"), "notes").unwrap();
        assert!(KubeconfigDirectory::claim(temp.path()).is_ok());
    }
}
