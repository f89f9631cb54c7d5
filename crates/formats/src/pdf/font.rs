//! What the codes of a font say, and how wide they are. Asked once for each code of a font.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use hayro_cmap::BfString;
use hayro_font::{CMapResolverFn, Font, FontCache, FontGlyph, FontQuery, FontResolverFn};
use hayro_syntax::object::{Dict, Name};
use unicode_normalization::UnicodeNormalization;

/// What a code of a font says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    /// One character.
    Character(char),
    /// Several: a ligature.
    Several(Rc<str>),
    /// The font does not tell.
    Unknown,
}

/// A code of a font, in thousandths of the font's size.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub(crate) said: Said,
    /// How far the pen moves along the line.
    pub(crate) advance: f32,
}

/// A font with the codes that were asked for.
pub(crate) struct LoadedFont<'a> {
    font: Font<'a>,
    codes: HashMap<u32, Code>,
    pub(crate) bold: bool,
    pub(crate) vertical: bool,
}

impl LoadedFont<'_> {
    /// The code at `offset` of a string, and its length in bytes.
    pub(crate) fn read(&mut self, bytes: &[u8], offset: usize) -> (u32, usize) {
        self.font.read_code(bytes, offset)
    }

    pub(crate) fn code(&mut self, code: u32) -> Code {
        if let Some(known) = self.codes.get(&code) {
            return known.clone();
        }
        let advance = self.font.code_advance(code);
        let advance = if self.vertical { -advance.y } else { advance.x };
        let unicode = match self.font.glyph(self.font.map_code(code), code) {
            FontGlyph::Outline(glyph) => glyph.as_unicode(),
            FontGlyph::Type3(glyph) => glyph.as_unicode(),
        };
        let found = Code { said: said(unicode), advance: advance as f32 };
        self.codes.insert(code, found.clone());
        found
    }
}

fn said(unicode: Option<BfString>) -> Said {
    let text: String = match unicode {
        None => return Said::Unknown,
        Some(BfString::Char(character)) => plain(character),
        Some(BfString::String(text)) => text.chars().map(plain).collect(),
    };
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (None, _) => Said::Unknown,
        (Some(only), None) => Said::Character(only),
        _ => Said::Several(text.into()),
    }
}

/// A character as text has it: ligatures and the shapes of Arabic letters are taken apart; what can be no text is left out.
fn plain(character: char) -> String {
    match character {
        '\u{fb00}'..='\u{fb06}' | '\u{fb13}'..='\u{fb17}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' => {
            // A presentation form of a mark alone is a space and the mark; the space is none of the text.
            [character].into_iter().nfkc().filter(|part| *part != ' ').collect()
        }
        // Bullets of the symbol fonts.
        '\u{f0b7}' | '\u{f0a7}' | '\u{f076}' | '\u{f0d8}' | '\u{f0fc}' => "•".to_owned(),
        '\u{e000}'..='\u{f8ff}' | '\u{fffd}' | '\u{feff}' => String::new(),
        '\t' | '\n' | '\r' | '\u{a0}' => " ".to_owned(),
        character if character.is_control() => String::new(),
        character => character.to_string(),
    }
}

/// The fonts of a file.
pub(crate) struct Fonts<'a> {
    cache: FontCache<'a>,
    fonts: Vec<LoadedFont<'a>>,
    /// By where the dictionary of a font lies in the file.
    known: HashMap<usize, Option<usize>>,
    programs: FontResolverFn,
    maps: CMapResolverFn,
}

impl<'a> Fonts<'a> {
    pub(crate) fn new() -> Self {
        let programs: FontResolverFn = Arc::new(|query| match query {
            FontQuery::Standard(font) => Some(font.get_font_data()),
            FontQuery::Fallback(font) => Some(font.pick_standard_font().get_font_data()),
        });
        let maps: CMapResolverFn = Arc::new(hayro_cmap::load_embedded);
        Self { cache: FontCache::new(), fonts: Vec::new(), known: HashMap::new(), programs, maps }
    }

    /// The number of the font that `dictionary` describes; `None` if it can't be read.
    pub(crate) fn find(&mut self, dictionary: &Dict<'a>) -> Option<usize> {
        let place = dictionary.data().as_ptr() as usize;
        if let Some(known) = self.known.get(&place) {
            return *known;
        }
        let number = self.cache.font(dictionary, &self.programs, &self.maps).map(|font| {
            let name = dictionary.get::<Name<'_>>(b"BaseFont").map(|name| name.as_str().to_ascii_lowercase());
            let bold =
                name.is_some_and(|name| ["bold", "black", "heavy", "cmbx", "-bd"].iter().any(|it| name.contains(it)));
            let vertical = !font.is_horizontal();
            self.fonts.push(LoadedFont { font, codes: HashMap::new(), bold, vertical });
            self.fonts.len() - 1
        });
        self.known.insert(place, number);
        number
    }

    pub(crate) fn get(&mut self, number: usize) -> Option<&mut LoadedFont<'a>> {
        self.fonts.get_mut(number)
    }
}
