//! Sessions of kubectl users: `tests/recorded/sessions` has the transcripts.

use fedrs_tests::test_environment::TestEnvironment;
use serde_json::json;

/// A set as a user writes it.
const WEB: &str = "\
apiVersion: fedrs.dev/v1alpha1
kind: FederatedReplicaSet
metadata:
  name: web
spec:
  replicas: 6
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: main
        image: registry.example/main:1
  placement:
    clusters:
      '*': {weight: 1}
";

/// Events are written after the status.
async fn wait_for_events(env: &TestEnvironment, count: usize) {
    env.wait_until("the events are written", 10, async |env| {
        env.event_reasons("web").await.len() >= count
    })
    .await;
}

pub(crate) async fn f6_a_set_from_its_creation_to_its_deletion(env: &mut TestEnvironment) {
    let mut session = env.kubectl();
    let applied = session.run("apply -f -", WEB).await;
    assert!(applied.succeeded, "{}", applied.output);
    session
        .must("wait --for=condition=Ready frs/web --timeout=60s")
        .await;
    assert_eq!(env.available("web").await, 6, "ready means available");
    session
        .must("wait --for=jsonpath={.status.availableReplicas}=6 frs/web --timeout=60s")
        .await;
    session.must("get frs").await;
    session.must("get frs -o wide").await;
    session.must("scale frs/web --replicas=9").await;
    // The condition of the generation before does not count.
    session
        .must("wait --for=condition=Ready frs/web --timeout=60s")
        .await;
    assert_eq!(env.available("web").await, 9, "ready means available");
    session.must("get frs/web").await;
    session.must("get memberclusters").await;
    session.must("get memberclusters -o wide").await;
    wait_for_events(env, 2).await;
    session.must("describe frs web").await;
    session.must("delete frs web --wait --timeout=60s").await;
    session.must("get frs").await;
    session.assert_recorded("creation-to-deletion");
}

pub(crate) async fn f2_kubectl_explains_the_placement(env: &mut TestEnvironment) {
    let mut session = env.kubectl();
    session.must("explain frs.spec.placement").await;
    session.assert_recorded("explain");
}

pub(crate) async fn f6_describe_says_why_replicas_are_where_they_are(env: &mut TestEnvironment) {
    let mut session = env.kubectl();
    // The quota of c has capacity for one replica, b is cordoned.
    env.set_quota("c", "pods", 1).await;
    env.run(&fedrs_tests::frs("web", 3, &fedrs_tests::even(false)))
        .await;
    session
        .must("patch membercluster b --type=merge -p '{\"spec\":{\"unschedulable\":true}}'")
        .await;
    session
        .must("wait --for=jsonpath={.status.observedGeneration}=2 membercluster/b")
        .await;
    session.must("scale frs/web --replicas=9").await;
    env.wait_until("a runs what b and c can't", 60, async |env| {
        let status = env.frs("web").await["status"].clone();
        let clusters = &status["clusters"];
        status["readyReplicas"] == 9
            && clusters[0]["desiredReplicas"] == 7
            && clusters[2]["unscheduledReplicas"] == 2
            && env.is_settled("web").await
    })
    .await;
    session.must("get memberclusters -o wide").await;
    session.must("get frs web").await;
    wait_for_events(env, 5).await;
    session.must("describe frs web").await;
    session.assert_recorded("cordoned-and-full");
}

pub(crate) async fn f3_f4_kubectl_shows_mistakes_in_the_placement(env: &mut TestEnvironment) {
    let mut session = env.kubectl();
    let field = WEB.replace("weight", "wieght");
    for command in [
        "apply -f -",
        "apply --server-side --validate=false -f -",
        "create --validate=false -f -",
    ] {
        let rejected = session.run(command, &field).await;
        assert!(!rejected.succeeded, "{command}: {}", rejected.output);
    }
    let both = WEB.replace("{weight: 1}", "{minReplicas: 3, maxReplicas: 2}");
    assert!(!session.run("apply -f -", &both).await.succeeded);
    let applied = session.run("apply -f -", WEB).await;
    assert!(applied.succeeded, "{}", applied.output);
    session
        .must("wait --for=condition=Ready frs/web --timeout=60s")
        .await;
    let name =
        json!({ "spec": { "placement": { "clusters": { "*": null, "aa": { "weight": 1 } } } } });
    session
        .must(&format!("patch frs web --type=merge -p '{name}'"))
        .await;
    session
        .must("wait --for=condition=Placed=False frs/web --timeout=60s")
        .await;
    session.must("get frs web").await;
    wait_for_events(env, 2).await;
    session.must("describe frs web").await;
    let name =
        json!({ "spec": { "placement": { "clusters": { "aa": null, "a": { "weight": 1 } } } } });
    session
        .must(&format!("patch frs web --type=merge -p '{name}'"))
        .await;
    session
        .must("wait --for=jsonpath={.status.summary}=1/1 frs/web --timeout=60s")
        .await;
    session.must("get frs web").await;
    session.assert_recorded("mistakes");
}
