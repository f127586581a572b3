//! The samples in `config/samples`: each is valid, and is laid out as its comment and the document say (F15).

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use rstest::rstest;
use serde::Deserialize;

#[derive(Deserialize)]
struct Answer {
    name: String,
    layout: BTreeMap<String, u64>,
    unplaced: u64,
    reasons: BTreeMap<String, Vec<String>>,
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/samples")
}

fn plan(sample: &str, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fedrs"))
        .args(["plan", "-o", "json", "-f"])
        .arg(directory().join(sample))
        .args(arguments.split_whitespace())
        .output()
        .expect("fedrs runs")
}

#[rstest]
#[case("hello.yaml", "--clusters a,b,c", &[2, 2, 2], 0)]
#[case("scenario-1-even.yaml", "--clusters a,b,c", &[16, 17, 17], 0)]
#[case("scenario-1-even.yaml", "--clusters a,b,c --capacity c=6", &[6, 22, 22], 0)]
#[case("scenario-1-even.yaml", "--clusters a", &[50], 0)]
#[case("scenario-2-two-in-each.yaml", "--clusters a,b,c", &[2, 2, 2], 44)]
#[case("scenario-3-minimums.yaml", "--clusters a,b,c", &[10, 20, 20], 0)]
#[case("scenario-4-limit.yaml", "--clusters a,b,c", &[16, 17, 17], 0)]
#[case("scenario-4-limit.yaml", "--clusters a,c", &[20, 30], 0)]
#[case("scenario-4-limit.yaml", "--clusters a,b,c --capacity b=0", &[0, 20, 30], 0)]
#[case("scenario-4-limit.yaml", "--clusters c", &[20], 30)]
#[case("scenario-5-preferred.yaml", "--clusters a,b,c", &[0, 0, 50], 0)]
#[case("scenario-5-preferred.yaml", "--clusters a,b,c --capacity a=40", &[5, 5, 40], 0)]
#[case("scenario-6-weights.yaml", "--clusters a,b,c", &[12, 12, 24], 0)]
#[case("scenario-7-keep.yaml", "--clusters a,b,c --current a=20", &[15, 15, 20], 0)]
#[case("scenario-7-keep.yaml", "--clusters a,b,c --current a=20 --capacity c=6", &[6, 22, 22], 0)]
#[case("scenario-7-keep.yaml", "--clusters a,b,c --current a=30 --capacity c=6", &[6, 14, 30], 0)]
fn f15_samples_are_laid_out_as_the_document_says(
    #[case] sample: &str,
    #[case] arguments: &str,
    #[case] sorted: &[u64],
    #[case] unplaced: u64,
) {
    let output = plan(sample, arguments);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let answer: Answer = serde_json::from_slice(&output.stdout).expect("prints an answer");
    let mut numbers: Vec<u64> = answer.layout.values().copied().collect();
    numbers.sort_unstable();
    assert_eq!((numbers.as_slice(), answer.unplaced), (sorted, unplaced));
    assert!(!answer.name.is_empty());
    assert_eq!(
        answer.reasons.keys().collect::<Vec<_>>(),
        answer.layout.keys().collect::<Vec<_>>()
    );
}

#[test]
fn f15_no_sample_is_forgotten() {
    let table = include_str!("samples.rs");
    for file in fs::read_dir(directory()).expect("the samples are there") {
        let path = file.expect("is readable").path();
        let text = fs::read_to_string(&path).expect("is text");
        // The test of the commands runs the one that approves a step.
        if !text.contains("\nkind: Federated") {
            continue;
        }
        let name = path.file_name().expect("has a name").display();
        assert!(
            table.contains(&format!("#[case(\"{name}\"")),
            "{name} is not in the table above"
        );
    }
}

#[test]
fn invalid_input_ends_with_2_and_prints_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("frs.yaml");
    let sample =
        fs::read_to_string(self::directory().join("scenario-4-limit.yaml")).expect("is there");
    let broken = sample
        .replace("maxReplicas: 20", "maxReplica: 20")
        .replace("replicas: 50", "replicas: fifty");
    fs::write(&file, broken).expect("can be written");
    let output = plan(file.to_str().expect("is UTF-8"), "--clusters a,b");
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(2), &[][..])
    );
    let messages = String::from_utf8(output.stderr).expect("is UTF-8");
    assert!(
        messages.contains("spec.placement.clusters[c].maxReplica: is not a known field"),
        "{messages}"
    );
    assert!(
        messages.contains("spec.replicas: must be of type integer, not \"fifty\""),
        "{messages}"
    );
}

/// Without a host, a manifest without a namespace is one of "default", as for kubectl.
#[rstest]
#[case("", "default")]
#[case("-n shop", "shop")]
fn l14_a_rollout_is_planned_in_a_namespace(#[case] option: &str, #[case] expected: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_fedrs"))
        .args(["rollout", "plan", "-o", "json", "--clusters", "a,b,c", "-f"])
        .arg(directory().join("hello.yaml"))
        .args(option.split_whitespace())
        .output()
        .expect("fedrs runs");
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(plan["namespace"], expected);
}
