//! Each text that people see, once.

use std::{io, time::Duration};

use reflector::{Error, ErrorKind, InvalidObject, InvalidObjectCause, Verb, format_error};

fn json_error() -> serde_json::Error {
    serde_json::from_str::<u8>(r#""x""#).expect_err("not a number")
}

fn errors() -> Vec<ErrorKind> {
    let refused = io::Error::other("connection refused");
    vec![
        ErrorKind::Connection(Box::new(kube::Error::Service(refused.into()))),
        ErrorKind::Status {
            code: 403,
            reason: "Forbidden".to_owned(),
            message: "pods is forbidden".to_owned(),
            version_too_large: false,
        },
        ErrorKind::Timeout(Duration::from_secs(30)),
        ErrorKind::BodyTooLarge { limit: 64 << 20 },
        ErrorKind::NotAList(json_error()),
        ErrorKind::WentBack {
            from: "12".to_owned(),
            to: "7".to_owned(),
        },
        ErrorKind::InvalidRequest(
            http::Request::get("/a b")
                .body(())
                .expect_err("a space in a URI"),
        ),
    ]
}

fn invalid(namespace: Option<&str>, name: Option<&str>, cause: InvalidObjectCause) -> String {
    let object = InvalidObject {
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
        uid: None,
        deleted: false,
        cause,
    };
    format_error(&object)
}

#[test]
fn messages() {
    let mut texts: Vec<_> = errors()
        .into_iter()
        .map(|kind| {
            let error = Error {
                verb: Verb::Watch,
                path: "/api/v1/pods".into(),
                kind,
            };
            format_error(&error)
        })
        .collect();
    texts.push(
        Error {
            verb: Verb::List,
            path: "/api/v1/pods".into(),
            kind: ErrorKind::Timeout(Duration::from_secs(30)),
        }
        .to_string(),
    );
    let limit = 4 << 20;
    texts.push(invalid(
        Some("default"),
        Some("web"),
        InvalidObjectCause::Json {
            field: "spec.replicas".to_owned(),
            error: json_error(),
        },
    ));
    texts.push(invalid(
        None,
        Some("node-1"),
        InvalidObjectCause::TooLarge { limit },
    ));
    texts.push(invalid(
        None,
        None,
        InvalidObjectCause::LineTooLong { limit },
    ));
    insta::assert_snapshot!(texts.join("\n"));
}
