//! The sessions.

use super::session::{Command, KubectlSession, kubectl};

const SET: &str = "apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      automountServiceAccountToken: false
      containers: [{ name: main, image: 'registry.example/app:1' }]
";
const MAP: &str = "apiVersion: v1
kind: ConfigMap
metadata: { name: map }
data: { a: '1' }
";

fn session(name: &'static str, commands: Vec<Command>) -> KubectlSession {
    KubectlSession {
        name,
        commands,
        known_differences: Vec::new(),
    }
}

fn ready() -> Command {
    kubectl("wait --for=jsonpath={.status.readyReplicas}=2 replicaset/web --timeout=60s")
}

pub(crate) fn all() -> Vec<KubectlSession> {
    vec![
        reading().differs("node-report", "get nodes", "out"),
        writing(),
        applying().differs("openapi-v2", "apply --filename=-", "err"),
        deleting(),
        asking(),
        waiting(),
        autoscaling(),
        deploying(),
    ]
}

fn reading() -> KubectlSession {
    session(
        "reading",
        vec![
            kubectl("apply -f -").reads(SET),
            ready(),
            kubectl("get replicasets"),
            kubectl("get rs web -o wide"),
            kubectl("get rs/web -o name"),
            kubectl("get rs web -o jsonpath={.spec.replicas}"),
            kubectl("get rs web -o custom-columns=NAME:.metadata.name,READY:.status.readyReplicas"),
            kubectl("get pods --show-labels").in_any_order(),
            kubectl("get pods -l app=other"),
            kubectl("get pods --field-selector status.phase=Failed"),
            kubectl("get pods -o name").in_any_order(),
            kubectl("get all").in_any_order(),
            kubectl("get pods -A --chunk-size=1 -o name").silent(),
            kubectl("get nodes"),
            kubectl("get ns ${ns}"),
            kubectl("get nothing"),
            kubectl("get pod none"),
            kubectl("get rs web -o yaml"),
            kubectl("get events --field-selector involvedObject.kind=ReplicaSet")
                .in_any_order()
                .until_lines(3),
            kubectl("describe rs web"),
            kubectl("describe ns ${ns}"),
            kubectl("describe pod none"),
            kubectl("get rs -w").ended_after(2),
            kubectl("get rs -w --output-watch-events").ended_after(2),
            kubectl("get configmap none --ignore-not-found"),
            kubectl("get rs,deploy"),
            kubectl("get --raw /healthz"),
            kubectl("logs none"),
        ],
    )
}

fn writing() -> KubectlSession {
    session("writing", vec![
        kubectl("create -f -").reads(SET),
        kubectl("create -f -").reads(SET),
        ready(),
        kubectl("scale rs web --replicas=1"),
        kubectl("scale rs web --replicas=3 --current-replicas=2"),
        kubectl("scale rs none --replicas=1"),
        kubectl("label rs web a=b"),
        kubectl("label rs web a=c"),
        kubectl("label rs web a=c --overwrite"),
        kubectl("label rs web a-"),
        kubectl("annotate rs web x=y"),
        kubectl("patch rs web -p '{\"spec\":{\"minReadySeconds\":1}}'"),
        kubectl("patch rs web --type=merge -p '{\"spec\":{\"minReadySeconds\":2}}'"),
        kubectl("patch rs web --type=json -p '[{\"op\":\"test\",\"path\":\"/spec/minReadySeconds\",\"value\":9}]'"),
        kubectl("patch rs web --type=merge -p '{\"spec\":{\"replicas\":-1}}'"),
        kubectl("patch rs web --subresource=scale --type=merge -p '{\"spec\":{\"replicas\":0}}'"),
        kubectl("wait --for=jsonpath={.status.replicas}=0 rs/web --timeout=60s"),
        kubectl("get rs web --subresource=scale"),
        kubectl("set image rs/web main=registry.example/app:2"),
        kubectl("create configmap map --from-literal=a=1"),
        kubectl("create configmap map --from-literal=a=1"),
        kubectl("create configmap other --from-literal=a=1 --dry-run=server -o name"),
        kubectl("edit configmap map").edits("sed -i /a:/s/1/2/"),
        kubectl("get configmap map -o jsonpath={.data.a}"),
        kubectl("edit configmap map").edits("true"),
        kubectl("replace -f -").reads(MAP),
        kubectl("create secret generic s --from-literal=a=b"),
        kubectl("create serviceaccount robot"),
        kubectl("create role r --verb=get --resource=pods"),
        kubectl("create rolebinding r --role=r --serviceaccount=${ns}:robot"),
        kubectl("create quota q --hard=pods=1"),
        kubectl("create service clusterip s --tcp=80:81"),
        kubectl("create clusterrole ${ns}-c --aggregation-rule=a=b"),
        kubectl("get clusterrole ${ns}-c -o jsonpath={.aggregationRule}"),
        kubectl("create deployment d --image=registry.example/app:1 --port=80 --replicas=0"),
        kubectl("get deployment d -o jsonpath={.spec.template.spec.containers}"),
        kubectl("create -f - --validate=strict").reads(&MAP.replace("\ndata", "\ndat")),
        kubectl("create -f -").reads("apiVersion: v1\nkind: Pod\nmetadata: { name: p }\nspec: {}\n"),
        kubectl("run p --image=registry.example/app:1 --overrides={\"spec\":{\"automountServiceAccountToken\":false}}").silent(),
    ])
}

fn applying() -> KubectlSession {
    session(
        "applying",
        vec![
            kubectl("diff -f -").reads(MAP).silent(),
            kubectl("apply -f -").reads(MAP),
            kubectl("apply -f -").reads(MAP),
            kubectl("diff -f -").reads(MAP),
            kubectl("diff -f -")
                .reads(&MAP.replace("'1'", "'2'"))
                .silent(),
            kubectl("apply -f -").reads(&MAP.replace("a:", "b:")),
            kubectl("get configmap map -o jsonpath={.data}"),
            kubectl("apply --server-side -f -").reads(MAP),
            kubectl("apply --server-side --field-manager=other -f -")
                .reads(&MAP.replace("'1'", "'2'")),
            kubectl("apply --server-side --field-manager=other --force-conflicts -f -")
                .reads(&MAP.replace("'1'", "'2'")),
            kubectl("apply --server-side -f -").reads(MAP),
            kubectl("apply --server-side --dry-run=server -f -").reads(SET),
            kubectl("apply --dry-run=client -f -").reads(SET),
            kubectl("apply -f -").reads(&SET.replace("replicas: 2", "replicas: x")),
            kubectl("apply -f -").reads(&SET.replace("replicas: 2", "replicaz: 2")),
            kubectl("apply -f - --validate=warn")
                .reads(&SET.replace("replicas: 2", "replicas: 0\n  foo: 1")),
            kubectl("apply --filename=-").reads(&MAP.replace("v1", "v2")),
            kubectl("apply view-last-applied rs web"),
            kubectl("get configmap map -o yaml --show-managed-fields"),
        ],
    )
}

fn deleting() -> KubectlSession {
    let again = || kubectl("apply -f -").reads(SET);
    let gone = || kubectl("wait --for=delete pod -l app=web --timeout=60s").silent();
    session(
        "deleting",
        vec![
            again(),
            ready(),
            kubectl("delete rs web"),
            gone(),
            kubectl("get pods"),
            again(),
            ready(),
            kubectl("delete rs web --cascade=foreground"),
            kubectl("get pods"),
            again(),
            ready(),
            kubectl("delete rs web --cascade=orphan"),
            kubectl("get pods -o name").in_any_order(),
            kubectl("delete pods -l app=web --wait=false").in_any_order(),
            gone(),
            kubectl("delete rs web"),
            kubectl("delete rs web --ignore-not-found"),
            kubectl("delete pod --all --grace-period=0 --force"),
            kubectl("delete configmap none"),
            kubectl("delete rs --all --dry-run=server"),
        ],
    )
}

fn asking() -> KubectlSession {
    session(
        "asking",
        vec![
            kubectl("auth can-i get pods"),
            kubectl("auth can-i get pods --as=jane"),
            kubectl("auth can-i create replicasets.apps --as=system:serviceaccount:${ns}:default"),
            kubectl("auth can-i '*' '*'"),
            kubectl("auth whoami").silent(),
            kubectl("get pods --as=jane"),
            kubectl("explain replicasets"),
            kubectl("explain replicaset.spec.replicas"),
            kubectl("explain pod.spec.nothing"),
            kubectl("explain lease.spec"),
            kubectl("api-resources --api-group=apps"),
            kubectl("api-resources --api-group=coordination.k8s.io"),
            kubectl("api-resources --api-group=''").silent(),
            kubectl("api-versions").silent(),
            kubectl("version").silent(),
            kubectl("cluster-info").silent(),
            kubectl("get --raw /api").silent(),
            kubectl("get --raw /apis/apps").silent(),
            kubectl("events"),
            kubectl("get --raw /readyz"),
        ],
    )
}

fn waiting() -> KubectlSession {
    session(
        "waiting",
        vec![
            kubectl("apply -f -").reads(SET),
            kubectl("wait --for=jsonpath={.status.replicas}=2 rs/web --timeout=60s"),
            kubectl("wait --for=condition=Ready pod -l app=web --timeout=60s").in_any_order(),
            kubectl("wait --for=condition=Nothing rs/web --timeout=1s"),
            // kubectl prints another error if the time is over before its first request.
            kubectl("wait --for=delete rs/web --timeout=10s"),
            kubectl("wait --for=create rs/none --timeout=1s"),
            kubectl("rollout status rs/web"),
            kubectl("rollout history rs/web"),
            kubectl("rollout status deployment/none"),
            kubectl("events --for=rs/web").in_any_order().until_lines(3),
            kubectl("events --types=Warning"),
            kubectl("cordon none"),
            kubectl("top pods").silent(),
        ],
    )
}

fn autoscaling() -> KubectlSession {
    session(
        "autoscaling",
        vec![
            kubectl("apply -f -").reads(SET),
            kubectl("autoscale rs web --min=1 --max=3 --cpu-percent=50"),
            kubectl("autoscale rs web --min=1 --max=3 --cpu-percent=50"),
            kubectl("autoscale rs none --max=3"),
            kubectl("get hpa web -o jsonpath={.spec}"),
            kubectl("get horizontalpodautoscalers.v1.autoscaling web -o jsonpath={.spec}"),
            kubectl("autoscale rs web --max=3 --name=plain"),
            kubectl("get horizontalpodautoscalers.v1.autoscaling plain -o jsonpath={.spec}"),
            kubectl("explain hpa.spec.maxReplicas"),
            kubectl("explain hpa.spec.targetCPUUtilizationPercentage --api-version=autoscaling/v1"),
            kubectl("delete hpa web plain"),
        ],
    )
}

/// One pod is replaced after the other, so that the events are always the same.
const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } }
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      automountServiceAccountToken: false
      containers: [{ name: main, image: 'registry.example/app:1' }]
";

fn deploying() -> KubectlSession {
    let rolled_out = || kubectl("rollout status deployment/web --timeout=60s").silent();
    // Pods of an old ReplicaSet are still terminating when a rollout is complete.
    let settled = || kubectl("wait --for=jsonpath={.status.terminatingReplicas}=0 deploy/web");
    session(
        "deploying",
        vec![
            kubectl("apply -f -").reads(DEPLOYMENT),
            rolled_out(),
            kubectl("rollout status deployment/web"),
            kubectl("get deployments"),
            kubectl("get deploy web -o wide"),
            kubectl("get all").in_any_order(),
            kubectl("describe deployment web"),
            kubectl("annotate deployment web kubernetes.io/change-cause=first"),
            rolled_out(),
            kubectl("set image deployment/web main=registry.example/app:2"),
            rolled_out(),
            kubectl("annotate deployment web kubernetes.io/change-cause=second --overwrite"),
            rolled_out(),
            settled(),
            kubectl("get rs").in_any_order(),
            kubectl("rollout history deployment/web"),
            kubectl("rollout history deployment/web --revision=1"),
            kubectl("rollout undo deployment/web"),
            rolled_out(),
            settled(),
            kubectl("rollout history deployment/web"),
            // With ten different events, which of them are combined is random.
            kubectl("describe deployment web").in_any_order(),
            kubectl("rollout undo deployment/web --to-revision=9"),
            kubectl("scale deployment web --replicas=3"),
            rolled_out(),
            kubectl("rollout pause deployment/web"),
            kubectl("rollout pause deployment/web"),
            kubectl("set env deployment/web A=b"),
            kubectl("rollout undo deployment/web"),
            kubectl("rollout resume deployment/web"),
            rolled_out(),
            kubectl("rollout restart deployment/web"),
            rolled_out(),
            settled(),
            kubectl("wait --for=condition=Available deployment/web --timeout=60s"),
            kubectl("autoscale deployment web --max=3 --cpu-percent=50"),
            kubectl("expose deployment web --port=80 --dry-run=client"),
            kubectl("delete deployment web --cascade=foreground"),
            kubectl("get rs,pods"),
            kubectl("create deployment made --image=registry.example/app:1 --replicas=0"),
            kubectl("rollout status deployment/made"),
            kubectl("patch deployment made -p '{\"spec\":{\"strategy\":{\"type\":\"Recreate\"}}}'"),
            kubectl("get deployment made -o jsonpath={.spec.strategy}"),
        ],
    )
}
