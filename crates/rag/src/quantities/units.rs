//! The tables of units and currencies, and the look-up of a unit that follows a number.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// What a quantity measures. Quantities of different dimensions are never compared or added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Dimension {
    /// Base unit: metre.
    Length,
    /// Base unit: kilogram.
    Mass,
    /// A duration. Base unit: second; a month is 30.4375 days and a year 365.25 days.
    Time,
    /// Base unit: degree Celsius (affine).
    Temperature,
    /// Base unit: metre per second.
    Speed,
    /// Base unit: square metre.
    Area,
    /// Base unit: litre.
    Volume,
    /// Base unit: joule.
    Energy,
    /// Base unit: watt.
    Power,
    /// Base unit: pascal.
    Pressure,
    /// Base unit: hertz.
    Frequency,
    /// Base unit: byte.
    Data,
    /// An amount of one currency; amounts of two currencies are never compared.
    Money,
    /// Parts of a hundred.
    Percent,
    /// A plain number, perhaps with the noun it counts.
    Count,
    /// A calendar date of year, month or day precision.
    Date,
}

impl Dimension {
    /// The word a reader would use for the missing value, such as "distance".
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Dimension::Length => "length",
            Dimension::Mass => "weight",
            Dimension::Time => "duration",
            Dimension::Temperature => "temperature",
            Dimension::Speed => "speed",
            Dimension::Area => "area",
            Dimension::Volume => "volume",
            Dimension::Energy => "energy",
            Dimension::Power => "power",
            Dimension::Pressure => "pressure",
            Dimension::Frequency => "frequency",
            Dimension::Data => "size",
            Dimension::Money => "amount",
            Dimension::Percent => "percentage",
            Dimension::Count => "number",
            Dimension::Date => "date",
        }
    }
}

/// A unit: `base = value * scale + offset`, in the base unit of its dimension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    /// What it measures.
    pub dimension: Dimension,
    /// The canonical symbol ("km", "EUR", "%"); for counts the noun in the singular, or nothing.
    pub symbol: Cow<'static, str>,
    /// Factor to the base unit.
    pub scale: f64,
    /// Summand to the base unit (temperatures only).
    pub offset: f64,
}

impl Unit {
    pub(super) fn count(noun: Option<String>) -> Unit {
        Unit { dimension: Dimension::Count, symbol: Cow::Owned(noun.unwrap_or_default()), scale: 1.0, offset: 0.0 }
    }

    pub(super) fn date() -> Unit {
        Unit { dimension: Dimension::Date, symbol: Cow::Borrowed(""), scale: 1.0, offset: 0.0 }
    }

    pub(super) fn currency(code: &'static str) -> Unit {
        Unit { dimension: Dimension::Money, symbol: Cow::Borrowed(code), scale: 1.0, offset: 0.0 }
    }

    /// A unit of the table by its canonical symbol.
    pub(super) fn named(symbol: &str) -> Option<Unit> {
        MEASURES.iter().find(|row| row.symbol == symbol).map(MeasureRow::unit)
    }

    /// Whether numbers in both units can be compared without conversion.
    #[must_use]
    pub fn is_same(&self, other: &Unit) -> bool {
        self.dimension == other.dimension && self.scale == other.scale && self.symbol == other.symbol
    }
}

struct MeasureRow {
    dimension: Dimension,
    symbol: &'static str,
    scale: f64,
    offset: f64,
    /// Spellings where upper and lower case differ in meaning, separated by `|`.
    symbols: &'static str,
    /// Spelled words in lower case, separated by `|`.
    words: &'static str,
}

impl MeasureRow {
    fn unit(&self) -> Unit {
        Unit { dimension: self.dimension, symbol: Cow::Borrowed(self.symbol), scale: self.scale, offset: self.offset }
    }
}

const fn row(
    dimension: Dimension,
    symbol: &'static str,
    scale: f64,
    symbols: &'static str,
    words: &'static str,
) -> MeasureRow {
    MeasureRow { dimension, symbol, scale, offset: 0.0, symbols, words }
}

const fn affine(
    symbol: &'static str,
    scale: f64,
    offset: f64,
    symbols: &'static str,
    words: &'static str,
) -> MeasureRow {
    MeasureRow { dimension: Dimension::Temperature, symbol, scale, offset, symbols, words }
}

use Dimension::{Area, Data, Energy, Frequency, Length, Mass, Percent, Power, Pressure, Speed, Time, Volume};

static MEASURES: &[MeasureRow] = &[
    row(Length, "mm", 0.001, "mm", "millimetre|millimetres|millimeter|millimeters"),
    row(Length, "cm", 0.01, "cm", "centimetre|centimetres|centimeter|centimeters|zentimeter"),
    row(Length, "m", 1.0, "m", "metre|metres|meter|meters|metern"),
    row(Length, "km", 1000.0, "km|Km|KM", "kilometre|kilometres|kilometer|kilometers|kilometern|kms"),
    row(Length, "miles", 1609.344, "mi", "mile|miles|meilen|statute miles|statute mile"),
    row(Length, "nautical miles", 1852.0, "nmi|NM", "nautical mile|nautical miles|seemeilen"),
    row(Length, "ft", 0.3048, "ft", "foot|feet"),
    row(Length, "in", 0.0254, "", "inch|inches"),
    row(Length, "yd", 0.9144, "yd|yds", "yard|yards"),
    row(Length, "light-years", 9.460_730_472_580_8e15, "ly", "light-year|light-years|light year|light years"),
    row(Length, "µm", 1e-6, "µm|μm|um", "micrometre|micrometres|micrometer|micrometers|microns"),
    row(Length, "nm", 1e-9, "nm", "nanometre|nanometres|nanometer|nanometers"),
    row(Mass, "mg", 1e-6, "mg", "milligram|milligrams|milligramme|milligrammes"),
    row(Mass, "µg", 1e-9, "µg|μg|mcg", "microgram|micrograms"),
    row(Mass, "g", 0.001, "g", "gram|grams|gramme|grammes|gramm"),
    row(Mass, "kg", 1.0, "kg|Kg|KG", "kilogram|kilograms|kilogramme|kilogrammes|kilogramm|kilos|kilo|kgs"),
    row(Mass, "t", 1000.0, "t", "tonne|tonnes|metric ton|metric tons|tonnen"),
    row(Mass, "short tons", 907.184_74, "", "ton|tons|short ton|short tons"),
    row(Mass, "lb", 0.453_592_37, "lb|lbs", "pound|pounds"),
    row(Mass, "oz", 0.028_349_523_125, "oz", "ounce|ounces"),
    row(Time, "ms", 0.001, "ms|msec", "millisecond|milliseconds"),
    row(Time, "µs", 1e-6, "µs|μs", "microsecond|microseconds"),
    row(Time, "s", 1.0, "s|sec|secs", "second|seconds|sekunde|sekunden"),
    row(Time, "min", 60.0, "min|mins", "minute|minutes|minuten"),
    row(Time, "h", 3600.0, "h|hr|hrs", "hour|hours|stunde|stunden"),
    row(Time, "days", 86_400.0, "", "day|days|calendar day|calendar days|tag|tage|tagen"),
    row(Time, "business days", 86_400.0, "", "business day|business days|working day|working days"),
    row(Time, "weeks", 604_800.0, "", "week|weeks|woche|wochen"),
    row(Time, "months", 2_629_800.0, "", "month|months|monat|monate|monaten"),
    row(Time, "years", 31_557_600.0, "yr|yrs", "year|years|jahr|jahre|jahren"),
    row(Time, "decades", 315_576_000.0, "", "decade|decades"),
    row(Time, "centuries", 3_155_760_000.0, "", "centuries"),
    affine("°C", 1.0, 0.0, "°C|° C|ºC|℃", "degrees celsius|degree celsius|degrees centigrade|celsius|grad celsius"),
    affine(
        "°F",
        5.0 / 9.0,
        -160.0 / 9.0,
        "°F|° F|ºF|℉",
        "degrees fahrenheit|degree fahrenheit|fahrenheit|degrees f|grad fahrenheit",
    ),
    affine("K", 1.0, -273.15, "K", "kelvin|kelvins"),
    row(
        Speed,
        "km/h",
        1.0 / 3.6,
        "km/h|kmh|km/hr|kph|kmph|Km/h",
        "kilometres per hour|kilometers per hour|kilometre per hour|kilometer per hour|stundenkilometer",
    ),
    row(Speed, "mph", 0.447_04, "mph|MPH|mi/h", "miles per hour|mile per hour|miles an hour"),
    row(Speed, "m/s", 1.0, "m/s|m/sec", "metres per second|meters per second|metre per second|meter per second"),
    row(Speed, "km/s", 1000.0, "km/s", "kilometres per second|kilometers per second"),
    row(Speed, "knots", 1852.0 / 3600.0, "kn|kt|kts", "knot|knots|knoten"),
    row(Speed, "ft/s", 0.3048, "ft/s", "feet per second"),
    row(Area, "mm²", 1e-6, "mm²|mm2", "square millimetres|square millimeters"),
    row(Area, "cm²", 1e-4, "cm²|cm2", "square centimetres|square centimeters"),
    row(Area, "m²", 1.0, "m²|m2|sqm|sq m|qm", "square metre|square metres|square meter|square meters|quadratmeter"),
    row(
        Area,
        "km²",
        1e6,
        "km²|km2|sq km",
        "square kilometre|square kilometres|square kilometer|square kilometers|quadratkilometer",
    ),
    row(Area, "ha", 1e4, "ha", "hectare|hectares|hektar"),
    row(Area, "acres", 4_046.856_422_4, "ac", "acre|acres"),
    row(Area, "sq mi", 2_589_988.110_336, "sq mi|mi²|mi2", "square mile|square miles"),
    row(Area, "sq ft", 0.092_903_04, "sq ft|ft²|ft2", "square foot|square feet"),
    row(Volume, "ml", 0.001, "ml|mL|cc", "millilitre|millilitres|milliliter|milliliters"),
    row(Volume, "cl", 0.01, "cl|cL", "centilitre|centilitres|centiliter|centiliters"),
    row(Volume, "l", 1.0, "l|L", "litre|litres|liter|liters|litern"),
    row(Volume, "m³", 1000.0, "m³|m3", "cubic metre|cubic metres|cubic meter|cubic meters|kubikmeter"),
    row(Volume, "km³", 1e12, "km³|km3", "cubic kilometre|cubic kilometres|cubic kilometer|cubic kilometers"),
    row(Volume, "cm³", 0.001, "cm³|cm3", "cubic centimetre|cubic centimetres|cubic centimeter|cubic centimeters"),
    row(Volume, "cubic ft", 28.316_846_592, "cu ft|ft³|ft3", "cubic foot|cubic feet"),
    row(Volume, "US gal", 3.785_411_784, "gal", "gallon|gallons|us gallons|us gallon"),
    row(Volume, "cups", 0.236_588_236_5, "", "cup|cups"),
    row(Volume, "tbsp", 0.014_786_764_781_25, "tbsp", "tablespoon|tablespoons"),
    row(Volume, "tsp", 0.004_928_921_593_75, "tsp", "teaspoon|teaspoons"),
    row(Volume, "fl oz", 0.029_573_529_562_5, "fl oz", "fluid ounce|fluid ounces"),
    row(Energy, "J", 1.0, "J", "joule|joules"),
    row(Energy, "kJ", 1000.0, "kJ", "kilojoule|kilojoules"),
    row(Energy, "MJ", 1e6, "MJ", "megajoule|megajoules"),
    row(Energy, "kcal", 4184.0, "kcal|Cal|kCal", "kilocalorie|kilocalories|calorie|calories|kalorien"),
    row(Energy, "Wh", 3600.0, "Wh", "watt-hour|watt-hours|watt hours"),
    row(Energy, "kWh", 3.6e6, "kWh|KWh", "kilowatt-hour|kilowatt-hours|kilowatt hour|kilowatt hours|kilowattstunden"),
    row(Energy, "MWh", 3.6e9, "MWh", "megawatt-hour|megawatt-hours|megawatt hours"),
    row(Power, "W", 1.0, "W", "watt|watts"),
    row(Power, "kW", 1000.0, "kW|KW", "kilowatt|kilowatts"),
    row(Power, "MW", 1e6, "MW", "megawatt|megawatts"),
    row(Power, "GW", 1e9, "GW", "gigawatt|gigawatts"),
    row(Power, "hp", 745.699_872, "hp|bhp", "horsepower"),
    row(Pressure, "Pa", 1.0, "Pa", "pascal|pascals"),
    row(Pressure, "hPa", 100.0, "hPa|mbar", "hectopascal|hectopascals|millibar|millibars"),
    row(Pressure, "kPa", 1000.0, "kPa", "kilopascal|kilopascals"),
    row(Pressure, "MPa", 1e6, "MPa", "megapascal|megapascals"),
    row(Pressure, "bar", 1e5, "bar", ""),
    row(Pressure, "psi", 6894.757, "psi|PSI|lb/in²", "pounds per square inch"),
    row(Pressure, "mmHg", 133.322_387, "mmHg|mm Hg", "millimetres of mercury|millimeters of mercury"),
    row(Frequency, "Hz", 1.0, "Hz", "hertz"),
    row(Frequency, "kHz", 1e3, "kHz|KHz", "kilohertz"),
    row(Frequency, "MHz", 1e6, "MHz", "megahertz"),
    row(Frequency, "GHz", 1e9, "GHz", "gigahertz"),
    row(Data, "bytes", 1.0, "", "byte|bytes"),
    row(Data, "bits", 0.125, "", "bit|bits"),
    row(Data, "kB", 1e3, "kB|KB", "kilobyte|kilobytes"),
    row(Data, "MB", 1e6, "MB", "megabyte|megabytes"),
    row(Data, "GB", 1e9, "GB", "gigabyte|gigabytes"),
    row(Data, "TB", 1e12, "TB", "terabyte|terabytes"),
    row(Data, "KiB", 1024.0, "KiB", "kibibyte|kibibytes"),
    row(Data, "MiB", 1_048_576.0, "MiB", "mebibyte|mebibytes"),
    row(Data, "GiB", 1_073_741_824.0, "GiB", "gibibyte|gibibytes"),
    row(Percent, "%", 1.0, "%|％", "percent|per cent|pct|prozent"),
    row(Percent, "‰", 0.1, "‰", "per mille|promille"),
];

/// Currency rows: ISO code, prefix or suffix signs, spelled words in lower case.
static CURRENCIES: &[(&str, &str, &str)] = &[
    ("EUR", "€", "euro|euros"),
    ("USD", "US$|$|USD$", "dollar|dollars|us dollar|us dollars|u.s. dollars|american dollars"),
    ("GBP", "£|GB£", "pound sterling|pounds sterling|british pounds|british pound"),
    ("JPY", "¥|JP¥", "yen|japanese yen"),
    ("CHF", "SFr.", "swiss franc|swiss francs|franken"),
    ("CAD", "C$|CA$", "canadian dollar|canadian dollars"),
    ("AUD", "A$|AU$", "australian dollar|australian dollars"),
    ("NZD", "NZ$", "new zealand dollar|new zealand dollars"),
    ("HKD", "HK$", "hong kong dollars"),
    ("SGD", "S$", "singapore dollars"),
    ("CNY", "CN¥", "yuan|renminbi"),
    ("INR", "₹", "rupee|rupees|indian rupees"),
    ("SEK", "", "swedish krona|swedish kronor|kronor"),
    ("NOK", "", "norwegian krone|norwegian kroner"),
    ("DKK", "", "danish krone|danish kroner"),
    ("PLN", "zł", "zloty|zlotys|złoty|złotych"),
    ("CZK", "Kč", "czech koruna|czech crowns"),
    ("HUF", "", "forint|forints"),
    ("RUB", "₽", "rouble|roubles|ruble|rubles"),
    ("TRY", "₺", "turkish lira|lira"),
    ("KRW", "₩", "korean won"),
    ("BRL", "R$", "brazilian real|brazilian reais|reais"),
    ("MXN", "", "mexican peso|mexican pesos"),
    ("ZAR", "", "rand"),
    ("ILS", "₪", "shekel|shekels"),
];

struct Tables {
    /// Spellings where case matters.
    exact: HashMap<&'static str, Unit>,
    /// Words in lower case.
    words: HashMap<&'static str, Unit>,
    /// Currency signs and codes that may stand before a number, longest first.
    prefixes: Vec<(&'static str, &'static str)>,
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut tables = Tables { exact: HashMap::new(), words: HashMap::new(), prefixes: Vec::new() };
        for row in MEASURES {
            for symbol in row.symbols.split('|').filter(|symbol| !symbol.is_empty()) {
                tables.exact.insert(symbol, row.unit());
            }
            for word in row.words.split('|').filter(|word| !word.is_empty()) {
                tables.words.insert(word, row.unit());
            }
        }
        for &(code, signs, words) in CURRENCIES {
            tables.exact.insert(code, Unit::currency(code));
            tables.prefixes.push((code, code));
            for sign in signs.split('|').filter(|sign| !sign.is_empty()) {
                tables.exact.insert(sign, Unit::currency(code));
                tables.prefixes.push((sign, code));
            }
            for word in words.split('|').filter(|word| !word.is_empty()) {
                tables.words.insert(word, Unit::currency(code));
            }
        }
        tables.prefixes.push(("Euro", "EUR"));
        tables.prefixes.sort_by(|left, right| right.0.len().cmp(&left.0.len()).then(left.0.cmp(right.0)));
        tables
    })
}

/// Whether the character is a letter, digit or a sign that continues a unit spelling.
fn continues_unit(character: char) -> bool {
    character.is_alphanumeric()
}

/// The longest unit that starts at byte `start`, and the byte after it. At most four words are looked at.
pub(super) fn unit_at(text: &str, start: usize) -> Option<(Unit, usize)> {
    let rest = text.get(start..)?;
    let mut best = None;
    let mut words = 0;
    let mut previous: Option<char> = None;
    // A candidate ends wherever a letter or digit run ends, or after a sign such as % or €.
    for (offset, character) in rest.char_indices() {
        if offset > 32 {
            break;
        }
        if offset > 0 && is_boundary(previous, character) {
            consider(&rest[..offset], start, &mut best);
        }
        if character.is_whitespace() {
            words += 1;
            if words > 3 || character == '\n' && rest[offset..].starts_with("\n\n") {
                return best;
            }
        } else if !continues_unit(character)
            && !matches!(character, '/' | '°' | 'º' | '%' | '‰' | '％' | '-' | '.' | '(' | ')')
            && !is_currency_sign(character)
        {
            return best;
        }
        previous = Some(character);
    }
    if rest.len() <= 32 {
        consider(rest, start, &mut best);
    }
    best
}

fn is_boundary(previous: Option<char>, next: char) -> bool {
    match previous {
        Some(before) if continues_unit(before) => !continues_unit(next),
        Some(_) => true,
        None => false,
    }
}

fn consider(candidate: &str, start: usize, best: &mut Option<(Unit, usize)>) {
    let trimmed = candidate.trim_end();
    if trimmed.is_empty() || best.as_ref().is_some_and(|(_, end)| *end >= start + trimmed.len()) {
        return;
    }
    let tables = tables();
    let unit = tables.exact.get(trimmed).cloned().or_else(|| {
        if trimmed.chars().count() < 3 {
            return None;
        }
        let lowered = trimmed.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        tables.words.get(lowered.as_str()).cloned()
    });
    if let Some(unit) = unit {
        *best = Some((unit, start + trimmed.len()));
    }
}

/// Whether the character is a currency sign of the table.
pub(super) fn is_currency_sign(character: char) -> bool {
    matches!(character, '€' | '$' | '£' | '¥' | '₹' | '₽' | '₺' | '₩' | '₪')
}

/// A currency sign or code that starts at `start` and may stand before a number: the unit and the byte after it.
pub(super) fn currency_prefix_at(text: &str, start: usize) -> Option<(Unit, usize)> {
    let rest = text.get(start..)?;
    tables()
        .prefixes
        .iter()
        .find(|(sign, _)| rest.starts_with(sign))
        .map(|(sign, code)| (Unit::currency(code), start + sign.len()))
}

/// Whether the whole word is a unit or currency spelling (such words are no names).
pub(super) fn is_unit_word(word: &str) -> bool {
    unit_at(word, 0).is_some_and(|(_, end)| end == word.len())
}
