//! Files of a directory: their names, owners, and what is wrong with them.

use std::{collections::BTreeMap, fs::File, os::unix::fs::PermissionsExt, sync::Arc};

use rstest::rstest;

use super::*;
use crate::{kept::Mark, pod::Pod, set::SetKey};

const NAMESPACES: usize = 100;

/// A member with `count` pods, of sets of 100 pods each, in the order of their names.
fn member(name: &str, count: usize) -> KeptMember {
    let cluster: Arc<str> = name.into();
    let sets = count.div_ceil(100);
    let mut namespaces = BTreeMap::<String, Vec<Arc<Pod>>>::new();
    for set in 0..sets {
        let app = [("app".to_owned(), format!("set-{set}"))];
        let hash = [("pod-template-hash".to_owned(), "7f9c5d".to_owned())];
        let labels = Arc::new(app.into_iter().chain(hash).collect());
        let ports = Arc::new(BTreeMap::from([("http".to_owned(), 8080)]));
        let pods = (0..count.min(100)).map(|pod| Pod {
            name: format!("set-{set:05}-7f9c5d-{pod:05}").into(),
            cluster: Arc::clone(&cluster),
            node: None,
            labels: Arc::clone(&labels),
            ports: Arc::clone(&ports),
            v4: Some(u32::try_from(100 * set + pod).unwrap().into()),
            v6: None,
            is_ready: true,
            is_terminating: false,
        });
        let namespace = format!("n{:02}", set % NAMESPACES);
        let known = namespaces.entry(namespace).or_default();
        known.extend(pods.map(Arc::new));
    }
    let pods = namespaces.into_iter();
    KeptMember {
        name: cluster,
        mark: Mark::default(),
        pods: pods.map(|(name, pods)| (name.into(), pods)).collect(),
        services: None,
    }
}

/// A host with `count` sets, which select by the label `app`.
fn host(count: usize) -> KeptHost {
    let set = |set: usize| {
        let spec = serde_json::json!({
            "source": { "selector": { "matchLabels": { "app": format!("set-{set}") } } },
            "ports": [{ "name": "http", "port": "http" }],
        });
        let key = SetKey::new(format!("n{:02}", set % NAMESPACES), format!("set-{set}"));
        (key, Arc::new(serde_json::from_value(spec).unwrap()))
    };
    KeptHost {
        mark: Mark::default(),
        sets: (0..count).map(set).collect(),
        sources: Vec::new(),
        members: Some(vec!["eu".into()]),
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A directory that does not exist yet, in one that is removed in the end.
fn directory() -> (tempfile::TempDir, SnapshotDirectory) {
    let parent = tempfile::tempdir().unwrap();
    let directory = SnapshotDirectory::new(parent.path().join("a/b"));
    (parent, directory)
}

#[rstest]
#[case::plain("eu-1.example", "member-eu-1.example.snapshot")]
#[case::other_letters("Eu/../é", "member-%45u%2F..%2F%C3%A9.snapshot")]
#[case::none("", "member-.snapshot")]
#[case::percent("%45", "member-%2545.snapshot")]
fn d3_names_of_members_are_safe_file_names(#[case] member: &str, #[case] expected: &str) {
    assert_eq!(member_file(member), expected);
    assert!(is_member_file(expected));
}

#[test]
fn d3_long_names_of_members_differ_in_their_files() {
    let names = ["x".repeat(300), "x".repeat(301), "x".repeat(200)];
    let files = names.map(|name| member_file(&name));
    assert!(files.iter().all(|file| file.len() < 256), "{files:?}");
    assert!(files[0] != files[1] && files[1] != files[2]);
}

#[test]
fn d3_directory_and_files_are_only_for_their_owner() {
    let (_parent, directory) = directory();
    assert_eq!(directory.load().members.len(), 0, "it does not exist yet");
    directory.prepare().unwrap();
    let file = directory.0.join("member-eu.snapshot");
    // What an earlier process left.
    fs::write(file.with_file_name("member-eu.snapshot.tmp"), "x").unwrap();
    directory.write_member(&member("eu", 3), 1).unwrap();
    assert_eq!((mode(&directory.0), mode(&file)), (0o700, 0o600));
    assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 1);
    fs::set_permissions(&directory.0, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(directory.load().members.len(), 1);
    assert_eq!(mode(&directory.0), 0o700);
}

#[test]
fn d3_files_that_are_no_snapshots_are_ignored_and_the_others_read() {
    let (_parent, directory) = directory();
    directory.prepare().unwrap();
    directory.write_host(&host(2), 5).unwrap();
    for name in ["eu", "us", "asia"] {
        directory.write_member(&member(name, 3), 9).unwrap();
    }
    let path = |name: &str| directory.0.join(member_file(name));
    let whole = fs::read(path("us")).unwrap();
    fs::write(path("us"), &whole[..whole.len() - 1]).unwrap();
    fs::copy(path("eu"), path("copy")).unwrap();
    fs::copy(directory.0.join(HOST), path("host")).unwrap();
    fs::write(path("foreign"), "fedrs-discovery-snapshot 2 ...").unwrap();
    let large = File::create(path("large")).unwrap();
    large.set_len(1 << 40).unwrap();
    fs::create_dir(path("directory")).unwrap();
    let loaded = directory.load();
    let names = loaded.members.iter().map(|member| &*member.name);
    assert_eq!(names.collect::<Vec<_>>(), ["asia", "eu"]);
    assert_eq!((loaded.host.unwrap().sets.len(), loaded.version), (2, 9));
}

#[test]
fn d3_a_failure_names_the_file_and_leaves_the_old_one() {
    let (_parent, directory) = directory();
    let error = directory.write_host(&host(1), 1).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("a/b/host.snapshot: failed to create it"),
        "{error}"
    );
    directory.prepare().unwrap();
    directory.write_host(&host(1), 1).unwrap();
    fs::create_dir_all(directory.0.join("host.snapshot.tmp/x")).unwrap();
    directory.write_host(&host(2), 2).unwrap_err();
    assert_eq!(directory.load().host.unwrap().sets.len(), 1);
}
