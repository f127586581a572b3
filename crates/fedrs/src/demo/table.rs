//! The live table: one set over its members, as lines of a terminal. Pure.

use ratatui::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};

use super::{
    observer::Scene,
    scene::{MemberScene, SetScene, State},
    story::{Goal, STEPS, WEB},
};

/// Lines of the table, with the empty one above it.
pub(crate) const HEIGHT: u16 = 8;
/// Cells of a full bar.
const BAR: u64 = 30;
/// Width of a member's name; longer ones are the user's own business elsewhere.
const NAME: usize = 10;

/// Colours, or none (`NO_COLOR`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    /// Whether there are colours.
    pub(crate) coloured: bool,
}

impl Palette {
    /// `style` in `color`, if there are colours.
    pub(crate) fn paint(self, color: Color) -> Style {
        if self.coloured {
            Style::new().fg(color)
        } else {
            Style::new()
        }
    }

    /// Stands out without colours as well.
    pub(crate) fn bold() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn state(self, state: &State) -> Style {
        match state {
            State::Joining => self.paint(Color::DarkGray),
            State::Healthy => self.paint(Color::Green),
            State::Full(_) => self.paint(Color::Yellow),
            State::Unreachable | State::Lost => self.paint(Color::Red),
        }
    }
}

/// The set of the step that the story is at; one that is gone gives way to the one that stays.
pub(crate) fn set_shown(scene: &Scene) -> (&'static str, SetScene) {
    let set = |name| scene.sets.get(name).cloned().unwrap_or_default();
    let step = scene.step.checked_sub(1).and_then(|index| STEPS.get(index));
    if let Some(step) = step {
        let shown = set(step.goal.set());
        let gone = matches!(step.goal, Goal::Gone(_)) && shown.wanted.is_none();
        if !gone {
            return (step.goal.set(), shown);
        }
    }
    (WEB, set(WEB))
}

/// The table of `scene`, [`HEIGHT`] lines.
pub(crate) fn lines(scene: &Scene, hint: &str, palette: Palette) -> Vec<Line<'static>> {
    let (name, set) = set_shown(scene);
    let mut lines = vec![Line::default(), title(scene, name, &set)];
    let header = format!(
        " {:<NAME$} {:>7}  {:>5}  {:<bar$} {:>7}  {}",
        "CLUSTER",
        "DESIRED",
        "READY",
        "",
        "WAITING",
        "STATE",
        bar = usize::try_from(BAR).expect("a bar is short"),
    );
    lines.push(Line::styled(header, Palette::bold()));
    let most = set
        .members
        .iter()
        .map(|it| it.pods.max(it.desired.unwrap_or(0)))
        .max();
    lines.extend(
        set.members
            .iter()
            .map(|it| row(it, most.unwrap_or(0), palette)),
    );
    lines.push(total(&set));
    lines.push(Line::styled(
        format!(" {hint}"),
        palette.paint(Color::DarkGray),
    ));
    lines
}

fn title(scene: &Scene, name: &str, set: &SetScene) -> Line<'static> {
    let wanted = set
        .wanted
        .map_or("not there".to_owned(), |wanted| format!("{wanted} wanted"));
    // A set that starts from nothing has had none.
    let lowest = match set.watch.lowest() {
        None | Some(0) => String::new(),
        Some(lowest) => format!(", never below {lowest} in this step"),
    };
    let seconds = scene.at.as_secs();
    let rest = format!(
        ": {wanted}, {} ready{lowest}  [{}:{:02}]",
        set.ready(),
        seconds / 60,
        seconds % 60
    );
    Line::from(vec![
        Span::styled(format!(" {name}"), Palette::bold()),
        Span::raw(rest),
    ])
}

fn row(member: &MemberScene, most: u64, palette: Palette) -> Line<'static> {
    let cells = |count: u64| usize::try_from((count * BAR).div_ceil(most.max(1))).unwrap_or(0);
    let ready = cells(member.ready);
    let starting = cells(member.pods.max(member.ready)) - ready;
    let empty = usize::try_from(BAR)
        .unwrap_or(0)
        .saturating_sub(ready + starting);
    let style = palette.state(&member.state);
    let desired = member
        .desired
        .map_or("-".to_owned(), |desired| desired.to_string());
    Line::from(vec![
        Span::raw(format!(
            " {:<NAME$} {desired:>7}  {:>5}  ",
            member.name, member.ready
        )),
        Span::styled("█".repeat(ready), style),
        Span::styled("░".repeat(starting), style),
        Span::raw(" ".repeat(empty)),
        Span::raw(format!(" {:>7}  ", member.waiting)),
        Span::styled(member.state.to_string(), style),
    ])
}

fn total(set: &SetScene) -> Line<'static> {
    let desired: u64 = set.members.iter().filter_map(|it| it.desired).sum();
    let waiting: u64 = set.members.iter().map(|it| it.waiting).sum();
    let unplaced = match set.unplaced {
        0 => String::new(),
        unplaced => format!("  {unplaced} without a place"),
    };
    Line::raw(format!(
        " {:<NAME$} {desired:>7}  {:>5}  {:bar$} {waiting:>7}{unplaced}",
        "total",
        set.ready(),
        "",
        bar = usize::try_from(BAR).expect("a bar is short"),
    ))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use super::*;
    use crate::demo::scene::ReadyWatch;

    fn member(name: &str, desired: u64, pods: u64, ready: u64, state: State) -> MemberScene {
        let waiting = if matches!(state, State::Full(_)) {
            pods - ready
        } else {
            0
        };
        MemberScene {
            name: name.to_owned(),
            desired: Some(desired),
            asked: pods,
            pods,
            ready,
            waiting,
            state,
            ..MemberScene::default()
        }
    }

    fn scene(step: usize, wanted: u64, members: Vec<MemberScene>) -> Scene {
        let mut watch = ReadyWatch::default();
        watch.sample(
            wanted,
            members.iter().map(|it| it.ready).sum(),
            Duration::ZERO,
        );
        let set = SetScene {
            wanted: Some(wanted),
            members,
            watch,
            ..SetScene::default()
        };
        let mut scene = Scene {
            at: Duration::from_secs(75),
            step,
            ..Scene::default()
        };
        scene.sets = BTreeMap::from([(set_shown(&scene).0, set)]);
        scene
    }

    fn text(scene: &Scene) -> String {
        let lines = lines(scene, "Ctrl-C ends the demo", Palette { coloured: false });
        assert_eq!(lines.len(), usize::from(HEIGHT));
        assert!(
            lines.iter().all(|line| line.width() <= 80),
            "it fits on any terminal"
        );
        let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    #[test]
    fn shows_a_full_cluster_and_those_that_wait_there() {
        insta::assert_snapshot!(text(&scene(
            2,
            50,
            vec![
                member("eu-west", 22, 22, 18, State::Healthy),
                member("us-east", 22, 22, 22, State::Healthy),
                member("ap-south", 6, 8, 6, State::Full(6)),
            ],
        )));
    }

    #[test]
    fn shows_a_lost_cluster_and_more_ready_than_wanted() {
        insta::assert_snapshot!(text(&scene(
            4,
            50,
            vec![
                member("eu-west", 25, 25, 25, State::Healthy),
                member("us-east", 0, 17, 17, State::Lost),
                member("ap-south", 25, 25, 25, State::Healthy),
            ],
        )));
    }

    #[test]
    fn before_anything_is_known_there_is_nothing_to_show_yet() {
        let names = ["eu-west", "us-east", "ap-south"];
        let members = names.map(|name| MemberScene {
            name: name.to_owned(),
            ..MemberScene::default()
        });
        let mut scene = scene(0, 50, members.to_vec());
        scene.sets.get_mut(WEB).unwrap().wanted = None;
        insta::assert_snapshot!(text(&scene));
    }
}
