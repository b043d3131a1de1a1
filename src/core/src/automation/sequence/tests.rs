//! What each action becomes, and what is released when it stops half-way.

use super::*;
use crate::control::TypedText;
use crate::units::{PixelRect, PixelSize};
use proptest::prelude::*;

const VIEW: View = View {
    source_size: PixelSize::new(100, 100),
    source_rect: PixelRect::whole(PixelSize::new(100, 100)),
    image_size: PixelSize::new(100, 100),
};

fn at(x: u32, y: u32) -> ImagePoint {
    ImagePoint { x, y }
}

/// One word per message: `move`, `+left`, `-left`, `wheel v 1`, `+41`, `-41`, `text`.
fn script(action: &Action) -> String {
    let words = plan(action, &VIEW)
        .expect("inside")
        .into_iter()
        .map(|step| match step.message {
            ControlMessage::MouseMove { .. } => "move".to_owned(),
            ControlMessage::MouseButton { button, down, .. } => {
                format!("{}{button:?}", if down { '+' } else { '-' }).to_lowercase()
            }
            ControlMessage::Wheel { axis, notches, .. } => format!("{axis:?}:{notches}").to_lowercase(),
            ControlMessage::Key { key, down } => format!("{}{:02x}", if down { '+' } else { '-' }, key.vk),
            ControlMessage::Text(text) => format!("text:{}", text.expose()),
        });
    words.collect::<Vec<_>>().join(" ")
}

fn keys(names: &[&str]) -> Action {
    Action::Keys(
        names
            .iter()
            .map(|name| Key::named(name).expect("known"))
            .collect(),
    )
}

#[test]
fn pointer_actions_move_first() {
    assert_eq!(script(&Action::Move { at: at(1, 1) }), "move");
    let click = |double| Action::Click {
        at: at(1, 1),
        button: MouseButton::Right,
        double,
    };
    assert_eq!(script(&click(false)), "move +right -right");
    assert_eq!(script(&click(true)), "move +right -right +right -right");
    let scroll = |direction, ticks| Action::Scroll {
        at: at(1, 1),
        direction,
        ticks,
    };
    assert_eq!(
        script(&scroll(ScrollDirection::Up, 2)),
        "move vertical:1 vertical:1"
    );
    assert_eq!(script(&scroll(ScrollDirection::Down, 1)), "move vertical:-1");
    assert_eq!(script(&scroll(ScrollDirection::Left, 1)), "move horizontal:-1");
    assert_eq!(script(&scroll(ScrollDirection::Right, 1)), "move horizontal:1");
}

#[test]
fn hotkeys_release_in_reverse() {
    assert_eq!(script(&keys(&["A"])), "+41 -41");
    assert_eq!(script(&keys(&["CTRL", "SHIFT", "T"])), "+a2 +a0 +54 -54 -a0 -a2");
}

#[test]
fn text_is_one_message() {
    assert_eq!(script(&Action::TypeText(TypedText::new("añ".into()))), "text:añ");
}

#[test]
fn a_drag_passes_every_point_in_its_time() {
    let path = vec![at(0, 0), at(50, 0), at(50, 50)];
    let steps = plan(
        &Action::Drag {
            path,
            duration_ms: 400,
        },
        &VIEW,
    )
    .expect("inside");
    let places: Vec<Point> = steps
        .iter()
        .filter_map(|step| match step.message {
            ControlMessage::MouseMove { at } => Some(at),
            _ => None,
        })
        .collect();
    for point in [(0, 0), (50, 0), (50, 50)] {
        let expected = VIEW.locate(at(point.0, point.1)).expect("inside");
        assert!(places.contains(&expected), "{point:?}");
    }
    let moving: Duration = steps[2..steps.len() - 1].iter().map(|step| step.wait).sum();
    let missing = Duration::from_millis(400).saturating_sub(moving);
    assert!(
        moving <= Duration::from_millis(400) && missing < Duration::from_millis(1),
        "{moving:?}"
    );
    assert!(steps.iter().all(|step| step.wait <= DRAG_STEP * 2));
}

#[test]
fn a_point_outside_the_image_stops_the_whole_plan() {
    let path = vec![at(0, 0), at(100, 0)];
    let refused = plan(
        &Action::Drag {
            path,
            duration_ms: 100,
        },
        &VIEW,
    );
    assert_eq!(refused, Err(ErrorCode::CoordinateOutOfBounds));
}

#[test]
fn release_undoes_presses_latest_first() {
    let mut held = Held::default();
    for step in plan(&keys(&["CTRL", "A"]), &VIEW).expect("plan").iter().take(2) {
        held.note(&step.message);
    }
    let released: Vec<_> = held.release();
    let codes: Vec<_> = released
        .iter()
        .map(|message| match message {
            ControlMessage::Key { key, down: false } => key.vk,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(codes, [0x41, 0xa2]);
    assert!(held.is_empty());
    assert!(held.release().is_empty());
}

fn any_action() -> impl Strategy<Value = Action> {
    let point = (0_u32..100, 0_u32..100).prop_map(|(x, y)| at(x, y));
    prop_oneof![
        point.clone().prop_map(|at| Action::Click {
            at,
            button: MouseButton::Left,
            double: true
        }),
        (proptest::collection::vec(point, 2..=128), 100_u32..=2000)
            .prop_map(|(path, duration_ms)| Action::Drag { path, duration_ms }),
        Just(keys(&["CTRL", "ALT", "DELETE"])),
    ]
}

proptest! {
    #[test]
    fn a_finished_sequence_holds_nothing(action in any_action()) {
        let mut held = Held::default();
        for step in plan(&action, &VIEW).expect("inside") {
            held.note(&step.message);
        }
        prop_assert!(held.is_empty());
    }

    #[test]
    fn a_stopped_sequence_releases_what_it_pressed(action in any_action(), stop in 0_usize..400) {
        let (mut held, mut check) = (Held::default(), Held::default());
        for step in plan(&action, &VIEW).expect("inside").iter().take(stop) {
            held.note(&step.message);
            check.note(&step.message);
        }
        for message in held.release() {
            check.note(&message);
        }
        prop_assert!(held.is_empty() && check.is_empty());
    }

    #[test]
    fn positions_stay_on_the_picture(action in any_action()) {
        for step in plan(&action, &VIEW).expect("inside") {
            if let ControlMessage::MouseMove { at } = step.message {
                prop_assert!((0.0..=1.0).contains(&at.x) && (0.0..=1.0).contains(&at.y));
            }
        }
    }
}
