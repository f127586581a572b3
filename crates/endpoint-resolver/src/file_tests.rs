//! Files of other programs, damaged files, and our own.

use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

use super::*;

fn set() -> SetName {
    SetName::new("shop", "web").unwrap()
}

/// As the Python client writes it, too.
const JSON: &str = r#"{"format":1,"set":"shop/web","version":7,"confirmedAt":"2026-01-02T03:04:05Z","endpoints":[{"cluster":"eu","pod":"web-1","addresses":["10.0.0.1","fd00::1"],"ports":[{"name":"http","number":8080}],"ready":true,"serving":true,"terminating":false,"zone":"eu-1","node":"n1","labels":{"version":"2"}}]}"#;

fn with_checksum(json: &str) -> Vec<u8> {
    format!("sha256:{}\n{json}", digest(json.as_bytes())).into_bytes()
}

#[test]
fn d3_the_checksum_is_sha_256() {
    let of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(digest(b"abc"), of_abc);
}

#[test]
fn d3_a_file_has_one_documented_form() {
    let saved = Saved::decode(&set(), &with_checksum(JSON)).unwrap();
    assert_eq!((saved.version, saved.endpoints.len()), (7, 1));
    assert_eq!(
        saved.endpoints[0].authority("http").as_deref(),
        Some("10.0.0.1:8080")
    );
    let confirmed_at = saved.confirmed_at + jiff::SignedDuration::from_millis(900);
    let again = Saved::new(&set(), (saved.version, &saved.endpoints), confirmed_at).encode();
    assert_eq!(
        String::from_utf8(again).unwrap().into_bytes(),
        with_checksum(JSON)
    );
}

#[test]
fn d3_a_file_that_was_cut_off_is_not_used() {
    let content = with_checksum(JSON);
    for length in 0..content.len() {
        let decoded = Saved::decode(&set(), &content[..length]);
        assert!(decoded.is_err(), "cut off at {length}");
    }
}

#[test]
fn d3_a_file_with_a_wrong_byte_is_not_used() {
    let content = with_checksum(JSON);
    for position in 0..content.len() {
        for bit in 0..8 {
            let mut damaged = content.clone();
            damaged[position] ^= 1 << bit;
            let decoded = Saved::decode(&set(), &damaged);
            assert!(decoded.is_err(), "bit {bit} of byte {position}");
        }
    }
}

#[rstest]
#[case::other_format(JSON.replace("\"format\":1", "\"format\":2"), "it has the format 2, which this version does not know")]
#[case::other_format_of_other_form(json!({"format": 3}).to_string(), "it has the format 3, which this version does not know")]
#[case::other_set(JSON.replace("shop/web", "shop/db"), "it is of the set shop/db")]
#[case::no_json("text".to_owned(), "its content is not as expected: expected ident at line 1 column 2")]
fn d3_a_foreign_file_is_not_used(#[case] json: String, #[case] error: &str) {
    let decoded = Saved::decode(&set(), &with_checksum(&json));
    assert_eq!(decoded.unwrap_err().to_string(), error);
}

#[rstest]
#[case::empty(b"".as_slice())]
#[case::json_alone(JSON.as_bytes())]
#[case::upper_case_digits(
    b"sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855\n"
)]
fn d3_a_file_without_its_checksum_is_not_used(#[case] content: &[u8]) {
    assert!(Saved::decode(&set(), content).is_err());
}

proptest! {
    #[test]
    fn d3_files_say_what_was_written(
        version in any::<u64>(),
        second in 0..4_000_000_000_i64,
        texts in prop::collection::vec(any::<String>(), 0..6),
        (ready, number) in (any::<bool>(), 1..=u16::MAX),
    ) {
        let endpoints: Vec<_> = texts.iter().map(|text| Endpoint {
            cluster: "eu".to_owned(),
            pod: text.clone(),
            addresses: vec![text.clone()],
            ports: vec![crate::endpoint::Port { name: text.clone(), number }],
            ready,
            serving: !ready,
            terminating: ready,
            zone: text.clone(),
            node: String::new(),
            labels: [(text.clone(), text.clone())].into(),
        }).collect();
        let confirmed_at = Timestamp::from_second(second).unwrap();
        let saved = Saved::new(&set(), (version, endpoints), confirmed_at);
        prop_assert_eq!(Saved::decode(&set(), &saved.encode()).unwrap(), saved);
    }
}
