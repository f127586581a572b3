//! What is run.

use fedrs_tests::truth::command::{Command, Session, run};

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

fn session(name: &'static str, commands: Vec<Command>) -> Session {
    Session {
        name,
        commands,
        differs: Vec::new(),
    }
}

fn ready() -> Command {
    run("wait --for=jsonpath={.status.readyReplicas}=2 replicaset/web --timeout=60s")
}

pub(crate) fn all() -> Vec<Session> {
    vec![
        reading().differs("node-report", "get nodes", "out"),
        writing(),
        applying().differs("openapi-v2", "apply --filename=-", "err"),
        deleting(),
        asking(),
        waiting(),
        autoscaling(),
    ]
}

fn reading() -> Session {
    session(
        "reading",
        vec![
            run("apply -f -").reads(SET),
            ready(),
            run("get replicasets"),
            run("get rs web -o wide"),
            run("get rs/web -o name"),
            run("get rs web -o jsonpath={.spec.replicas}"),
            run("get rs web -o custom-columns=NAME:.metadata.name,READY:.status.readyReplicas"),
            run("get pods --show-labels").in_any_order(),
            run("get pods -l app=other"),
            run("get pods --field-selector status.phase=Failed"),
            run("get pods -o name").in_any_order(),
            run("get all").in_any_order(),
            run("get pods -A --chunk-size=1 -o name").silent(),
            run("get nodes"),
            run("get ns ${ns}"),
            run("get nothing"),
            run("get pod none"),
            run("get rs web -o yaml"),
            run("get events --field-selector involvedObject.kind=ReplicaSet")
                .in_any_order()
                .until_lines(3),
            run("describe rs web"),
            run("describe ns ${ns}"),
            run("describe pod none"),
            run("get rs -w").ended_after(2),
            run("get rs -w --output-watch-events").ended_after(2),
            run("get configmap none --ignore-not-found"),
            run("get rs,deploy"),
            run("get --raw /healthz"),
            run("logs none"),
        ],
    )
}

fn writing() -> Session {
    session("writing", vec![
        run("create -f -").reads(SET),
        run("create -f -").reads(SET),
        ready(),
        run("scale rs web --replicas=1"),
        run("scale rs web --replicas=3 --current-replicas=2"),
        run("scale rs none --replicas=1"),
        run("label rs web a=b"),
        run("label rs web a=c"),
        run("label rs web a=c --overwrite"),
        run("label rs web a-"),
        run("annotate rs web x=y"),
        run("patch rs web -p '{\"spec\":{\"minReadySeconds\":1}}'"),
        run("patch rs web --type=merge -p '{\"spec\":{\"minReadySeconds\":2}}'"),
        run("patch rs web --type=json -p '[{\"op\":\"test\",\"path\":\"/spec/minReadySeconds\",\"value\":9}]'"),
        run("patch rs web --type=merge -p '{\"spec\":{\"replicas\":-1}}'"),
        run("patch rs web --subresource=scale --type=merge -p '{\"spec\":{\"replicas\":0}}'"),
        run("wait --for=jsonpath={.status.replicas}=0 rs/web --timeout=60s"),
        run("get rs web --subresource=scale"),
        run("set image rs/web main=registry.example/app:2"),
        run("create configmap map --from-literal=a=1"),
        run("create configmap map --from-literal=a=1"),
        run("create configmap other --from-literal=a=1 --dry-run=server -o name"),
        run("edit configmap map").edits("sed -i /a:/s/1/2/"),
        run("get configmap map -o jsonpath={.data.a}"),
        run("edit configmap map").edits("true"),
        run("replace -f -").reads(MAP),
        run("create secret generic s --from-literal=a=b"),
        run("create serviceaccount robot"),
        run("create role r --verb=get --resource=pods"),
        run("create rolebinding r --role=r --serviceaccount=${ns}:robot"),
        run("create quota q --hard=pods=1"),
        run("create service clusterip s --tcp=80:81"),
        run("create clusterrole ${ns}-c --aggregation-rule=a=b"),
        run("get clusterrole ${ns}-c -o jsonpath={.aggregationRule}"),
        run("create deployment d --image=registry.example/app:1 --port=80 --replicas=0"),
        run("get deployment d -o jsonpath={.spec.template.spec.containers}"),
        run("create -f - --validate=strict").reads(&MAP.replace("\ndata", "\ndat")),
        run("create -f -").reads("apiVersion: v1\nkind: Pod\nmetadata: { name: p }\nspec: {}\n"),
        run("run p --image=registry.example/app:1 --overrides={\"spec\":{\"automountServiceAccountToken\":false}}").silent(),
    ])
}

fn applying() -> Session {
    session(
        "applying",
        vec![
            run("diff -f -").reads(MAP).silent(),
            run("apply -f -").reads(MAP),
            run("apply -f -").reads(MAP),
            run("diff -f -").reads(MAP),
            run("diff -f -").reads(&MAP.replace("'1'", "'2'")).silent(),
            run("apply -f -").reads(&MAP.replace("a:", "b:")),
            run("get configmap map -o jsonpath={.data}"),
            run("apply --server-side -f -").reads(MAP),
            run("apply --server-side --field-manager=other -f -").reads(&MAP.replace("'1'", "'2'")),
            run("apply --server-side --field-manager=other --force-conflicts -f -")
                .reads(&MAP.replace("'1'", "'2'")),
            run("apply --server-side -f -").reads(MAP),
            run("apply --server-side --dry-run=server -f -").reads(SET),
            run("apply --dry-run=client -f -").reads(SET),
            run("apply -f -").reads(&SET.replace("replicas: 2", "replicas: x")),
            run("apply -f -").reads(&SET.replace("replicas: 2", "replicaz: 2")),
            run("apply -f - --validate=warn")
                .reads(&SET.replace("replicas: 2", "replicas: 0\n  foo: 1")),
            run("apply --filename=-").reads(&MAP.replace("v1", "v2")),
            run("apply view-last-applied rs web"),
            run("get configmap map -o yaml --show-managed-fields"),
        ],
    )
}

fn deleting() -> Session {
    let again = || run("apply -f -").reads(SET);
    let gone = || run("wait --for=delete pod -l app=web --timeout=60s").silent();
    session(
        "deleting",
        vec![
            again(),
            ready(),
            run("delete rs web"),
            gone(),
            run("get pods"),
            again(),
            ready(),
            run("delete rs web --cascade=foreground"),
            run("get pods"),
            again(),
            ready(),
            run("delete rs web --cascade=orphan"),
            run("get pods -o name").in_any_order(),
            run("delete pods -l app=web --wait=false").in_any_order(),
            gone(),
            run("delete rs web"),
            run("delete rs web --ignore-not-found"),
            run("delete pod --all --grace-period=0 --force"),
            run("delete configmap none"),
            run("delete rs --all --dry-run=server"),
        ],
    )
}

fn asking() -> Session {
    session(
        "asking",
        vec![
            run("auth can-i get pods"),
            run("auth can-i get pods --as=jane"),
            run("auth can-i create replicasets.apps --as=system:serviceaccount:${ns}:default"),
            run("auth can-i '*' '*'"),
            run("auth whoami").silent(),
            run("get pods --as=jane"),
            run("explain replicasets"),
            run("explain replicaset.spec.replicas"),
            run("explain pod.spec.nothing"),
            run("explain lease.spec"),
            run("api-resources --api-group=apps"),
            run("api-resources --api-group=coordination.k8s.io"),
            run("api-resources --api-group=''").silent(),
            run("api-versions").silent(),
            run("version").silent(),
            run("cluster-info").silent(),
            run("get --raw /api").silent(),
            run("get --raw /apis/apps").silent(),
            run("events"),
            run("get --raw /readyz"),
        ],
    )
}

fn waiting() -> Session {
    session(
        "waiting",
        vec![
            run("apply -f -").reads(SET),
            run("wait --for=jsonpath={.status.replicas}=2 rs/web --timeout=60s"),
            run("wait --for=condition=Ready pod -l app=web --timeout=60s").in_any_order(),
            run("wait --for=condition=Nothing rs/web --timeout=1s"),
            run("wait --for=delete rs/web --timeout=1s"),
            run("wait --for=create rs/none --timeout=1s"),
            run("rollout status rs/web"),
            run("rollout history rs/web"),
            run("rollout status deployment/none"),
            run("events --for=rs/web").in_any_order().until_lines(3),
            run("events --types=Warning"),
            run("cordon none"),
            run("top pods").silent(),
        ],
    )
}

fn autoscaling() -> Session {
    session(
        "autoscaling",
        vec![
            run("apply -f -").reads(SET),
            run("autoscale rs web --min=1 --max=3 --cpu-percent=50"),
            run("autoscale rs web --min=1 --max=3 --cpu-percent=50"),
            run("autoscale rs none --max=3"),
            run("get hpa web -o jsonpath={.spec}"),
            run("get horizontalpodautoscalers.v1.autoscaling web -o jsonpath={.spec}"),
            run("autoscale rs web --max=3 --name=plain"),
            run("get horizontalpodautoscalers.v1.autoscaling plain -o jsonpath={.spec}"),
            run("explain hpa.spec.maxReplicas"),
            run("explain hpa.spec.targetCPUUtilizationPercentage --api-version=autoscaling/v1"),
            run("delete hpa web plain"),
        ],
    )
}
