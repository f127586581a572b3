//! What must come of a step, by the planner and by the design document, and whether it has.
//!
//! ```text
//! goal --federated-scheduler--> Expected --compared with--> SetScene --> reached, or what is missing
//! ```

use std::collections::BTreeMap;

use federated_scheduler::{Cluster, Preference, Request, plan};

use super::{
    scene::{MemberScene, SetScene, State},
    story::{Goal, LaidOut, MEMBERS},
};

/// The namespace of the story's sets.
pub(crate) const NAMESPACE: &str = "default";
/// Replicas left waiting in a full cluster (F34): the controller's default.
pub(crate) const PROBES: u64 = 2;

/// What one member must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Replicas that must be ready.
    pub(crate) replicas: u64,
    /// Replicas that wait on top, to notice room (F34).
    pub(crate) waiting: u64,
}

/// What each member that can be reached must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expected(pub(crate) BTreeMap<&'static str, Share>);

/// The layout that the planner gives for the goal's inputs.
pub(crate) fn expected(goal: &LaidOut) -> Expected {
    let key = format!("{NAMESPACE}/{}", goal.set);
    let names: Vec<_> = MEMBERS
        .iter()
        .map(|it| it.name)
        .filter(|name| goal.without != Some(*name))
        .collect();
    let within = laid_out(goal, &key, &names, goal.full);
    let without_limit = laid_out(goal, &key, &names, None);
    let shares =
        names
            .iter()
            .zip(within.iter().zip(without_limit))
            .map(|(&name, (&replicas, fair))| {
                let full = goal.full.is_some_and(|(member, _)| member == name);
                let waiting = if full {
                    (fair - replicas).min(PROBES)
                } else {
                    0
                };
                (name, Share { replicas, waiting })
            });
    Expected(shares.collect())
}

fn laid_out(
    goal: &LaidOut,
    key: &str,
    names: &[&'static str],
    full: Option<(&str, u64)>,
) -> Vec<u64> {
    let weight = |wanted: &str| {
        let of = |name: &str| goal.weights.iter().find(|it| it.0 == name).map(|it| it.1);
        of(wanted).or_else(|| of("*"))
    };
    let clusters: Vec<_> = names
        .iter()
        .map(|&name| Cluster {
            name,
            preference: weight(name).map(|weight| Preference {
                weight,
                ..Preference::default()
            }),
            current: 0,
            capacity: full
                .filter(|(member, _)| *member == name)
                .map(|(_, room)| room),
        })
        .collect();
    let request = Request {
        key,
        replicas: goal.replicas,
        rebalance: true,
        clusters: &clusters,
    };
    plan(&request)
        .shares
        .iter()
        .map(|share| share.replicas)
        .collect()
}

impl Expected {
    /// Whether these are the document's numbers, up to which of them a tie favours.
    pub(crate) fn agrees_with(&self, document: &[u64]) -> bool {
        let mut numbers: Vec<_> = self.0.values().map(|share| share.replicas).collect();
        numbers.sort_unstable();
        numbers == document
    }

    /// What is missing until the set is laid out like this and has settled; empty once it is.
    fn missing(&self, goal: &LaidOut, scene: &SetScene) -> Vec<String> {
        let mut missing = Vec::new();
        if scene.wanted != Some(goal.replicas) {
            missing.push(format!("the set asks for {:?} replicas", scene.wanted));
        }
        for member in &scene.members {
            let share = self.0.get(member.name.as_str());
            missing.extend(share.map_or_else(|| unneeded(member), |share| share.missing(member)));
        }
        if missing.is_empty() && !scene.settled {
            missing.push("the status does not say that it has settled".to_owned());
        }
        missing
    }
}

impl Share {
    fn missing(self, member: &MemberScene) -> Option<String> {
        let total = self.replicas + self.waiting;
        let reached = member.desired == Some(self.replicas)
            && member.asked == total
            && member.pods == total
            && member.ready == self.replicas
            && matches!(member.state, State::Healthy | State::Full(_));
        let waiting = match self.waiting {
            0 => String::new(),
            waiting => format!(" and {waiting} waiting"),
        };
        (!reached).then(|| {
            format!(
                "{}: expected {} ready{waiting}; the status says {}, its set asks for {}, it has {} pods, {} ready; it is {}",
                member.name,
                self.replicas,
                member.desired.map_or("nothing".to_owned(), |desired| desired.to_string()),
                member.asked,
                member.pods,
                member.ready,
                member.state,
            )
        })
    }
}

/// A member that can't be reached counts for nothing; what runs there is its own affair.
fn unneeded(member: &MemberScene) -> Option<String> {
    let placed = member.desired.filter(|desired| *desired > 0)?;
    Some(format!(
        "{}: expected none placed there, the status says {placed}",
        member.name
    ))
}

/// What is missing until `goal` is reached; empty once it is.
pub(crate) fn missing(goal: &Goal, scene: &SetScene) -> Vec<String> {
    match goal {
        Goal::Layout(layout) => expected(layout).missing(layout, scene),
        Goal::Gone(set) => {
            let left = scene
                .members
                .iter()
                .filter(|it| it.asked + it.pods + it.stopping > 0);
            let mut missing: Vec<_> = left
                .map(|it| {
                    format!(
                        "{}: {} pods of {set} are left, {} asked for",
                        it.name,
                        it.pods + it.stopping,
                        it.asked
                    )
                })
                .collect();
            if scene.wanted.is_some() {
                missing.push(format!("{set} is still there on the host"));
            }
            missing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::story::{DARK, LARGE, SMALL, STEPS};

    fn layouts() -> impl Iterator<Item = &'static LaidOut> {
        STEPS.iter().filter_map(|step| match &step.goal {
            Goal::Layout(layout) => Some(layout),
            Goal::Gone(_) => None,
        })
    }

    #[test]
    fn f15_the_planner_gives_the_documents_numbers() {
        let mut compared = 0;
        for layout in layouts() {
            if let Some(document) = layout.document {
                let expected = expected(layout);
                assert!(
                    expected.agrees_with(document),
                    "{expected:?} is not {document:?}"
                );
                compared += 1;
            }
        }
        assert_eq!(
            compared, 3,
            "scenario 1 before and after the loss, and with a full cluster"
        );
    }

    #[test]
    fn f16_the_storys_other_layouts_are_proportional() {
        let of = |index: usize| expected(layouts().nth(index).unwrap()).0;
        let share = |replicas, waiting| Share { replicas, waiting };
        assert_eq!(of(1)[SMALL], share(6, PROBES), "F34: a couple stay waiting");
        assert_eq!(
            of(2),
            BTreeMap::from([(LARGE, share(25, 0)), (SMALL, share(25, 0))])
        );
        assert_eq!(
            of(4),
            BTreeMap::from([
                (LARGE, share(20, 0)),
                (DARK, share(20, 0)),
                (SMALL, share(20, 0))
            ])
        );
        assert_eq!(
            of(5),
            BTreeMap::from([
                (LARGE, share(30, 0)),
                (DARK, share(15, 0)),
                (SMALL, share(15, 0))
            ])
        );
    }

    fn reached(layout: &LaidOut) -> SetScene {
        let shares = expected(layout).0;
        let member = |name: &str| {
            let share = shares.get(name).copied().unwrap_or(Share {
                replicas: 0,
                waiting: 0,
            });
            MemberScene {
                name: name.to_owned(),
                desired: Some(share.replicas),
                asked: share.replicas + share.waiting,
                pods: share.replicas + share.waiting,
                ready: share.replicas,
                state: State::Healthy,
                ..MemberScene::default()
            }
        };
        SetScene {
            wanted: Some(layout.replicas),
            settled: true,
            members: MEMBERS.iter().map(|it| member(it.name)).collect(),
            ..SetScene::default()
        }
    }

    type Spoil = fn(&mut SetScene);

    #[test]
    fn a_step_is_reached_by_its_exact_layout_alone() {
        for step in &STEPS {
            let Goal::Layout(layout) = &step.goal else {
                continue;
            };
            assert_eq!(missing(&step.goal, &reached(layout)), Vec::<String>::new());
            let spoils: [Spoil; 7] = [
                |scene| scene.wanted = Some(49),
                |scene| scene.settled = false,
                |scene| scene.members[0].ready -= 1,
                |scene| scene.members[0].asked += 1,
                |scene| scene.members[0].pods += 1,
                |scene| scene.members[0].desired = None,
                |scene| scene.members[0].state = State::Unreachable,
            ];
            for spoil in spoils {
                let mut scene = reached(layout);
                spoil(&mut scene);
                assert!(
                    !missing(&step.goal, &scene).is_empty(),
                    "{}: {scene:?}",
                    step.told
                );
            }
        }
    }

    #[test]
    fn what_runs_in_a_dark_member_is_its_own_affair() {
        let layout = layouts().find(|layout| layout.without.is_some()).unwrap();
        let mut scene = reached(layout);
        let dark = scene.members.iter_mut().find(|it| it.name == DARK).unwrap();
        (dark.asked, dark.pods, dark.ready) = (17, 17, 17);
        assert!(missing(&Goal::Layout(*layout), &scene).is_empty());
        scene
            .members
            .iter_mut()
            .find(|it| it.name == DARK)
            .unwrap()
            .desired = Some(17);
        assert_eq!(
            missing(&Goal::Layout(*layout), &scene),
            ["us-east: expected none placed there, the status says 17"]
        );
    }

    #[test]
    fn nothing_is_left_once_a_set_is_gone() {
        let gone = Goal::Gone("shop");
        assert!(missing(&gone, &SetScene::default()).is_empty());
        let left = SetScene {
            wanted: Some(50),
            members: vec![MemberScene {
                name: "a".to_owned(),
                pods: 1,
                stopping: 1,
                ..MemberScene::default()
            }],
            ..SetScene::default()
        };
        assert_eq!(
            missing(&gone, &left),
            [
                "a: 2 pods of shop are left, 0 asked for",
                "shop is still there on the host"
            ]
        );
    }
}
