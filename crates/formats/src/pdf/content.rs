//! The content of a page: which characters stand where.
//!
//! Only what moves or shows text is followed (PDF 2.0, 9.4): the matrices, the text state, forms within forms. Paths, colours
//! and images are passed over; images are counted, since a page of images alone is a scan.

use hayro_font::kurbo::{Affine, Point, Vec2};
use hayro_syntax::content::TypedIter;
use hayro_syntax::content::ops::TypedInstruction;
use hayro_syntax::object::{Dict, Name, Object, Stream, String as PdfString};
use hayro_syntax::page::{Page, Resources};

use super::font::{Fonts, Said};

/// How deep forms may lie in each other.
const DEEPEST_FORM: usize = 12;
/// Most operators of one file. Forms that show each other many times over are few bytes and endless work.
const MOST_OPERATORS: u64 = 50_000_000;

/// A character where it stands. `x` grows along the line, `y` down the page.
#[derive(Clone, Debug)]
pub(crate) struct Glyph {
    pub(crate) said: Said,
    pub(crate) x0: f32,
    pub(crate) x1: f32,
    /// The baseline.
    pub(crate) y: f32,
    pub(crate) size: f32,
    pub(crate) bold: bool,
    /// Where white space was shown after it, whichever side that is on: the first and the last of it.
    pub(crate) spaces: [Option<f32>; 2],
}

/// A character and the way its line goes.
#[derive(Clone, Debug)]
struct Placed {
    said: Said,
    origin: Point,
    advance: Vec2,
    size: f32,
    bold: bool,
    /// The middle of white space that was shown after it, the first and the last.
    spaces: [Option<Point>; 2],
}

/// What a page shows.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// Glyphs of lines that go the same way, each turned to be horizontal; most glyphs first.
    pub(crate) groups: Vec<Vec<Glyph>>,
    /// Images there are.
    pub(crate) images: usize,
    /// Codes shown that the fonts have no text for.
    pub(crate) unknown: usize,
    /// Codes shown, white space not counted.
    pub(crate) codes: usize,
}

#[derive(Clone)]
struct State {
    matrix: Affine,
    font: Option<usize>,
    size: f64,
    character_space: f64,
    word_space: f64,
    scale: f64,
    leading: f64,
    rise: f64,
}

/// Text that stands for what is shown in a marked part (`ActualText`).
struct Marked {
    text: Option<String>,
    used: bool,
}

/// Reads the pages of one file.
pub(crate) struct Interpreter<'a> {
    fonts: Fonts<'a>,
    operators: u64,
    placed: Vec<Placed>,
    marked: Vec<Marked>,
    shown: Shown,
    state: State,
    text_matrix: Affine,
    line_matrix: Affine,
}

impl<'a> Interpreter<'a> {
    pub(crate) fn new() -> Self {
        Self {
            fonts: Fonts::new(),
            operators: 0,
            placed: Vec::new(),
            marked: Vec::new(),
            shown: Shown::default(),
            state: State::at(Affine::IDENTITY),
            text_matrix: Affine::IDENTITY,
            line_matrix: Affine::IDENTITY,
        }
    }

    /// What `page` shows, filled-in fields included.
    pub(crate) fn page(&mut self, page: &Page<'a>) -> Shown {
        let upright = Affine::new(page.initial_transform(true).as_coeffs());
        self.state = State::at(upright);
        self.marked.clear();
        self.content(page.typed_operations(), page.resources(), 0);
        self.annotations(page, upright);
        let (width, height) = page.render_dimensions();
        let mut shown = std::mem::take(&mut self.shown);
        shown.groups = by_direction(std::mem::take(&mut self.placed), f64::from(width), f64::from(height));
        shown
    }

    fn content(&mut self, mut operations: TypedIter<'_>, resources: &Resources<'a>, depth: usize) {
        let mut stack: Vec<State> = Vec::new();
        let marked = self.marked.len();
        while let Some(operation) = operations.next() {
            self.operators += 1;
            if self.operators > MOST_OPERATORS {
                return;
            }
            self.step(&operation, resources, depth, &mut stack);
        }
        self.marked.truncate(marked);
    }

    fn step(
        &mut self,
        operation: &TypedInstruction<'_, '_>,
        resources: &Resources<'a>,
        depth: usize,
        stack: &mut Vec<State>,
    ) {
        use TypedInstruction as T;
        match operation {
            T::SaveState(_) if stack.len() < 1000 => stack.push(self.state.clone()),
            T::RestoreState(_) => {
                if let Some(state) = stack.pop() {
                    self.state = state;
                }
            }
            T::Transform(m) => {
                self.state.matrix *=
                    Affine::new([m.0.as_f64(), m.1.as_f64(), m.2.as_f64(), m.3.as_f64(), m.4.as_f64(), m.5.as_f64()]);
            }
            T::BeginText(_) => self.set_matrix(Affine::IDENTITY),
            T::SetTextMatrix(m) => {
                self.set_matrix(Affine::new([
                    m.0.as_f64(),
                    m.1.as_f64(),
                    m.2.as_f64(),
                    m.3.as_f64(),
                    m.4.as_f64(),
                    m.5.as_f64(),
                ]));
            }
            T::NextLine(by) => self.next_line(by.0.as_f64(), by.1.as_f64()),
            T::NextLineAndSetLeading(by) => {
                self.state.leading = -by.1.as_f64();
                self.next_line(by.0.as_f64(), by.1.as_f64());
            }
            T::NextLineUsingLeading(_) => self.next_line(0.0, -self.state.leading),
            T::CharacterSpacing(value) => self.state.character_space = value.0.as_f64(),
            T::WordSpacing(value) => self.state.word_space = value.0.as_f64(),
            T::HorizontalScaling(value) => self.state.scale = value.0.as_f64() / 100.0,
            T::TextLeading(value) => self.state.leading = value.0.as_f64(),
            T::TextRise(value) => self.state.rise = value.0.as_f64(),
            T::TextFont(font) => {
                self.state.size = font.1.as_f64();
                let name: &[u8] = font.0.as_ref();
                self.state.font =
                    resources.fonts.get::<Dict<'a>>(name).and_then(|dictionary| self.fonts.find(&dictionary));
            }
            T::ShowText(text) => self.show(text.0.as_bytes()),
            T::NextLineAndShowText(text) => {
                self.next_line(0.0, -self.state.leading);
                self.show(text.0.as_bytes());
            }
            T::ShowTextWithParameters(text) => {
                self.state.word_space = text.0.as_f64();
                self.state.character_space = text.1.as_f64();
                self.next_line(0.0, -self.state.leading);
                self.show(text.2.as_bytes());
            }
            T::ShowTexts(pieces) => {
                for piece in pieces.0.iter::<Object<'_>>() {
                    match piece {
                        Object::String(text) => self.show(text.as_bytes()),
                        Object::Number(number) => self.adjust(number.as_f64()),
                        _ => {}
                    }
                }
            }
            T::XObject(name) => {
                let name: &[u8] = name.0.as_ref();
                if let Some(stream) = resources.x_objects.get::<Stream<'a>>(name) {
                    self.external(&stream, resources, depth);
                }
            }
            T::InlineImage(_) => self.shown.images += 1,
            T::BeginMarkedContent(_) => self.marked.push(Marked { text: None, used: false }),
            T::BeginMarkedContentWithProperties(marked) => {
                let text = match marked.1 {
                    Object::Name(name) => {
                        resources.properties.get::<Dict<'_>>(AsRef::<[u8]>::as_ref(name)).as_ref().and_then(actual_text)
                    }
                    Object::Dict(properties) => actual_text(properties),
                    _ => None,
                };
                if self.marked.len() < 1000 {
                    self.marked.push(Marked { text, used: false });
                }
            }
            T::EndMarkedContent(_) => {
                self.marked.pop();
            }
            _ => {}
        }
    }

    fn set_matrix(&mut self, matrix: Affine) {
        self.text_matrix = matrix;
        self.line_matrix = matrix;
    }

    fn next_line(&mut self, x: f64, y: f64) {
        let matrix = self.line_matrix * Affine::translate((x, y));
        self.set_matrix(matrix);
    }

    fn is_vertical(&mut self) -> bool {
        self.state.font.and_then(|number| self.fonts.get(number)).is_some_and(|font| font.vertical)
    }

    /// Moves the pen back by thousandths of the font's size.
    fn adjust(&mut self, thousandths: f64) {
        let by = -thousandths / 1000.0 * self.state.size;
        let vertical = self.is_vertical();
        self.advance(if vertical { by } else { by * self.state.scale }, vertical);
    }

    fn advance(&mut self, by: f64, vertical: bool) {
        let by = if vertical { (0.0, by) } else { (by, 0.0) };
        self.text_matrix *= Affine::translate(by);
    }

    fn show(&mut self, bytes: &[u8]) {
        let Some(number) = self.state.font else { return };
        let mut offset = 0;
        while offset < bytes.len() {
            let Some(font) = self.fonts.get(number) else { return };
            let (code, length) = font.read(bytes, offset);
            offset += length.max(1);
            let (found, bold, vertical) = (font.code(code), font.bold, font.vertical);
            let State { size, scale, rise, character_space, word_space, matrix, .. } = self.state;
            let width = f64::from(found.advance) / 1000.0 * size;
            let spaces = character_space + if code == 32 && length == 1 { word_space } else { 0.0 };
            let placed = matrix * self.text_matrix;
            // Spacing between characters is part of none of them.
            let along = if vertical { Vec2::new(0.0, -width) } else { Vec2::new(width * scale, 0.0) };
            let origin = placed * Point::new(0.0, rise);
            let advance = placed * Point::new(along.x, along.y + rise) - origin;
            let up = placed * Point::new(0.0, size) - placed * Point::ORIGIN;
            self.place(found.said, origin, advance, up.hypot() as f32, bold);
            let by = if vertical { -width - spaces } else { (width + spaces) * scale };
            self.advance(by, vertical);
        }
    }

    fn place(&mut self, said: Said, origin: Point, advance: Vec2, size: f32, bold: bool) {
        if !(origin.x.is_finite() && origin.y.is_finite() && advance.x.is_finite() && advance.y.is_finite()) {
            return;
        }
        if is_space(&said) {
            if let Some(last) = self.placed.last_mut() {
                let middle = origin + advance * 0.5;
                last.spaces = [last.spaces[0].or(Some(middle)), Some(middle)];
            }
            return;
        }
        self.shown.codes += 1;
        let said = match self.marked.iter_mut().rev().find(|marked| marked.text.is_some()) {
            Some(marked) => {
                if marked.used {
                    if let Some(last) = self.placed.last_mut() {
                        // The text stands for all that is shown in its place.
                        last.advance = origin + advance - last.origin;
                    }
                    return;
                }
                marked.used = true;
                match marked.text.as_deref() {
                    None | Some("") => return,
                    Some(text) => Said::Several(text.into()),
                }
            }
            None => said,
        };
        if said == Said::Unknown {
            self.shown.unknown += 1;
        }
        self.placed.push(Placed { said, origin, advance, size, bold, spaces: [None; 2] });
    }

    fn external(&mut self, stream: &Stream<'a>, resources: &Resources<'a>, depth: usize) {
        let dictionary = stream.dict();
        match dictionary.get::<Name<'_>>(b"Subtype") {
            Some(kind) if AsRef::<[u8]>::as_ref(&kind) == b"Image" => self.shown.images += 1,
            Some(kind) if AsRef::<[u8]>::as_ref(&kind) == b"Form" && depth < DEEPEST_FORM => {
                let matrix = dictionary.get::<[f64; 6]>(b"Matrix").map_or(Affine::IDENTITY, Affine::new);
                self.form(stream, self.state.matrix * matrix, resources, depth);
            }
            _ => {}
        }
    }

    fn form(&mut self, stream: &Stream<'a>, matrix: Affine, resources: &Resources<'a>, depth: usize) {
        let Ok(content) = stream.decoded_data() else { return };
        let own = stream.dict().get::<Dict<'a>>(b"Resources").map(Resources::new);
        let kept = (self.state.clone(), self.text_matrix, self.line_matrix);
        self.state.matrix = matrix;
        self.content(TypedIter::new(&content), own.as_ref().unwrap_or(resources), depth + 1);
        (self.state, self.text_matrix, self.line_matrix) = kept;
    }

    /// What fields and free text show: it belongs to the page for whoever filled it in.
    fn annotations(&mut self, page: &Page<'a>, upright: Affine) {
        let Some(annotations) = page.raw().get::<hayro_syntax::object::Array<'a>>(b"Annots") else { return };
        for annotation in annotations.iter::<Dict<'a>>().take(10_000) {
            let kind = annotation.get::<Name<'_>>(b"Subtype");
            let shows = kind.is_some_and(|kind| matches!(AsRef::<[u8]>::as_ref(&kind), b"Widget" | b"FreeText"));
            let hidden = annotation.get::<i32>(b"F").unwrap_or(0) & 0b10_0010 != 0;
            if !shows || hidden {
                continue;
            }
            let Some(look) = annotation.get::<Dict<'a>>(b"AP").and_then(|looks| looks.get::<Stream<'a>>(b"N")) else {
                continue;
            };
            let corner =
                annotation.get::<[f64; 4]>(b"Rect").map_or((0.0, 0.0), |at| (at[0].min(at[2]), at[1].min(at[3])));
            self.state = State::at(upright);
            self.form(&look, upright * Affine::translate(corner), page.resources(), 0);
        }
    }
}

impl State {
    fn at(matrix: Affine) -> Self {
        Self {
            matrix,
            font: None,
            size: 1.0,
            character_space: 0.0,
            word_space: 0.0,
            scale: 1.0,
            leading: 0.0,
            rise: 0.0,
        }
    }
}

fn is_space(said: &Said) -> bool {
    match said {
        Said::Character(character) => character.is_whitespace(),
        Said::Several(text) => text.trim().is_empty(),
        Said::Unknown => false,
    }
}

fn actual_text(properties: &Dict<'_>) -> Option<String> {
    properties.get::<PdfString<'_>>(b"ActualText").map(|text| super::text_string(text.as_bytes()))
}

/// Lines within five degrees of each other go the same way.
const DEGREES: f64 = 5.0;

/// Groups glyphs by the way their lines go and turns each group to be horizontal. What lies off the page is left out.
fn by_direction(placed: Vec<Placed>, width: f64, height: f64) -> Vec<Vec<Glyph>> {
    let mut groups: Vec<(i32, Vec<Glyph>)> = Vec::new();
    let mut last = 0;
    for one in placed {
        let (x, y) = (one.origin.x, one.origin.y);
        if x < -width * 0.05 || x > width * 1.05 || y < -height * 0.05 || y > height * 1.05 || one.size <= 0.0 {
            continue;
        }
        let angle = if one.advance.hypot2() < 1e-9 {
            last
        } else {
            let turned = (one.advance.atan2().to_degrees() / DEGREES).round() as i32;
            // Half a turn to the left is half a turn to the right.
            if turned == -36 { 36 } else { turned }
        };
        last = angle;
        let (sine, cosine) = (f64::from(angle) * DEGREES).to_radians().sin_cos();
        let turn = |x: f64, y: f64| (x * cosine + y * sine, y * cosine - x * sine);
        let (x0, y0) = turn(x, y);
        let (x1, _) = turn(x + one.advance.x, y + one.advance.y);
        let glyph = Glyph {
            said: one.said,
            x0: x0.min(x1) as f32,
            x1: x0.max(x1) as f32,
            y: y0 as f32,
            size: one.size,
            bold: one.bold,
            spaces: one.spaces.map(|space| space.map(|middle| turn(middle.x, middle.y).0 as f32)),
        };
        match groups.iter_mut().find(|(other, _)| *other == angle) {
            Some((_, group)) => group.push(glyph),
            None => groups.push((angle, vec![glyph])),
        }
    }
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.len()));
    groups.into_iter().map(|(_, group)| group).collect()
}
