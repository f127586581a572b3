//! The field numbers of the messages that kubectl posts, from Kubernetes' `generated.proto` files.
//!
//! Fields that kubectl never sets in these requests are left out; a body that sets one is rejected.

/// The fields of a message.
pub(super) type Message = &'static [Field];

/// One field.
#[derive(Clone, Copy)]
pub(super) struct Field {
    pub(super) number: u64,
    pub(super) name: &'static str,
    pub(super) form: Type,
}

/// The type of a field.
#[derive(Clone, Copy)]
pub(super) enum Type {
    Text,
    Bytes,
    Number,
    /// A number that is not set if it is 0.
    Port,
    Flag,
    Quantity,
    IntOrString,
    Message(Message),
    List(&'static Type),
    Map(&'static Type),
}

const fn field(number: u64, name: &'static str, form: Type) -> Field {
    Field { number, name, form }
}

const fn text(number: u64, name: &'static str) -> Field {
    field(number, name, Type::Text)
}

const fn texts(number: u64, name: &'static str) -> Field {
    field(number, name, Type::List(&Type::Text))
}

const fn text_map(number: u64, name: &'static str) -> Field {
    field(number, name, Type::Map(&Type::Text))
}

const fn message(number: u64, name: &'static str, message: Message) -> Field {
    field(number, name, Type::Message(message))
}

/// The table of a kind.
pub(super) fn of_kind(api_version: &str, kind: &str) -> Option<Message> {
    Some(match kind {
        "Namespace" => NAMESPACE,
        "ConfigMap" => CONFIG_MAP,
        "Secret" => SECRET,
        "ServiceAccount" | "SelfSubjectReview" => METADATA_ALONE,
        "ResourceQuota" => RESOURCE_QUOTA,
        "Deployment" => DEPLOYMENT,
        "PodDisruptionBudget" => DISRUPTION_BUDGET,
        "HorizontalPodAutoscaler" if api_version == "autoscaling/v1" => AUTOSCALER_V1,
        "HorizontalPodAutoscaler" => AUTOSCALER,
        "PriorityClass" => PRIORITY_CLASS,
        "Role" => ROLE,
        "ClusterRole" => CLUSTER_ROLE,
        "Service" => SERVICE,
        "RoleBinding" | "ClusterRoleBinding" => ROLE_BINDING,
        "Eviction" => EVICTION,
        "TokenRequest" => TOKEN_REQUEST,
        "SelfSubjectAccessReview" => ACCESS_REVIEW,
        "SelfSubjectRulesReview" => RULES_REVIEW,
        "DeleteOptions" => DELETE_OPTIONS,
        _ => return None,
    })
}

pub(super) const UNKNOWN: Message = &[
    message(1, "typeMeta", &[text(1, "apiVersion"), text(2, "kind")]),
    field(2, "raw", Type::Bytes),
];
pub(super) const QUANTITY: Message = &[text(1, "text")];
pub(super) const INT_OR_STRING: Message = &[
    field(1, "type", Type::Number),
    field(2, "number", Type::Number),
    text(3, "text"),
];

const METADATA: Field = message(1, "metadata", OBJECT_META);
const OBJECT_META: Message = &[
    text(1, "name"),
    text(2, "generateName"),
    text(3, "namespace"),
    text(5, "uid"),
    text(6, "resourceVersion"),
    text_map(11, "labels"),
    text_map(12, "annotations"),
    texts(14, "finalizers"),
];
const METADATA_ALONE: Message = &[METADATA];

const NAMESPACE: Message = &[METADATA, message(2, "spec", &[texts(1, "finalizers")])];

const CONFIG_MAP: Message = &[
    METADATA,
    text_map(2, "data"),
    field(3, "binaryData", Type::Map(&Type::Bytes)),
    field(4, "immutable", Type::Flag),
];

const SECRET: Message = &[
    METADATA,
    field(2, "data", Type::Map(&Type::Bytes)),
    text(3, "type"),
    text_map(4, "stringData"),
    field(5, "immutable", Type::Flag),
];

const RESOURCE_QUOTA: Message = &[
    METADATA,
    message(
        2,
        "spec",
        &[
            field(1, "hard", Type::Map(&Type::Quantity)),
            texts(2, "scopes"),
        ],
    ),
];

const LABEL_SELECTOR: Message = &[
    text_map(1, "matchLabels"),
    field(
        2,
        "matchExpressions",
        Type::List(&Type::Message(&[
            text(1, "key"),
            text(2, "operator"),
            texts(3, "values"),
        ])),
    ),
];

const CONTAINER_PORT: Message = &[
    text(1, "name"),
    field(2, "hostPort", Type::Port),
    field(3, "containerPort", Type::Number),
    text(4, "protocol"),
];
const CONTAINER: Message = &[
    text(1, "name"),
    text(2, "image"),
    texts(3, "command"),
    texts(4, "args"),
    field(6, "ports", Type::List(&Type::Message(CONTAINER_PORT))),
];
const POD_TEMPLATE: Message = &[
    METADATA,
    message(
        2,
        "spec",
        &[field(
            2,
            "containers",
            Type::List(&Type::Message(CONTAINER)),
        )],
    ),
];
const DEPLOYMENT: Message = &[
    METADATA,
    message(
        2,
        "spec",
        &[
            field(1, "replicas", Type::Number),
            message(2, "selector", LABEL_SELECTOR),
            message(3, "template", POD_TEMPLATE),
        ],
    ),
];

const DISRUPTION_BUDGET: Message = &[
    METADATA,
    message(
        2,
        "spec",
        &[
            field(1, "minAvailable", Type::IntOrString),
            message(2, "selector", LABEL_SELECTOR),
            field(3, "maxUnavailable", Type::IntOrString),
        ],
    ),
];

const METRIC_TARGET: Message = &[
    text(1, "type"),
    field(2, "value", Type::Quantity),
    field(3, "averageValue", Type::Quantity),
    field(4, "averageUtilization", Type::Number),
];
const METRIC: Message = &[
    text(1, "type"),
    message(
        4,
        "resource",
        &[text(1, "name"), message(2, "target", METRIC_TARGET)],
    ),
];
const SCALE_TARGET: Field = message(
    1,
    "scaleTargetRef",
    &[text(1, "kind"), text(2, "name"), text(3, "apiVersion")],
);
const MIN_REPLICAS: Field = field(2, "minReplicas", Type::Number);
const MAX_REPLICAS: Field = field(3, "maxReplicas", Type::Number);
/// `autoscaling/v2`.
const AUTOSCALER: Message = &[
    METADATA,
    message(
        2,
        "spec",
        &[
            SCALE_TARGET,
            MIN_REPLICAS,
            MAX_REPLICAS,
            field(4, "metrics", Type::List(&Type::Message(METRIC))),
        ],
    ),
];
/// `autoscaling/v1`.
const AUTOSCALER_V1: Message = &[
    METADATA,
    message(
        2,
        "spec",
        &[
            SCALE_TARGET,
            MIN_REPLICAS,
            MAX_REPLICAS,
            field(4, "targetCPUUtilizationPercentage", Type::Number),
        ],
    ),
];

const PRIORITY_CLASS: Message = &[
    METADATA,
    field(2, "value", Type::Number),
    field(3, "globalDefault", Type::Flag),
    text(4, "description"),
    text(5, "preemptionPolicy"),
];

const POLICY_RULE: Message = &[
    texts(1, "verbs"),
    texts(2, "apiGroups"),
    texts(3, "resources"),
    texts(4, "resourceNames"),
    texts(5, "nonResourceURLs"),
];
const RULES: Field = field(2, "rules", Type::List(&Type::Message(POLICY_RULE)));
const ROLE: Message = &[METADATA, RULES];
const CLUSTER_ROLE: Message = &[
    METADATA,
    RULES,
    message(
        3,
        "aggregationRule",
        &[field(
            1,
            "clusterRoleSelectors",
            Type::List(&Type::Message(LABEL_SELECTOR)),
        )],
    ),
];

const SERVICE_PORT: Message = &[
    text(1, "name"),
    text(2, "protocol"),
    field(3, "port", Type::Number),
    field(4, "targetPort", Type::IntOrString),
    field(5, "nodePort", Type::Port),
];
const SERVICE: Message = &[
    METADATA,
    message(
        2,
        "spec",
        &[
            field(1, "ports", Type::List(&Type::Message(SERVICE_PORT))),
            text_map(2, "selector"),
            text(3, "clusterIP"),
            text(4, "type"),
            text(10, "externalName"),
        ],
    ),
];

const SUBJECT: Message = &[
    text(1, "kind"),
    text(2, "apiGroup"),
    text(3, "name"),
    text(4, "namespace"),
];
const ROLE_BINDING: Message = &[
    METADATA,
    field(2, "subjects", Type::List(&Type::Message(SUBJECT))),
    message(
        3,
        "roleRef",
        &[text(1, "apiGroup"), text(2, "kind"), text(3, "name")],
    ),
];

const DELETE_OPTIONS: Message = &[
    field(1, "gracePeriodSeconds", Type::Number),
    message(
        2,
        "preconditions",
        &[text(1, "uid"), text(2, "resourceVersion")],
    ),
    field(3, "orphanDependents", Type::Flag),
    text(4, "propagationPolicy"),
    texts(5, "dryRun"),
];
const EVICTION: Message = &[METADATA, message(2, "deleteOptions", DELETE_OPTIONS)];

const BOUND_OBJECT: Message = &[
    text(1, "kind"),
    text(2, "apiVersion"),
    text(3, "name"),
    text(4, "uid"),
];
const TOKEN_REQUEST: Message = &[
    METADATA,
    message(
        2,
        "spec",
        &[
            texts(1, "audiences"),
            message(3, "boundObjectRef", BOUND_OBJECT),
            field(4, "expirationSeconds", Type::Number),
        ],
    ),
];

const RESOURCE_ATTRIBUTES: Message = &[
    text(1, "namespace"),
    text(2, "verb"),
    text(3, "group"),
    text(4, "version"),
    text(5, "resource"),
    text(6, "subresource"),
    text(7, "name"),
];
const ACCESS_REVIEW: Message = &[
    METADATA,
    message(
        2,
        "spec",
        &[
            message(1, "resourceAttributes", RESOURCE_ATTRIBUTES),
            message(
                2,
                "nonResourceAttributes",
                &[text(1, "path"), text(2, "verb")],
            ),
        ],
    ),
];
const RULES_REVIEW: Message = &[METADATA, message(2, "spec", &[text(1, "namespace")])];
