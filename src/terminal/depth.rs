//! What colours a terminal can show, and the nearest of them.

/// How many colours the terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorDepth {
    /// 24 bits per colour.
    True,
    /// The 256-colour palette.
    Palette256,
    /// The eight basic colours.
    Basic8,
    /// No colour at all: shades of block characters only.
    None,
}

/// The environment variables that say what a terminal can show, as the caller read them.
#[derive(Clone, Debug, Default)]
pub struct TerminalEnv {
    /// `COLORTERM`.
    pub colorterm: Option<String>,
    /// `TERM`.
    pub term: Option<String>,
    /// True when `NO_COLOR` is set to anything.
    pub no_color: bool,
}

impl ColorDepth {
    /// The colours a terminal with these variables shows.
    ///
    /// `NO_COLOR` wins (no-color.org), then `COLORTERM`, then the name of the terminal.
    pub fn detect(env: &TerminalEnv) -> Self {
        let text = |v: &Option<String>| v.as_deref().unwrap_or_default().to_ascii_lowercase();
        let (colorterm, term) = (text(&env.colorterm), text(&env.term));
        if env.no_color {
            Self::None
        } else if matches!(colorterm.as_str(), "truecolor" | "24bit") || term.ends_with("-direct") {
            Self::True
        } else if term.contains("256color") {
            Self::Palette256
        } else if term.is_empty() || term == "dumb" || term.ends_with("-mono") || term.starts_with("vt1") {
            Self::None
        } else {
            Self::Basic8
        }
    }

    /// The nearest colour this depth has.
    pub(super) fn nearest(self, rgb: Rgb) -> Ink {
        match self {
            Self::True => Ink::True(rgb),
            Self::Palette256 => Ink::Indexed(nearest_of_256(rgb)),
            Self::Basic8 => Ink::Indexed(nearest_of_8(rgb)),
            Self::None => Ink::Default,
        }
    }
}

/// Red, green and blue.
pub(super) type Rgb = [u8; 3];

/// A colour as the terminal is told to use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    /// Whatever the user has chosen.
    Default,
    Indexed(u8),
    True(Rgb),
}

impl Ink {
    /// What it looks like; the user's own colours count as light on dark.
    pub fn rgb(self) -> Rgb {
        match self {
            Self::Default => [BASIC_LEVEL; 3],
            Self::Indexed(i @ 0..8) => [0, 1, 2].map(|bit| if i >> bit & 1 == 1 { BASIC_LEVEL } else { 0 }),
            Self::Indexed(i @ 232..) => [grey_level(i - GREY_BASE); 3],
            Self::Indexed(i) => {
                let i = i.saturating_sub(CUBE_BASE);
                [i / 36, i / 6 % 6, i % 6].map(|level| CUBE_LEVELS[usize::from(level)])
            }
            Self::True(rgb) => rgb,
        }
    }
}

/// Squared distance, weighed by how bright each primary looks.
pub(super) fn distance(a: Rgb, b: Rgb) -> u32 {
    let square = |i: usize| (i32::from(a[i]) - i32::from(b[i])).unsigned_abs().pow(2);
    3 * square(0) + 6 * square(1) + square(2)
}

/// Steps of the 6x6x6 colour cube that starts at index 16, as xterm defines them.
const CUBE_LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
const CUBE_BASE: u8 = 16;
/// The 24 greys after the cube.
const GREY_BASE: u8 = 232;
/// How bright a lit primary of the basic colours is in xterm.
const BASIC_LEVEL: u8 = 205;

fn grey_level(step: u8) -> u8 {
    8 + 10 * step
}

fn nearest_of_256(rgb: Rgb) -> u8 {
    let level = |v: u8| {
        (0..6)
            .min_by_key(|&i| CUBE_LEVELS[usize::from(i)].abs_diff(v))
            .unwrap_or(0)
    };
    let [r, g, b] = rgb.map(level);
    let cube = CUBE_BASE + 36 * r + 6 * g + b;
    let mean = (rgb.iter().map(|&v| u16::from(v)).sum::<u16>() / 3) as u8;
    let grey = GREY_BASE + (mean.saturating_sub(3) / 10).min(23);
    let error = |i: u8| distance(Ink::Indexed(i).rgb(), rgb);
    if error(grey) < error(cube) { grey } else { cube }
}

/// Colours whose primaries differ by less are grey to the eye; by distance alone, a middle grey would become blue.
const GREYISH: u8 = 48;

fn nearest_of_8(rgb: Rgb) -> u8 {
    let [r, g, b] = rgb;
    let greyish = r.max(g).max(b) - r.min(g).min(b) < GREYISH;
    let error = |&i: &u8| distance(Ink::Indexed(i).rgb(), rgb);
    let nearest = if greyish {
        [0, 7].into_iter().min_by_key(error)
    } else {
        (0..8).min_by_key(error)
    };
    nearest.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(colorterm: &str, term: &str, no_color: bool) -> ColorDepth {
        let some = |s: &str| (!s.is_empty()).then(|| s.to_owned());
        ColorDepth::detect(&TerminalEnv {
            colorterm: some(colorterm),
            term: some(term),
            no_color,
        })
    }

    #[test]
    fn variables_decide_the_depth() {
        for (colorterm, term, no_color, expected) in [
            ("truecolor", "xterm-256color", false, ColorDepth::True),
            ("24bit", "tmux", false, ColorDepth::True),
            ("", "xterm-direct", false, ColorDepth::True),
            ("", "xterm-256color", false, ColorDepth::Palette256),
            ("", "screen.xterm-256color", false, ColorDepth::Palette256),
            ("", "xterm", false, ColorDepth::Basic8),
            ("", "linux", false, ColorDepth::Basic8),
            ("", "dumb", false, ColorDepth::None),
            ("", "", false, ColorDepth::None),
            ("", "vt100", false, ColorDepth::None),
            ("truecolor", "xterm", true, ColorDepth::None),
        ] {
            assert_eq!(
                detect(colorterm, term, no_color),
                expected,
                "{colorterm} {term} {no_color}"
            );
        }
    }

    #[test]
    fn palette_colours_are_their_own_nearest() {
        for i in CUBE_BASE..=255 {
            let rgb = Ink::Indexed(i).rgb();
            assert_eq!(Ink::Indexed(nearest_of_256(rgb)).rgb(), rgb, "{i}");
        }
        for i in 0..8 {
            assert_eq!(nearest_of_8(Ink::Indexed(i).rgb()), i);
        }
    }

    #[test]
    fn other_colours_find_a_near_one() {
        assert_eq!(nearest_of_256([255, 0, 0]), 196);
        assert_eq!(nearest_of_256([130, 130, 130]), 244);
        assert_eq!(nearest_of_8([250, 10, 10]), 1);
        assert_eq!(nearest_of_8([255, 255, 255]), 7);
        assert_eq!(nearest_of_8([10, 20, 5]), 0);
        assert_eq!(nearest_of_8([100, 100, 110]), 0);
        assert_eq!(nearest_of_8([110, 100, 110]), 7);
    }
}
