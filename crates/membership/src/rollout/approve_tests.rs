use serde_json::{Value, json};

use super::*;

/// A set with the steps canary, which needs no approval, and all, which does and waits for it if `waits`.
fn deployment(waits: bool, approvals: &Value) -> FederatedDeployment {
    let steps = json!([
        { "name": "canary", "clusters": ["eu"] },
        { "name": "all", "clusters": ["*"], "approval": "Before" },
    ]);
    let reason = if waits {
        "WaitingForApproval"
    } else {
        "RollingOut"
    };
    let progressing = json!({
        "type": "Progressing", "status": "True", "reason": reason, "message": "rolling out revision web-2",
        "lastTransitionTime": "2026-11-01T00:00:00Z",
    });
    serde_json::from_value(json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "FederatedDeployment",
        "metadata": { "name": "web", "namespace": "shop", "generation": 4 },
        "spec": {
            "selector": {}, "template": { "spec": {} }, "rollout": { "steps": steps, "approvals": approvals },
        },
        "status": {
            "observedGeneration": 4, "currentRevision": "web-1", "updateRevision": "web-2", "conditions": [progressing],
            "rollout": { "step": "all" },
        },
    }))
    .unwrap()
}

fn approve(
    deployment: &FederatedDeployment,
    step: Option<&str>,
) -> Result<(Option<Value>, Approval), String> {
    let decided = decide("federateddeployment shop/web", deployment, step);
    let (change, approval) = decided.map_err(|error| error.to_string())?;
    let patch = change.map(|change| match change {
        Change::Merge(patch) => patch["spec"]["rollout"]["approvals"].clone(),
        Change::Operations(_) => panic!("{change:?}"),
    });
    Ok((patch, approval))
}

#[test]
fn the_step_that_waits_is_approved_for_the_revision_that_is_rolled_out() {
    let old = json!({ "step": "all", "revision": "web-1" });
    let new = json!({ "step": "all", "revision": "web-2" });
    let approval = |existed| Approval {
        step: "all".to_owned(),
        revision: "web-2".to_owned(),
        existed,
    };
    for (waits, step, before, expected) in [
        (true, None, json!([]), Some(json!([new]))),
        (true, Some("all"), json!([]), Some(json!([new]))),
        // Before it waits.
        (false, Some("all"), json!([old]), Some(json!([old, new]))),
        (true, None, json!([new]), None),
        // Once more.
        (false, None, json!([new]), None),
    ] {
        let existed = expected.is_none();
        let approved = approve(&deployment(waits, &before), step);
        assert_eq!(approved, Ok((expected, approval(existed))), "{before}");
    }
}

#[test]
fn what_can_not_be_approved_is_named() {
    let error = |waits, step| approve(&deployment(waits, &json!([])), step).unwrap_err();
    let set = "federateddeployment shop/web";
    assert_eq!(
        error(false, None),
        format!(
            "{set}: no step waits for an approval: rolling out revision web-2; to approve step all before it waits, name it"
        )
    );
    assert_eq!(
        error(true, Some("canry")),
        format!("{set}: spec.rollout.steps has no step \"canry\"; did you mean \"canary\"?")
    );
    assert_eq!(
        error(true, Some("canary")),
        format!("{set}: spec.rollout.steps[canary].approval is None: the step needs no approval")
    );
    let mut edited = deployment(true, &json!([]));
    edited.metadata.generation = Some(5);
    let expected = "the controller has not observed the latest spec yet";
    assert!(approve(&edited, None).unwrap_err().contains(expected));
    edited.status = None;
    assert!(approve(&edited, None).unwrap_err().contains(expected));
}

#[test]
fn approvals_that_are_not_used_make_room() {
    let full: Vec<_> = (0..MAX_ENTRIES)
        .map(|number| {
            let revision = if number == 0 {
                "web-1".to_owned()
            } else {
                format!("web-old-{number}")
            };
            json!({ "step": "all", "revision": revision })
        })
        .collect();
    let (approvals, _) = approve(&deployment(true, &json!(full)), None).unwrap();
    let approvals = approvals.unwrap();
    let approvals = approvals.as_array().unwrap();
    assert_eq!(approvals.len(), MAX_ENTRIES);
    // The current revision stays.
    assert_eq!(approvals[..2], [full[0].clone(), full[2].clone()]);
}
