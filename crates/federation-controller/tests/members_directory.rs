//! The directory of kubeconfigs: the events of its files, on paused time and real files.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

use std::{fs, time::Duration};

use federation_controller::members::{MemberEvent, directory};
use tempfile::TempDir;
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

struct Watched {
    directory: TempDir,
    events: mpsc::Receiver<MemberEvent>,
    cancel: CancellationToken,
}

impl Watched {
    fn start(files: &[(&str, &str)]) -> Self {
        let directory = TempDir::new().unwrap();
        for (name, content) in files {
            fs::write(directory.path().join(name), content).unwrap();
        }
        let (sender, events) = mpsc::channel(16);
        let cancel = CancellationToken::new();
        tokio::spawn(directory::watch(
            directory.path().to_owned(),
            sender,
            cancel.clone(),
        ));
        Self {
            directory,
            events,
            cancel,
        }
    }

    /// The next event in words; `nothing` if none comes within some looks.
    async fn next(&mut self) -> String {
        match timeout(Duration::from_secs(5), self.events.recv()).await {
            Ok(Some(MemberEvent::Kubeconfig {
                name,
                place,
                kubeconfig,
            })) => {
                let directory = format!("file {}/", self.directory.path().display());
                let file = place.strip_prefix(&directory).unwrap();
                match kubeconfig {
                    Ok(_) => format!("present {name}"),
                    Err(error) => format!("broken {name} in {file}: {error}"),
                }
            }
            Ok(Some(MemberEvent::Gone { name })) => format!("gone {name}"),
            Ok(Some(MemberEvent::Emptied)) => "emptied".to_owned(),
            Ok(Some(MemberEvent::Complete)) => "complete".to_owned(),
            Ok(None) => "ended".to_owned(),
            Err(_) => "nothing".to_owned(),
        }
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.directory.path().join(name), content).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.directory.path().join(name)).unwrap();
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

fn kubeconfig(server: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n\
         users: [{{name: u, user: {{token: t}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
    )
}

#[tokio::test(start_paused = true)]
async fn f36_files_added_changed_and_removed_take_effect() {
    let a = kubeconfig("http://127.0.0.1:1");
    let mut watched = Watched::start(&[
        ("a.yaml", &a),
        ("README.md", "not a member"),
        (".b.yaml", &a),
    ]);
    assert_eq!(watched.next().await, "present a");
    assert_eq!(watched.next().await, "complete");
    assert_eq!(
        watched.next().await,
        "nothing",
        "an unchanged file causes no event"
    );
    watched.write("b.kubeconfig", &a);
    assert_eq!(watched.next().await, "present b");
    watched.write("a.yaml", &kubeconfig("http://127.0.0.1:2"));
    assert_eq!(watched.next().await, "present a");
    watched.remove("b.kubeconfig");
    assert_eq!(watched.next().await, "gone b");
}

#[tokio::test(start_paused = true)]
async fn a_broken_file_is_reported_by_name_without_its_content_and_affects_no_other() {
    let good = kubeconfig("http://127.0.0.1:1");
    let broken = "users: [{name: u, user: {token: s3cret]";
    let mut watched = Watched::start(&[
        ("a.yaml", broken),
        ("Bad_Name.yaml", &good),
        ("c.yaml", &good),
    ]);
    let event = watched.next().await;
    assert!(event.starts_with("broken a in a.yaml: "), "{event}");
    assert!(!event.contains("s3cret"), "{event}");
    assert_eq!(watched.next().await, "present c");
    assert_eq!(watched.next().await, "complete");
    watched.write("a.yaml", &good);
    assert_eq!(watched.next().await, "present a");
}

#[tokio::test(start_paused = true)]
async fn f33_an_emptied_or_missing_folder_loses_no_member() {
    let a = kubeconfig("http://127.0.0.1:1");
    let mut watched = Watched::start(&[("a.yaml", &a)]);
    assert_eq!(watched.next().await, "present a");
    assert_eq!(watched.next().await, "complete");
    watched.remove("a.yaml");
    assert_eq!(watched.next().await, "emptied");
    assert_eq!(watched.next().await, "nothing");
    watched.write("a.yaml", &a);
    assert_eq!(watched.next().await, "present a", "also if it is as it was");
    watched.remove("a.yaml");
    assert_eq!(watched.next().await, "emptied");
    watched.write("b.yaml", &a);
    assert_eq!(watched.next().await, "present b");
    assert_eq!(watched.next().await, "gone a");
    watched.remove("b.yaml");
    assert_eq!(watched.next().await, "emptied");
    fs::remove_dir(watched.directory.path()).unwrap();
    assert_eq!(watched.next().await, "nothing");
}
