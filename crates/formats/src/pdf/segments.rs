//! Glyphs to segments: stretches of text on one baseline without a wide gap. A line of prose is one, a row of a table
//! several.

use super::content::Glyph;
use super::direction;
use super::font::Said;

/// Two pieces of text further apart than this many times their size belong to different segments. The gutter between columns
/// can be as narrow as one size, and spaces in lines that are stretched to fill a column nearly as wide.
const WIDEST_SPACE: f32 = 0.7;
/// A gap of this many times the size is a space where none was shown.
const LEAST_SPACE: f32 = 0.17;

/// A stretch of text on one baseline.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) text: String,
    pub(crate) x0: f32,
    pub(crate) x1: f32,
    /// The baseline.
    pub(crate) y: f32,
    /// Size of most of its characters.
    pub(crate) size: f32,
    pub(crate) bold: bool,
    /// Most of its letters are written from right to left.
    pub(crate) right_to_left: bool,
    pub(crate) characters: usize,
}

/// Glyphs that were shown one after the other, side by side.
#[derive(Debug)]
struct Fragment {
    glyphs: Vec<Glyph>,
    x0: f32,
    x1: f32,
    y: f32,
    size: f32,
}

impl Fragment {
    fn new(glyph: Glyph) -> Self {
        Self { x0: glyph.x0, x1: glyph.x1, y: glyph.y, size: glyph.size, glyphs: vec![glyph] }
    }

    /// Distance between the two along the line, negative if they overlap.
    fn gap(&self, x0: f32, x1: f32) -> f32 {
        (x0 - self.x1).max(self.x0 - x1)
    }

    fn takes(&self, glyph: &Glyph) -> bool {
        (glyph.y - self.y).abs() < 0.15 * self.size
            && (glyph.size - self.size).abs() < 0.2 * self.size
            && self.gap(glyph.x0, glyph.x1) < 0.8 * self.size
    }

    fn widen(&mut self, x0: f32, x1: f32) {
        self.x0 = self.x0.min(x0);
        self.x1 = self.x1.max(x1);
    }

    fn absorb(&mut self, mut other: Self) {
        self.widen(other.x0, other.x1);
        self.glyphs.append(&mut other.glyphs);
    }
}

/// The segments of glyphs that go the same way, from top to bottom.
pub(crate) fn segments(glyphs: Vec<Glyph>) -> Vec<Segment> {
    let joined = join_rows(fragments(glyphs));
    let joined = attach_raised(joined);
    joined.into_iter().filter_map(segment).collect()
}

fn fragments(glyphs: Vec<Glyph>) -> Vec<Fragment> {
    let mut fragments: Vec<Fragment> = Vec::new();
    for glyph in glyphs {
        match fragments.last_mut() {
            Some(last) if last.takes(&glyph) => {
                last.widen(glyph.x0, glyph.x1);
                last.glyphs.push(glyph);
            }
            _ => fragments.push(Fragment::new(glyph)),
        }
    }
    fragments
}

/// Joins fragments side by side on one baseline, in whatever order they were shown.
fn join_rows(mut fragments: Vec<Fragment>) -> Vec<Fragment> {
    fragments.sort_by(|a, b| a.y.total_cmp(&b.y));
    let mut joined: Vec<Fragment> = Vec::with_capacity(fragments.len());
    let mut row: Vec<Fragment> = Vec::new();
    for fragment in fragments {
        if row.first().is_some_and(|first| fragment.y - first.y > 0.2 * first.size.min(fragment.size)) {
            join_row(&mut row, &mut joined);
        }
        row.push(fragment);
    }
    join_row(&mut row, &mut joined);
    joined
}

fn join_row(row: &mut Vec<Fragment>, joined: &mut Vec<Fragment>) {
    row.sort_by(|a, b| a.x0.total_cmp(&b.x0));
    let first = joined.len();
    for fragment in row.drain(..) {
        let last = joined.len().checked_sub(1).filter(|last| *last >= first);
        match last.map(|last| &mut joined[last]) {
            Some(last)
                if fragment.x0 - last.x1 < WIDEST_SPACE * last.size.min(fragment.size)
                    && (fragment.size - last.size).abs() < 0.35 * last.size.max(fragment.size) =>
            {
                last.absorb(fragment);
            }
            _ => joined.push(fragment),
        }
    }
}

/// Puts indices, powers and notes' numbers, which are smaller and off the baseline, where they belong.
fn attach_raised(fragments: Vec<Fragment>) -> Vec<Fragment> {
    let is_small = |small: &Fragment, large: &Fragment| small.size < 0.85 * large.size;
    let mut taken: Vec<Option<usize>> = vec![None; fragments.len()];
    for (index, small) in fragments.iter().enumerate().filter(|(_, it)| it.glyphs.len() <= 12) {
        // Sorted by baseline: only neighbours can be close enough. 60 bounds the work on a page full of scraps.
        let near = index.saturating_sub(60)..fragments.len().min(index + 60);
        let host = near
            .filter(|other| {
                let large = &fragments[*other];
                *other != index
                    && is_small(small, large)
                    && (large.y - small.y).abs() < 0.6 * large.size
                    && small.gap(large.x0, large.x1) < 0.35 * large.size
            })
            .min_by(|a, b| {
                let distance = |other: &usize| small.gap(fragments[*other].x0, fragments[*other].x1);
                distance(a).total_cmp(&distance(b))
            });
        taken[index] = host;
    }
    // A host that is itself taken keeps its guests: they stay where they are.
    for index in 0..taken.len() {
        if taken[index].is_some_and(|host| taken[host].is_some()) {
            taken[index] = None;
        }
    }
    let mut slots: Vec<Option<Fragment>> = fragments.into_iter().map(Some).collect();
    for index in 0..slots.len() {
        if let Some(host) = taken[index]
            && let Some(small) = slots[index].take()
        {
            match &mut slots[host] {
                Some(large) => large.absorb(small),
                None => slots[index] = Some(small),
            }
        }
    }
    slots.into_iter().flatten().collect()
}

fn segment(fragment: Fragment) -> Option<Segment> {
    let Fragment { mut glyphs, x0, x1, y, size } = fragment;
    glyphs.sort_by(|a, b| a.x0.total_cmp(&b.x0));
    without_doubles(&mut glyphs);
    let bold = glyphs.iter().filter(|glyph| glyph.bold).count() * 2 > glyphs.len();
    let (text, right_to_left) = direction::logical(&spaced(&glyphs));
    let characters = text.chars().filter(|character| !character.is_whitespace()).count();
    (characters > 0).then_some(Segment { text, x0, x1, y, size, bold, right_to_left, characters })
}

/// Bold is often made by showing a character twice, a little aside.
fn without_doubles(glyphs: &mut Vec<Glyph>) {
    glyphs.dedup_by(|later, earlier| {
        let double = later.said == earlier.said
            && later.said != Said::Unknown
            && later.x0 - earlier.x0 < 0.15 * earlier.size
            && (later.x1 - later.x0) > 0.2 * earlier.size
            && (later.y - earlier.y).abs() < 0.15 * earlier.size;
        if double {
            earlier.spaces = [earlier.spaces[0].or(later.spaces[0]), later.spaces[1].or(earlier.spaces[1])];
            earlier.bold = true;
        }
        double
    });
}

/// The pieces of text from left to right, with spaces between words.
fn spaced(glyphs: &[Glyph]) -> Vec<String> {
    let gap = |pair: &[Glyph]| (pair[1].x0 - pair[0].x1) / pair[0].size.max(pair[1].size).max(0.1);
    // Text that is spaced out letter by letter has gaps everywhere; what is wider than most of them is a space.
    let mut gaps: Vec<f32> = glyphs.windows(2).map(gap).collect();
    let usual = if gaps.len() >= 4 {
        let middle = gaps.len() / 2;
        *gaps.select_nth_unstable_by(middle, f32::total_cmp).1
    } else {
        0.0
    };
    let least = LEAST_SPACE + usual.clamp(0.0, 0.6);
    let mut spaces: Vec<f32> = glyphs.iter().flat_map(|glyph| glyph.spaces).flatten().collect();
    spaces.sort_by(f32::total_cmp);
    let mut spaces = spaces.into_iter().peekable();
    let middle = |glyph: &Glyph| (glyph.x0 + glyph.x1) * 0.5;
    let mut pieces = Vec::with_capacity(glyphs.len() + glyphs.len() / 4);
    for (index, glyph) in glyphs.iter().enumerate() {
        let text = match &glyph.said {
            Said::Character(character) => character.to_string(),
            Said::Several(text) => text.to_string(),
            Said::Unknown => "\u{fffd}".to_owned(),
        };
        let is_mark = text.chars().all(direction::is_mark);
        match pieces.last_mut() {
            // A mark belongs to the letter that it stands over, whichever way the line goes.
            Some(last) if is_mark && last != " " => String::push_str(last, &text),
            _ => pieces.push(text),
        }
        let Some(next) = glyphs.get(index + 1) else { break };
        while spaces.next_if(|space| *space <= middle(glyph)).is_some() {}
        let shown = spaces.next_if(|space| *space < middle(next)).is_some();
        if shown || (next.x0 - glyph.x1) / glyph.size.max(next.size).max(0.1) > least {
            pieces.push(" ".to_owned());
        }
    }
    pieces
}
